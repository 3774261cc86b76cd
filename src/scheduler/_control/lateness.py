"""The lateness of a scheduler's runs: a histogram for each kind of job, which all jobs of that kind share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from .._jobs import Attempt
from .._values import Histogram, LatenessStatistics


class Lateness:
    """The lateness of one scheduler's runs. `uncounted`: runs that go on and are not counted yet."""

    def __init__(self, uncounted: Callable[[], Iterable[Attempt]]) -> None:
        self.by_kind: dict[str, Histogram] = {}
        """A histogram for every kind that a job has had so far."""
        self._uncounted = uncounted
        self._runs_so_far = 0

    def of(self, kind: str) -> Histogram:
        """Return the histogram that jobs of that kind share."""
        return self.by_kind.get(kind) or self.by_kind.setdefault(kind, Histogram())

    def now(self) -> Mapping[str, Histogram]:
        """Return the histograms of every run that has begun. Any thread."""
        histograms = {kind: histogram.copy() for kind, histogram in dict(self.by_kind).items()}
        for run in self._uncounted():
            histograms.setdefault(run.job.policy.kind, Histogram()).add(run.lateness)
        return histograms

    def runs_so_far(self, lateness: Mapping[str, LatenessStatistics]) -> int:
        """Return how many runs have begun. The number never falls, even while the loop counts a run."""
        self._runs_so_far = max(self._runs_so_far, sum(each.total for each in lateness.values()))
        return self._runs_so_far
