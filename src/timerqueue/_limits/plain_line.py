"""The line of work that needs no named limit: nearly all work.

Work in order of rank joins a deque, which costs almost nothing. Other work goes through a heap.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import Final, Generic, Protocol, TypeVar

COMPACT_ABOVE: Final = 100

Rank = tuple[float, int]
"""Smaller goes first. The sequence number makes ranks unique."""


class Waiting(Protocol):
    is_waiting: bool


W = TypeVar("W", bound=Waiting)


class PlainLine(Generic[W]):
    """Cancelled work (`is_waiting` is False) stays until it reaches the front."""

    __slots__ = ("_cancelled", "_in_order", "_overtaking")

    def __init__(self) -> None:
        self._in_order: deque[tuple[Rank, W]] = deque()
        self._overtaking: list[tuple[Rank, W]] = []
        self._cancelled = 0

    def __bool__(self) -> bool:
        return bool(self._in_order or self._overtaking)

    def push(self, rank: Rank, work: W) -> None:
        in_order = self._in_order
        if not in_order or in_order[-1][0] < rank:
            in_order.append((rank, work))
        else:
            heappush(self._overtaking, (rank, work))

    def head(self) -> Rank:
        in_order, overtaking = self._in_order, self._overtaking
        if overtaking and (not in_order or overtaking[0] < in_order[0]):
            return overtaking[0][0]
        return in_order[0][0]

    def pop(self) -> W | None:
        """Return the best work. None: cancelled, or empty."""
        in_order, overtaking = self._in_order, self._overtaking
        if overtaking and (not in_order or overtaking[0] < in_order[0]):
            work = heappop(overtaking)[1]
        elif in_order:
            work = in_order.popleft()[1]
        else:
            return None
        if work.is_waiting:
            return work
        self._cancelled -= 1
        return None

    def cancelled(self) -> None:
        self._cancelled += 1
        if self._cancelled > COMPACT_ABOVE and self._cancelled * 2 > len(self._in_order) + len(self._overtaking):
            self._in_order = deque(entry for entry in self._in_order if entry[1].is_waiting)
            self._overtaking = [entry for entry in self._overtaking if entry[1].is_waiting]
            heapify(self._overtaking)
            self._cancelled = 0

    def remove(self, work: W) -> None:
        """Remove work that may come again. Walks along the line."""
        self._in_order = deque(entry for entry in self._in_order if entry[1] is not work)
        self._overtaking = [entry for entry in self._overtaking if entry[1] is not work]
        heapify(self._overtaking)

    def works(self) -> list[W]:
        """Return the waiting work, in no order. Any thread."""
        return [work for _, work in [*self._in_order.copy(), *self._overtaking] if work.is_waiting]

    def clear(self) -> list[W]:
        waiting = self.works()
        self._in_order.clear()
        self._overtaking.clear()
        self._cancelled = 0
        return waiting
