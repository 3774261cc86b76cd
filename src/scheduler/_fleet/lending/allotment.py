"""An account: our part of one limit of the fleet, as the last round left it."""

from __future__ import annotations

from math import inf
from typing import Final

from attrs import define

from ...stores import Lent, Wish

IDLE: Final = 0.4
"""Seconds before idle units go back."""


@define
class Allotment:
    """Our part of one limit. `spare`: how many units were idle at every look until `until`."""

    size: int
    window: float = 0.0
    """Seconds for which a unit rests, as the store says. Then it comes back by itself."""
    held: int = 0
    owed: int = 0
    most: float = inf
    """The most units that may be in use until the answer to a round."""
    lacks: int = 0
    wishes: tuple[Wish, ...] = ()
    """The wishes of the last round."""
    asked_at: float = -inf
    spare: int = 0
    until: float = -inf

    def usable(self) -> int:
        return int(min(self.held - self.owed, self.most))

    def sent(self, used: int, wishes: tuple[Wish, ...], now: float) -> None:
        """Note that a round is on its way."""
        self.most, self.wishes, self.asked_at = used, wishes, now

    def answered(self, lent: Lent) -> None:
        """Note the answer to a round."""
        self.held, self.owed, self.lacks, self.most = lent.held, lent.owed, lent.lacks, inf

    def forget(self) -> None:
        """Hold nothing: the store lent these units to an incarnation that is gone."""
        self.held = self.owed = self.lacks = 0
        self.most, self.wishes = inf, ()

    def idle_too_long(self, idle: int, now: float) -> int:
        """Count idle units. Return how many have been idle for long enough."""
        self.spare = min(self.spare, idle)
        if now < self.until:
            return 0
        spare, self.spare, self.until = self.spare, idle, now + IDLE
        return spare
