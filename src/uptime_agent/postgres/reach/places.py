"""Places: one server's connections for all targets that lead there, and the line.

These targets share the lowest limit. The longest wait comes first, and idle connections of one make room for others.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

import anyio
from attrs import define, field

from ...libpq import Connection


class Holder(Protocol):
    """One target's connections. See Connections for `used`, `leaving` and `stuck`."""

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
        """Monotonic seconds."""

    def evict(self) -> None:
        """Close the longest idle connection."""


@define(eq=False)
class Waiter:
    """An entry in the line: gets a place, a connection, or in vain neither."""

    holder: Holder
    database: str | None
    is_fresh: bool
    turn: anyio.Event = field(factory=anyio.Event)
    handed: Connection | None = None
    has_place: bool = False


class Places:
    """One server's places, and the line."""

    def __init__(self, holder: Holder) -> None:
        self.holders = [holder]
        self.waiting: deque[Waiter] = deque()

    @property
    def limit(self) -> int:
        """The lowest of the holders' limits."""
        return min(each.limit for each in [each for each in self.holders if not each.is_closed] or self.holders)

    @property
    def used(self) -> int:
        """At most what the server counts."""
        return sum(each.used for each in self.holders)

    @property
    def are_stuck(self) -> bool:
        """Whether the server stands still: it releases none of all places."""
        return self.limit <= self.used == sum(each.stuck for each in self.holders)

    def take(self, holder: Holder) -> bool:
        """Take a free place, if no request waits."""
        if self.waiting or self.used >= self.limit:
            return False
        holder.used += 1
        return True

    def make_room(self) -> bool:
        """Close the longest idle connection. False: none is idle."""
        idle = [(since, each) for each in self.holders if (since := each.idle_since) is not None]
        if idle:
            min(idle, key=lambda found: found[0])[1].evict()
        return bool(idle)

    def mark_stuck(self, holder: Holder) -> None:
        """Note an unreleased place. If all are, the line ends."""
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
        """Apply the limit: close excess idle connections, admit waiting requests."""
        while self.used - sum(each.leaving for each in self.holders) > self.limit and self.make_room():
            pass
        while self.waiting and self.used < self.limit:
            waiter = self.waiting.popleft()
            waiter.holder.used += 1
            waiter.has_place = True
            waiter.turn.set()

    def join(self, others: Places) -> None:
        """Merge with other places of the same server."""
        for holder in others.holders:
            holder.places = self
        self.holders += others.holders
        self.waiting += others.waiting
        others.holders, others.waiting = [], deque()
        self.fit()

    def part(self, holder: Holder) -> None:
        """Release a holder that leads to another server now."""
        if self.holders == [holder]:
            return
        self.holders.remove(holder)
        holder.places = own = Places(holder)
        own.waiting = deque(each for each in self.waiting if each.holder is holder)
        self.waiting = deque(each for each in self.waiting if each.holder is not holder)
        own.fit()
        self.fit()
