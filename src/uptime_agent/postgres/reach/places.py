"""Places: the connections of one server for all targets that lead there, and the waiting line.

Two targets may be one server under two names, with different roles. Then they share places. The lowest limit holds for
both together, the longest wait comes first, and idle connections of one make room for the other.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

import anyio
from attrs import define, field

from ...libpq import Connection


class Holder(Protocol):
    """The connections of one target. `used`: its places; `leaving`: of those, closing ones.

    `stuck`: of those, what the server has not released in time.
    """

    limit: int
    used: int
    leaving: int
    stuck: int
    places: Places

    @property
    def is_closed(self) -> bool:
        """Whether it needs no more places."""

    @property
    def idle_since(self) -> float | None:
        """When the longest idle one was used, in monotonic seconds; None: none is idle."""

    def evict(self) -> None:
        """Close the connection that is idle longest."""


@define(eq=False)
class Waiter:
    """An entry in the line: for a place, or for a connection to that database that is passed on.

    It gets neither if it waits in vain.
    """

    holder: Holder
    database: str | None
    is_fresh: bool
    turn: anyio.Event = field(factory=anyio.Event)
    handed: Connection | None = None
    has_place: bool = False


class Places:
    """The places of one server, and the line for them."""

    def __init__(self, holder: Holder) -> None:
        self.holders = [holder]
        self.waiting: deque[Waiter] = deque()

    @property
    def limit(self) -> int:
        """Their number: the lowest of the holders' limits."""
        return min(each.limit for each in [each for each in self.holders if not each.is_closed] or self.holders)

    @property
    def used(self) -> int:
        """Places in use, at most what the server counts."""
        return sum(each.used for each in self.holders)

    @property
    def are_stuck(self) -> bool:
        """Whether leaving connections take all places and the server releases none: it stands still."""
        return self.limit <= self.used == sum(each.stuck for each in self.holders)

    def take(self, holder: Holder) -> bool:
        """Take a place, if one is free and none waits."""
        if self.waiting or self.used >= self.limit:
            return False
        holder.used += 1
        return True

    def make_room(self) -> bool:
        """Close the connection that is idle longest, of any holder. False: none is idle."""
        idle = [(since, each) for each in self.holders if (since := each.idle_since) is not None]
        if idle:
            min(idle, key=lambda found: found[0])[1].evict()
        return bool(idle)

    def mark_stuck(self, holder: Holder) -> None:
        """Note a place that the server has not released in time. If those are all, the line ends."""
        holder.stuck += 1
        while self.waiting and self.are_stuck:
            self.waiting.popleft().turn.set()

    def free(self, holder: Holder) -> None:
        """Give a place back. A closed holder without places leaves."""
        holder.used -= 1
        if holder.is_closed and not holder.used and len(self.holders) > 1:
            self.holders.remove(holder)
            holder.places = Places(holder)
        self.fit()

    def fit(self) -> None:
        """Apply the present limit: close idle connections beyond it, admit waiting requests."""
        while self.used - sum(each.leaving for each in self.holders) > self.limit and self.make_room():
            pass
        while self.waiting and self.used < self.limit:
            waiter = self.waiting.popleft()
            waiter.holder.used += 1
            waiter.has_place = True
            waiter.turn.set()

    def join(self, others: Places) -> None:
        """Merge with other places: they turned out to be of the same server."""
        for holder in others.holders:
            holder.places = self
        self.holders += others.holders
        self.waiting += others.waiting
        others.holders, others.waiting = [], deque()
        self.fit()

    def part(self, holder: Holder) -> None:
        """Let a holder go: it leads to another server now."""
        if self.holders == [holder]:
            return
        self.holders.remove(holder)
        holder.places = own = Places(holder)
        own.waiting = deque(each for each in self.waiting if each.holder is holder)
        self.waiting = deque(each for each in self.waiting if each.holder is not holder)
        own.fit()
        self.fit()
