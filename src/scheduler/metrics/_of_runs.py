"""Metrics of jobs and their runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from .._values import DurationStatistics, JobState, LatenessStatistics
from ._bounds import DURATION_BOUNDS, LATENESS_BOUNDS, MOST_KINDS, labels_of
from ._metric import Distribution, Labelled, Metric, counter, gauge, histogram, one
from ._snapshot import Snapshot


def _kinds(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the label of each kind."""
    counts = snapshot.statistics
    return labels_of({kind: kind for kind in [*counts.lateness, *counts.outcomes]}, MOST_KINDS)


def _together(
    found: Iterable[tuple[str, LatenessStatistics | DurationStatistics]], bounds: tuple[float, ...]
) -> Iterator[Labelled]:
    """Yield one distribution for each label, of all histograms under it."""
    by_label: defaultdict[str, list[LatenessStatistics | DurationStatistics]] = defaultdict(list)
    for label, each in found:
        by_label[label].append(each)
    for label, histograms in by_label.items():
        columns = zip(*(each.cumulative(bounds) for each in histograms), strict=True)
        total = sum(each.total for each in histograms)
        seconds = sum(each.seconds for each in histograms)
        yield (label,), Distribution(bounds, tuple(map(sum, columns)), total, seconds)


def _lateness(snapshot: Snapshot) -> Iterator[Labelled]:
    kinds, lateness = _kinds(snapshot), snapshot.statistics.lateness
    return _together(((kinds[kind], each) for kind, each in lateness.items()), LATENESS_BOUNDS)


def _durations(snapshot: Snapshot) -> Iterator[Labelled]:
    kinds, durations = _kinds(snapshot), snapshot.statistics.durations
    found = ((kinds[kind], each) for kind, ended in durations.items() for each in ended.values())
    return _together(found, DURATION_BOUNDS)


def _outcomes(snapshot: Snapshot) -> Iterator[Labelled]:
    kinds, counts = _kinds(snapshot), Counter[tuple[str, ...]]()
    for kind, ended in snapshot.statistics.outcomes.items():
        for outcome, count in ended.items():
            counts[kinds[kind], outcome.key] += count
    return iter(counts.items())


def _states(snapshot: Snapshot) -> Iterator[Labelled]:
    for state in JobState:
        if state is not JobState.GONE:
            yield (state.value,), snapshot.states.get(state, 0)


def _missed(snapshot: Snapshot) -> Iterator[Labelled]:
    for reason, count in snapshot.statistics.missed_by_reason.items():
        yield (reason.key,), count


RUN_METRICS: Final[tuple[Metric, ...]] = (
    gauge("scheduler_running", "1 while the scheduler runs, else 0.", one(lambda it: it.is_running)),
    gauge("jobs", "Jobs that the scheduler knows, by state.", _states, "state"),
    gauge("active_jobs", "Jobs with a run, which may wait for room.", one(lambda it: it.statistics.active_jobs)),
    gauge("active_tasks", "Tasks and subtasks that run.", one(lambda it: it.statistics.active_tasks)),
    gauge("waiting_tasks", "Tasks and subtasks that wait for room.", one(lambda it: it.statistics.waiting_tasks)),
    counter("runs_begun", "Runs that have begun.", one(lambda it: it.statistics.runs)),
    counter("runs", "Runs that have ended, by kind of job and outcome.", _outcomes, "kind", "outcome"),
    counter("missed", "Ticks without a run, by reason.", _missed, "reason"),
    gauge(
        "missed_is_exact",
        "1 if the missed ticks are counted exactly, 0 if there may have been more.",
        one(lambda it: it.statistics.missed_is_exact),
    ),
    histogram("lateness_seconds", "From the due instant of a run to its begin, by kind of job.", _lateness, "kind"),
    histogram("run_duration_seconds", "From the begin of a run to its end, by kind of job.", _durations, "kind"),
)
