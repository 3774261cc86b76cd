"""Metrics as prometheus_client has them: a collector for its registry, and the text of /metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

try:
    from prometheus_client.exposition import generate_latest
    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
    from prometheus_client.samples import Sample
except ImportError as error:
    msg = f"scheduler.metrics needs prometheus-client, which cannot be imported ({error}): "
    msg += "pip install timerqueue[metrics]"
    raise ModuleNotFoundError(msg, name="prometheus_client") from error

from .._scheduler import Scheduler
from ._catalogue import METRICS
from ._metric import Distribution, Metric
from ._snapshot import Snapshot, encodable, pattern_of, snapshot

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The Content-Type of `exposition(s)`."""

OPENMETRICS_CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""The Content-Type of `exposition(s, openmetrics=True)`."""


class Collector:
    """A collector for a registry of prometheus_client: `REGISTRY.register(Collector(s))`.

    `jobs`: patterns of ids, such as "backup-*". Matching jobs have series of their own, at most MOST_JOBS. A renamed or
    removed job leaves no series. Raises TypeError for anything but texts.
    """

    def __init__(self, s: Scheduler, *, jobs: str | Iterable[str] = ()) -> None:
        self._scheduler = s
        self._jobs = (jobs,) if isinstance(jobs, str) else tuple(jobs)
        pattern_of(self._jobs)

    def collect(self) -> Iterator[Family]:
        """Yield the metrics of the scheduler now. Any thread."""
        return _families(snapshot(self._scheduler, jobs=self._jobs))

    def describe(self) -> Iterator[Family]:
        """Yield all metrics without values: the registry refuses a second collector of these names."""
        return map(_empty, METRICS)


class _Ready:
    """A registry of one snapshot."""

    def __init__(self, taken: Snapshot) -> None:
        self._taken = taken

    def collect(self) -> Iterator[Family]:
        return _families(self._taken)


def render(taken: Snapshot, *, openmetrics: bool = False) -> bytes:
    """Return a snapshot as the body of an answer to Prometheus. Any thread; a few milliseconds per thousand series."""
    generate = generate_openmetrics if openmetrics else generate_latest
    text: bytes = generate(_Ready(taken))
    return text


def exposition(s: Scheduler, *, openmetrics: bool = False, jobs: str | Iterable[str] = ()) -> bytes:
    """Return the figures of a scheduler as the body of an answer to Prometheus. Any thread.

    `openmetrics`: in the format of OPENMETRICS_CONTENT_TYPE. False: of CONTENT_TYPE. `jobs`: patterns of ids, such as
    "backup-*". Matching jobs have series of their own, at most MOST_JOBS.
    """
    return render(snapshot(s, jobs=jobs), openmetrics=openmetrics)


def _families(taken: Snapshot) -> Iterator[Family]:
    for metric in METRICS:
        family = _empty(metric)
        for values, value in metric.read(taken):
            family.samples += _samples(metric, values, value)
        if family.samples:
            yield family


def _empty(metric: Metric) -> Family:
    return Family(metric.family, metric.text, metric.kind.value)


def _samples(metric: Metric, values: tuple[str, ...], value: float | Distribution) -> Iterator[Sample]:
    pairs = zip(metric.labels, map(encodable, values), strict=True)
    labels = {name: text for name, text in pairs if text}  # for Prometheus an empty label is none
    match value:
        case Distribution():
            yield from _buckets(metric, labels, value)
        case float() | int():
            yield Sample(metric.name, labels, value)
        case _ as never:
            assert_never(never)


def _buckets(metric: Metric, labels: dict[str, str], value: Distribution) -> Iterator[Sample]:
    bucket, count, total = metric.names
    for bound, within in zip(value.bounds, value.within, strict=True):
        yield Sample(bucket, labels | {"le": repr(bound)}, within)
    yield Sample(bucket, labels | {"le": "+Inf"}, value.total)
    yield Sample(count, labels, value.total)
    yield Sample(total, labels, value.seconds)
