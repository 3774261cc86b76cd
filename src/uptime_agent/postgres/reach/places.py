"""Places: how many connections one server has of all who lead there, and who waits for one.

Two targets may be one server under two names, each with a role of its own. Then they share places: the lowest limit
holds for all of them together, who has waited longest comes first, and what one has idle makes room for the other.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

import anyio
from attrs import define, field

from ...libpq import Connection


class Holder(Protocol):
    """The connections of one target. `used`: places it has; `leaving`: those of them whose connections are closing.

    `stuck`: of those, what the server has not let go of in time.
    """

    limit: int
    used: int
    leaving: int
    stuck: int
    places: Places

    @property
    def is_closed(self) -> bool:
        """Whether it asks for no place any more."""

    @property
    def idle_since(self) -> float | None:
        """When the one was used that is idle longest, in monotonic seconds; None: none is idle."""

    def evict(self) -> None:
        """Close the connection that is idle longest."""


@define(eq=False)
class Waiter:
    """An entry in the line: for a place, or for a connection to that database which is handed over.

    Its turn comes with neither if it waits in vain.
    """

    holder: Holder
    database: str | None
    is_fresh: bool
    turn: anyio.Event = field(factory=anyio.Event)
    handed: Connection | None = None
    has_place: bool = False


class Places:
    """The places of one server, and the line of those who wait for one."""

    def __init__(self, holder: Holder) -> None:
        self.holders = [holder]
        self.waiting: deque[Waiter] = deque()

    @property
    def limit(self) -> int:
        """How many there are: as the one says who wants fewest."""
        return min(each.limit for each in [each for each in self.holders if not each.is_closed] or self.holders)

    @property
    def used(self) -> int:
        """How many are taken: as many as the server may count, at most."""
        return sum(each.used for each in self.holders)

    @property
    def are_stuck(self) -> bool:
        """Whether all are taken by what we have left, and the server lets go of nothing: it stands still."""
        return self.limit <= self.used == sum(each.stuck for each in self.holders)

    def take(self, holder: Holder) -> bool:
        """Take one, if there is one for whom nobody waits."""
        if self.waiting or self.used >= self.limit:
            return False
        holder.used += 1
        return True

    def make_room(self) -> bool:
        """Close the connection that is idle longest, whoever has it. False: none is."""
        idle = [(since, each) for each in self.holders if (since := each.idle_since) is not None]
        if idle:
            min(idle, key=lambda found: found[0])[1].evict()
        return bool(idle)

    def mark_stuck(self, holder: Holder) -> None:
        """Take note that the server has not let go of one in time. If that is all of them, nobody waits any longer."""
        holder.stuck += 1
        while self.waiting and self.are_stuck:
            self.waiting.popleft().turn.set()

    def free(self, holder: Holder) -> None:
        """Give one back. Who is closed and has none left leaves."""
        holder.used -= 1
        if holder.is_closed and not holder.used and len(self.holders) > 1:
            self.holders.remove(holder)
            holder.places = Places(holder)
        self.fit()

    def fit(self) -> None:
        """Keep to the limit as it is now: idle connections beyond it are closed, who waits is let in."""
        while self.used - sum(each.leaving for each in self.holders) > self.limit and self.make_room():
            pass
        while self.waiting and self.used < self.limit:
            waiter = self.waiting.popleft()
            waiter.holder.used += 1
            waiter.has_place = True
            waiter.turn.set()

    def join(self, others: Places) -> None:
        """Take in who shares other places: it has turned out that they are those of the same server."""
        for holder in others.holders:
            holder.places = self
        self.holders += others.holders
        self.waiting += others.waiting
        others.holders, others.waiting = [], deque()
        self.fit()

    def part(self, holder: Holder) -> None:
        """Let a holder go: it leads to another server by now."""
        if self.holders == [holder]:
            return
        self.holders.remove(holder)
        holder.places = own = Places(holder)
        own.waiting = deque(each for each in self.waiting if each.holder is holder)
        self.waiting = deque(each for each in self.waiting if each.holder is not holder)
        own.fit()
        self.fit()
