"""How long a batch stays open, so that more starts share its commit.

A commit costs as much as a hundred runs. So a lone start is sent at once, and thousands of starts wait longer. A batch
closes when it stops growing: the next starts may wait for its answer. Instants are seconds of any even clock.
"""

from __future__ import annotations

from math import exp
from typing import Final

from attrs import define

SHORTEST_S: Final = 0.003
"""Seconds between batches while starts are few: twice the mean lateness of a start."""

LONGEST_S: Final = 0.04
"""Seconds, while starts are many."""

FEW_PER_S: Final = 1_200.0
MANY_PER_S: Final = 1_500.0
"""Starts in a second. Between FEW_PER_S and MANY_PER_S the time between batches grows."""

LOOK_S: Final = 0.002
"""Seconds."""

FULL: Final = 100
"""A batch with more ends of runs waits for nothing."""

FADES: Final = 0.9

WINDOW: Final = 1.0
"""Seconds."""


def between_batches(starts_per_s: float) -> float:
    share = min(1.0, max(0.0, (starts_per_s - FEW_PER_S) / (MANY_PER_S - FEW_PER_S)))
    return SHORTEST_S + share * (LONGEST_S - SHORTEST_S)


@define
class BatchWindow:
    took: float = 0.0
    """Seconds of the longest recent commit, faded."""
    _closed_at: float = 0.0
    _starts: float = 0.0
    _seen: int = 0

    def first_look(self) -> float:
        return self._closed_at + SHORTEST_S

    def next_look(self, starts: int, now: float) -> float | None:
        """Return when to look again. None: close it."""
        latest = self._closed_at + between_batches(self._starts / WINDOW)
        if now >= latest or 0 < starts <= self._seen:  # no start waits for ends alone
            return None
        self._seen = starts
        return min(now + LOOK_S, latest)

    def closed(self, starts: int, now: float) -> None:
        self._starts = self._starts * exp((self._closed_at - now) / WINDOW) + starts
        self._closed_at = now
        self._seen = 0

    def committed(self, seconds: float) -> None:
        self.took = max(seconds, FADES * self.took)
