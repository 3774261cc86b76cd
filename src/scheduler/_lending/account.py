"""An account: our part of one limit of the fleet, as the last round left it."""

from __future__ import annotations

from math import inf
from typing import Final

from attrs import define

from ..stores import Lent, Wish

IDLE: Final = 0.4
"""Seconds after which as many units go back as have been idle all the while."""


@define
class Account:
    """Our part of one limit. `spare`: how many units have been idle at every look until `until`."""

    size: int
    window: float = 0.0
    """Seconds for which a unit rests, as we were told. Then it comes back by itself: nobody looks for it meanwhile."""
    held: int = 0
    owed: int = 0
    most: float = inf
    """While it is not known what the store has of us: how many may be in use."""
    lacks: int = 0
    wishes: tuple[Wish, ...] = ()
    """As they were said last."""
    asked_at: float = -inf
    spare: int = 0
    until: float = -inf

    def usable(self) -> int:
        return int(min(self.held - self.owed, self.most))

    def sent(self, used: int, wishes: tuple[Wish, ...], now: float) -> None:
        """A round is on its way."""
        self.most, self.wishes, self.asked_at = used, wishes, now

    def answered(self, lent: Lent) -> None:
        """A round has been carried out."""
        self.held, self.owed, self.lacks, self.most = lent.held, lent.owed, lent.lacks, inf

    def forget(self) -> None:
        """Hold nothing: what was lent was lent to an incarnation that is no more."""
        self.held = self.owed = self.lacks = 0
        self.most, self.wishes = inf, ()

    def idle_too_long(self, idle: int, now: float) -> int:
        """Count what is idle; how many units have been so for long enough."""
        self.spare = min(self.spare, idle)
        if now < self.until:
            return 0
        spare, self.spare, self.until = self.spare, idle, now + IDLE
        return spare
