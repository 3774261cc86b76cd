"""The lateness of runs: one histogram for all jobs of a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from .._jobs import JobAttempt
from .._values import Histogram, LatenessStatistics


class Lateness:
    """`uncounted`: returns present runs that are not counted yet."""

    def __init__(self, uncounted: Callable[[], Iterable[JobAttempt]]) -> None:
        self.by_kind: dict[str, Histogram] = {}
        self._uncounted = uncounted
        self._runs_so_far = 0

    def of(self, kind: str) -> Histogram:
        return self.by_kind.get(kind) or self.by_kind.setdefault(kind, Histogram())

    def now(self) -> Mapping[str, Histogram]:
        """Return copies, with uncounted runs. Any thread."""
        histograms = {kind: histogram.copy() for kind, histogram in dict(self.by_kind).items()}
        for run in self._uncounted():
            histograms.setdefault(run.job.policy.kind, Histogram()).add(run.lateness)
        return histograms

    def runs_so_far(self, lateness: Mapping[str, LatenessStatistics]) -> int:
        """Return a number that never falls, even while the loop counts a run."""
        self._runs_so_far = max(self._runs_so_far, sum(each.total for each in lateness.values()))
        return self._runs_so_far
