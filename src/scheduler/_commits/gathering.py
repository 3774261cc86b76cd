"""Gathering: how long a batch is kept open, so that more starts share its commit.

A commit costs what a hundred runs cost, and a start waits for the commit that holds its mark. So a lone start is sent
at once, and the next one a few milliseconds after it. Where starts come by the thousand each commit waits longer, since
there the commits are what makes the machine busy, and a busy machine makes every start late.

That pays only as long as more comes. Where all who could start are in the batch already, because the next ones wait for
its answer, nothing comes any more: a batch that has not grown from one look to the next is closed.

Nothing here reads a clock: instants are given, in seconds of any clock that runs evenly.
"""

from __future__ import annotations

from math import exp
from typing import Final

from attrs import define

SOON: Final = 0.003
"""Seconds from one batch to the next as long as starts are few. Half of it is lateness of a start."""

LATEST: Final = 0.04
"""The same where they are many."""

FEW: Final = 1_200.0
MANY: Final = 1_500.0
"""Starts in a second. From the one to the other the time between batches grows."""

LOOK: Final = 0.002
"""Seconds from one look at a batch that is kept open to the next."""

FULL: Final = 100
"""With more ends of runs than this in it a batch waits for nothing."""

FADES: Final = 0.9
"""What the longest of the last commits is still worth after the next one."""

WINDOW: Final = 1.0
"""Seconds over which starts are counted; what is older weighs less and less."""


def between_batches(starts_per_s: float) -> float:
    """Seconds from one batch to the next, with so many starts in a second."""
    share = min(1.0, max(0.0, (starts_per_s - FEW) / (MANY - FEW)))
    return SOON + share * (LATEST - SOON)


@define
class Gathering:
    """The times of one journal's batches."""

    took: float = 0.0
    """Seconds that the longest of the last commits took. It fades with each one after it."""
    _closed_at: float = 0.0
    _starts: float = 0.0
    """Of the last second or so before the last batch was closed."""
    _seen: int = 0
    """Starts in the batch at the last look."""

    def first_look(self) -> float:
        """When to look at a batch that has got something: by then it has passed, or it is very near."""
        return self._closed_at + SOON

    def next_look(self, starts: int, now: float) -> float | None:
        """When to look again at a batch that holds so many starts; None: close it."""
        latest = self._closed_at + between_batches(self._starts / WINDOW)
        if now >= latest or 0 < starts <= self._seen:  # ends alone are waited for by nobody
            return None
        self._seen = starts
        return min(now + LOOK, latest)

    def closed(self, starts: int, now: float) -> None:
        """Take note that a batch with so many starts was closed."""
        self._starts = self._starts * exp((self._closed_at - now) / WINDOW) + starts
        self._closed_at = now
        self._seen = 0

    def committed(self, seconds: float) -> None:
        """Take note of how long a commit took."""
        self.took = max(seconds, FADES * self.took)
