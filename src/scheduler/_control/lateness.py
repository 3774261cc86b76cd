"""The counts of runs by kind: lateness, durations and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from .._jobs import JobAttempt
from .._values import DurationStatistics, KindCounts, LatenessStatistics, Outcome

TRIES: Final = 100
"""How often another thread reads counts while the loop changes them. Commonly the first time does."""


class Lateness:
    """`uncounted`: returns present runs that are not counted yet."""

    def __init__(self, uncounted: Callable[[], Iterable[JobAttempt]]) -> None:
        self.by_kind: dict[str, KindCounts] = {}
        self._uncounted = uncounted
        self._runs_so_far = 0

    def of(self, kind: str) -> KindCounts:
        return self.by_kind.get(kind) or self.by_kind.setdefault(kind, KindCounts())

    def now(self) -> Mapping[str, KindCounts]:
        """Return copies, with uncounted runs. Any thread."""
        uncounted = list(self._uncounted())
        for _ in range(TRIES):
            kinds = {kind: counts.copy_of_lateness() for kind, counts in dict(self.by_kind).items()}
            before, uncounted = uncounted, list(self._uncounted())
            if set(before) <= set(uncounted):  # else a run may be in the copies, or not: the loop has counted it since
                break
        for run in before:
            kinds.setdefault(run.job.policy.kind, KindCounts()).add(run.lateness)
        return kinds

    def durations(self) -> Mapping[str, Mapping[Outcome, DurationStatistics]]:
        """Return the durations of ended runs by kind and outcome. Any thread."""
        found = {kind: counts.durations_now() for kind, counts in dict(self.by_kind).items()}
        return {kind: durations for kind, durations in found.items() if durations}

    def outcomes(
        self, durations: Mapping[str, Mapping[Outcome, DurationStatistics]]
    ) -> Mapping[str, Mapping[Outcome, int]]:
        """Return the number of ended runs by kind and outcome, crashes included."""
        found = {kind: {outcome: each.total for outcome, each in ended.items()} for kind, ended in durations.items()}
        for kind, counts in dict(self.by_kind).items():
            if counts.crashes:
                found.setdefault(kind, {})[Outcome.CRASHED] = counts.crashes
        return found

    def runs_so_far(self, lateness: Mapping[str, LatenessStatistics]) -> int:
        """Return a number that never falls, even while the loop counts a run."""
        self._runs_so_far = max(self._runs_so_far, sum(each.total for each in lateness.values()))
        return self._runs_so_far
