"""Gathering: how long a batch stays open, so that more starts share its commit.

A commit costs as much as a hundred runs, and a start waits for the commit that holds its mark. So a lone start is sent
at once, and the next one a few milliseconds after it. With thousands of starts each commit waits longer: there commits
keep the machine busy, and a busy machine makes every start late.

That helps only as long as more starts come. If all possible starts are in the batch already, the next ones wait for its
answer. So a batch that has not grown between two looks is closed.

Nothing here reads a clock: instants are given, in seconds of any clock that runs evenly.
"""

from __future__ import annotations

from math import exp
from typing import Final

from attrs import define

SOON: Final = 0.003
"""Seconds between batches while starts are few. Half of them is the mean lateness of a start."""

LATEST: Final = 0.04
"""Seconds between batches while starts are many."""

FEW: Final = 1_200.0
MANY: Final = 1_500.0
"""Starts in a second. Between FEW and MANY the time between batches grows."""

LOOK: Final = 0.002
"""Seconds between looks at a batch that is kept open."""

FULL: Final = 100
"""A batch with more ends of runs than this waits for nothing."""

FADES: Final = 0.9
"""The factor by which the longest commit counts less after each commit."""

WINDOW: Final = 1.0
"""Seconds over which starts are counted. Older starts weigh less and less."""


def between_batches(starts_per_s: float) -> float:
    """Return the seconds between batches, for this number of starts in a second."""
    share = min(1.0, max(0.0, (starts_per_s - FEW) / (MANY - FEW)))
    return SOON + share * (LATEST - SOON)


@define
class BatchWindow:
    """The times of one journal's batches."""

    took: float = 0.0
    """Seconds of the longest of the last commits. It fades with each commit after it."""
    _closed_at: float = 0.0
    _starts: float = 0.0
    """Starts in the last second or so before the last batch was closed."""
    _seen: int = 0
    """Starts in the batch at the last look."""

    def first_look(self) -> float:
        """Return when a batch with a first record should be looked at. It is past, or very near."""
        return self._closed_at + SOON

    def next_look(self, starts: int, now: float) -> float | None:
        """Return when a batch with that many starts should be looked at again. None: close it."""
        latest = self._closed_at + between_batches(self._starts / WINDOW)
        if now >= latest or 0 < starts <= self._seen:  # no start waits for ends alone
            return None
        self._seen = starts
        return min(now + LOOK, latest)

    def closed(self, starts: int, now: float) -> None:
        """Note that a batch with that many starts was closed."""
        self._starts = self._starts * exp((self._closed_at - now) / WINDOW) + starts
        self._closed_at = now
        self._seen = 0

    def committed(self, seconds: float) -> None:
        """Note how long a commit took."""
        self.took = max(seconds, FADES * self.took)
