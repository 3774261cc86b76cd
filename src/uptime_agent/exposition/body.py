"""The figures as prometheus_client has them. A target that goes, or is renamed, leaves no series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from scheduler.metrics import Snapshot, render as render_scheduler

from .figures import TargetFigures

_Value = Callable[[TargetFigures], float | None]

_BY_TARGET: Final[tuple[tuple[str, str, _Value], ...]] = (
    ("up", "1 if the last check found the target up or degraded, 0 if down. No series: unknown.", lambda it: it.is_up),
    ("latency_seconds", "How long the last check took, from the lookup to the end.", lambda it: it.latency),
    ("last_check_timestamp_seconds", "When the last check ended, in UTC seconds.", lambda it: it.checked),
    (
        "incident_began_timestamp_seconds",
        "When the open incident began, in UTC seconds. No series without one.",
        lambda it: it.incident_began,
    ),
    (
        "certificate_expires_timestamp_seconds",
        "When the certificate ends, or another of its chain before it, in UTC seconds.",
        lambda it: it.cert_ends,
    ),
    ("domain_expires_timestamp_seconds", "When the domain ends, in UTC seconds.", lambda it: it.domain_ends),
)
"""Names after `timerqueue_target_`, meanings, and values. None: no series now."""


class TargetCollector:
    """A collector of prometheus_client for the targets of one moment."""

    def __init__(self, targets: Sequence[TargetFigures]) -> None:
        self._targets = targets

    def collect(self) -> Iterator[GaugeMetricFamily | InfoMetricFamily]:
        """Yield the series of all targets."""
        yield _counts(self._targets)
        yield _status(self._targets)
        for name, text, value_of in _BY_TARGET:
            family = GaugeMetricFamily(f"timerqueue_target_{name}", text, labels=["target"])
            for each in self._targets:
                value = value_of(each)
                if value is not None:
                    family.add_metric([_label(each.name)], float(value))
            yield family
        info = InfoMetricFamily("timerqueue_target", "The kind of each target.", labels=["target"])
        for each in self._targets:
            info.add_metric([_label(each.name)], {"kind": each.kind})
        yield info


def render(taken: Snapshot, targets: Sequence[TargetFigures], *, openmetrics: bool = False) -> bytes:
    """Return the figures of an agent as the body of /metrics. Any thread."""
    ours = CollectorRegistry(auto_describe=False)
    ours.register(TargetCollector(targets))
    generate: Callable[[CollectorRegistry], bytes] = generate_openmetrics if openmetrics else generate_latest
    of_scheduler = render_scheduler(taken, openmetrics=openmetrics)
    return of_scheduler.removesuffix(b"# EOF\n") + generate(ours)


def _counts(targets: Sequence[TargetFigures]) -> GaugeMetricFamily:
    family = GaugeMetricFamily("timerqueue_targets", "Targets by status. Unchecked: not yet.", labels=["status"])
    found = Counter("unchecked" if each.status is None else each.status.value for each in targets)
    for status in ("up", "degraded", "down", "unknown", "unchecked"):
        family.add_metric([status], found[status])
    return family


def _status(targets: Sequence[TargetFigures]) -> GaugeMetricFamily:
    text = "1 for the present status of each target. The series of its other statuses are not there."
    family = GaugeMetricFamily("timerqueue_target_status", text, labels=["target", "status"])
    for each in targets:
        family.add_metric([_label(each.name), "unchecked" if each.status is None else each.status.value], 1)
    return family


def _label(text: str) -> str:
    """Return a text that UTF-8 can hold: a name may have half of a surrogate pair."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
