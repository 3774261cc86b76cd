"""One server's connections for all its targets, and the waiting line.

Its targets share the lowest limit. The longest wait comes first; idle connections of one make room for others.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

import anyio
from attrs import define, field

from ...libpq import Connection


class Holder(Protocol):
    """One target's connections: see Connections."""

    limit: int
    used: int
    leaving: int
    stuck: int
    places: Places

    @property
    def is_closed(self) -> bool:
        """Whether it needs no places."""

    @property
    def idle_since(self) -> float | None:
        """The longest idle one's last use, in monotonic seconds."""

    def evict(self) -> None:
        """Close the longest idle connection."""


@define(eq=False)
class Waiter:
    """Waits for a place, or a connection to its database."""

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
        """The holders' lowest limit."""
        return min(each.limit for each in [each for each in self.holders if not each.is_closed] or self.holders)

    @property
    def used(self) -> int:
        """At most what the server counts."""
        return sum(each.used for each in self.holders)

    @property
    def are_stuck(self) -> bool:
        """Whether all places are unreleased: the server stands still."""
        return self.limit <= self.used == sum(each.stuck for each in self.holders)

    def take(self, holder: Holder) -> bool:
        """Take a place, if no request waits."""
        if self.waiting or self.used >= self.limit:
            return False
        holder.used += 1
        return True

    def make_room(self) -> bool:
        """Close the longest idle connection, if any."""
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
        """Give a place back. A closed, empty holder leaves."""
        holder.used -= 1
        if holder.is_closed and not holder.used and len(self.holders) > 1:
            self.holders.remove(holder)
            holder.places = Places(holder)
        self.fit()

    def fit(self) -> None:
        """Apply the limit."""
        while self.used - sum(each.leaving for each in self.holders) > self.limit and self.make_room():
            pass
        while self.waiting and self.used < self.limit:
            waiter = self.waiting.popleft()
            waiter.holder.used += 1
            waiter.has_place = True
            waiter.turn.set()

    def join(self, others: Places) -> None:
        """Merge with places of the same server."""
        for holder in others.holders:
            holder.places = self
        self.holders += others.holders
        self.waiting += others.waiting
        others.holders, others.waiting = [], deque()
        self.fit()

    def part(self, holder: Holder) -> None:
        """Release a holder: it changed servers."""
        if self.holders == [holder]:
            return
        self.holders.remove(holder)
        holder.places = own = Places(holder)
        own.waiting = deque(each for each in self.waiting if each.holder is holder)
        self.waiting = deque(each for each in self.waiting if each.holder is not holder)
        own.fit()
        self.fit()
