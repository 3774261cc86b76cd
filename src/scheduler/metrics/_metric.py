"""A metric: its name, its meaning, and how it is read from a snapshot. Pure, without prometheus_client."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from attrs import frozen

from ._snapshot import Snapshot


class MetricKind(enum.Enum):
    """The type of a metric, in Prometheus's words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


@frozen
class Distribution:
    """The value of a histogram: runs within each bound, all runs, and the sum of their seconds."""

    bounds: tuple[float, ...]
    within: tuple[int, ...]
    total: int
    seconds: float


Labelled = tuple[tuple[str, ...], float | Distribution]
"""The values of a metric's labels, and its value."""

Reader = Callable[[Snapshot], Iterable[Labelled]]

_SUFFIX: Final = {MetricKind.COUNTER: "_total", MetricKind.INFO: "_info"}


@frozen
class Metric:
    """One metric. `family`: its name without the suffix of a counter; `labels`: their names."""

    family: str
    kind: MetricKind
    text: str
    labels: tuple[str, ...]
    read: Reader

    @property
    def name(self) -> str:
        """The name in queries."""
        return self.family + _SUFFIX.get(self.kind, "")

    @property
    def names(self) -> tuple[str, ...]:
        """All names of series: a histogram has three."""
        if self.kind is MetricKind.HISTOGRAM:
            return (f"{self.family}_bucket", f"{self.family}_count", f"{self.family}_sum")
        return (self.name,)


def counter(family: str, text: str, read: Reader, *labels: str) -> Metric:
    return Metric(f"timerqueue_{family}", MetricKind.COUNTER, text, labels, read)


def gauge(family: str, text: str, read: Reader, *labels: str) -> Metric:
    return Metric(f"timerqueue_{family}", MetricKind.GAUGE, text, labels, read)


def histogram(family: str, text: str, read: Reader, *labels: str) -> Metric:
    return Metric(f"timerqueue_{family}", MetricKind.HISTOGRAM, text, labels, read)


def one(read: Callable[[Snapshot], float | None]) -> Reader:
    """Return the reader of a metric without labels. None: no series now."""

    def reader(snapshot: Snapshot) -> Iterator[Labelled]:
        value = read(snapshot)
        if value is not None:
            yield (), value

    return reader
