from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

from attrs import define, field, frozen

from .needs import Needs
from .plain_line import Rank


class LimitedWork(Protocol):
    needs: Needs
    is_waiting: bool
    size: int


C = TypeVar("C", bound=LimitedWork)


@frozen
class LimitStatistics:
    """The counts of one limit. `size`: math.inf if unlimited. `waiting`: work that this limit refused when it was last
    asked.

    `family`: the limit "server:*" of a member such as "server:db1"; None: no member. Idle members have no counts.
    """

    size: float
    used: int
    waiting: int
    family: str | None = None


@frozen
class HeldUnits(Generic[C]):
    """The units of a limit at one moment. `holders`: some works that hold units, the longest holder first, of `count`.

    Other units rest.
    """

    size: float
    used: int
    holders: tuple[C, ...] = ()
    count: int = 0


@define(eq=False)
class Limit:
    size: float
    is_family_member: bool = False
    used: int = 0
    holders: dict[Any, None] = field(factory=dict)
    """Work that holds units, the longest holder first. Units that rest have no holder."""
    parked: list[tuple[Rank, Line[Any]]] = field(factory=list)
    stranded: list[Line[Any]] = field(factory=list)
    """Lines that need more units than a shrunken limit has. They hold up no other line."""

    def has_room(self, units: int) -> bool:
        return self.used + units <= self.size

    def is_idle(self) -> bool:
        return not self.used and self.best_parked() is None and not any(line.queue for line in self.stranded)

    def best_parked(self) -> Rank | None:
        while self.parked and not self.parked[0][1].stands_at(self, self.parked[0][0]):
            heappop(self.parked)
        return self.parked[0][0] if self.parked else None


class Lender(Protocol):
    """Lends a pool units of limits that pools share. On the pool's event loop."""

    def usable(self, name: str) -> int: ...

    def refused(self, name: str) -> None: ...


@define(eq=False, kw_only=True)
class LentLimit(Limit):
    name: str
    lender: Lender

    def has_room(self, units: int) -> bool:
        if self.used + units <= self.lender.usable(self.name):
            return True
        self.lender.refused(self.name)
        return False


@define(eq=False)
class Line(Generic[C]):
    needs: Needs
    queue: list[tuple[Rank, C]] = field(factory=list)
    """heapq by rank. Cancelled work stays until it reaches the front."""
    place: Limit | None = None
    """The limit that refused the line, where it is parked. None: the line is open, so its first work may start."""
    key: Rank = (math.inf, 0)
    """The line's rank at `place`. Entries of the line there with another rank are outdated."""
    refusals: int = 0
    cancelled: int = 0

    def stands_at(self, place: Limit | None, key: Rank) -> bool:
        return self.place is place and self.key == key and bool(self.queue)

    def count(self) -> int:
        return sum(claim.is_waiting for _, claim in self.queue)

    def compact(self) -> None:
        self.queue = [(rank, claim) for rank, claim in self.queue if claim.is_waiting]
        heapify(self.queue)
        self.cancelled = 0

    def head(self) -> Rank | None:
        while self.queue and not self.queue[0][1].is_waiting:
            heappop(self.queue)
            self.cancelled -= 1
        return self.queue[0][0] if self.queue else None

    def best(self, most: int) -> list[Rank]:
        queue, found = self.queue, list[Rank]()
        next_ones = [(queue[0][0], 0)] if queue else []
        while next_ones and len(found) < most:
            rank, index = heappop(next_ones)
            if queue[index][1].is_waiting:
                found.append(rank)
            for child in (2 * index + 1, 2 * index + 2):
                if child < len(queue):
                    heappush(next_ones, (queue[child][0], child))
        return found
