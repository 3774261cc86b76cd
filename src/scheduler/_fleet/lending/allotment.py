"""Our part of one limit of the fleet."""

from __future__ import annotations

from math import inf
from typing import Final

from attrs import define

from ...stores import Lent, Wish

IDLE: Final = 0.4
"""Seconds before idle units go back."""


@define
class Allotment:
    size: int
    window: float = 0.0
    """Seconds for which a unit rests. Then it comes back by itself."""
    held: int = 0
    owed: int = 0
    most: float = inf
    """The most units in use until a round is answered."""
    lacks: int = 0
    wishes: tuple[Wish, ...] = ()
    asked_at: float = -inf
    spare: int = 0
    until: float = -inf

    def usable(self) -> int:
        return int(min(self.held - self.owed, self.most))

    def sent(self, used: int, wishes: tuple[Wish, ...], now: float) -> None:
        self.most, self.wishes, self.asked_at = used, wishes, now

    def answered(self, lent: Lent) -> None:
        self.held, self.owed, self.lacks, self.most = lent.held, lent.owed, lent.lacks, inf

    def forget(self) -> None:
        self.held = self.owed = self.lacks = 0
        self.most, self.wishes = inf, ()

    def idle_too_long(self, idle: int, now: float) -> int:
        self.spare = min(self.spare, idle)
        if now < self.until:
            return 0
        spare, self.spare, self.until = self.spare, idle, now + IDLE
        return spare
