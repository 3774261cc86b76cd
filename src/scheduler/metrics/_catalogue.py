"""All metrics, in the order of the page. docs/reference/metrics.md is made from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from ._metric import Labelled, Metric, MetricKind, Reader, counter, gauge, one
from ._of_limits import LIMIT_METRICS
from ._of_runs import RUN_METRICS
from ._of_store import STORE_METRICS
from ._snapshot import JobFigures, Snapshot


@cache
def _version() -> str:
    try:
        return version("timerqueue")
    except PackageNotFoundError:  # the source tree alone is on the path
        return "unknown"


def _about(snapshot: Snapshot) -> Iterator[Labelled]:
    fleet = snapshot.statistics.fleet
    yield (_version(), "" if fleet is None else fleet.me), 1


def _of_job(read: Callable[[JobFigures], float | None]) -> Reader:
    def reader(snapshot: Snapshot) -> Iterator[Labelled]:
        for job in snapshot.jobs:
            value = read(job)
            if value is not None:
                yield (job.id,), value

    return reader


JOB_METRICS: Final[tuple[Metric, ...]] = (
    gauge(
        "job_last_success_timestamp_seconds",
        "When a run of the job last succeeded, in UTC seconds. No series before the first.",
        _of_job(lambda it: it.statistics.last_successful_finish),
        "job_id",
    ),
    gauge(
        "job_next_start_timestamp_seconds",
        "When the job starts next, in UTC seconds. No series if it does not start by itself.",
        _of_job(lambda it: it.next_start),
        "job_id",
    ),
    counter("job_runs", "Runs of the job that have begun.", _of_job(lambda it: it.statistics.runs), "job_id"),
    counter("job_failures", "Runs of the job that have failed.", _of_job(lambda it: it.statistics.failures), "job_id"),
    gauge("jobs_left_out", "Jobs that match the pattern and have no series.", one(lambda it: it.left_out)),
)

PARTS: Final[Mapping[str, tuple[Metric, ...]]] = {
    "Jobs and runs": (
        Metric("timerqueue", MetricKind.INFO, "The version, and this node's name.", ("version", "node"), _about),
        *RUN_METRICS,
    ),
    "Limits, timers and the event loop": LIMIT_METRICS,
    "Store, queue, fleet and watchdog": STORE_METRICS,
    "One job": JOB_METRICS,
}
"""All metrics by the titles of the page."""

METRICS: Final[tuple[Metric, ...]] = tuple(each for part in PARTS.values() for each in part)
"""All metrics that a scheduler may have."""
