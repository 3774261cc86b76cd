"""A scheduler's figures for Prometheus. Needs the extra `metrics`.

`exposition(s)` returns the body for /metrics. `Collector(s)` is for a registry of prometheus_client. For a busy event
loop take a `snapshot` on the loop, which is quick, and `render` it in a thread.
"""

from ._bounds import DURATION_BOUNDS, LATENESS_BOUNDS
from ._catalogue import METRICS, PARTS
from ._metric import Distribution, Metric, MetricKind
from ._render import CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE, Collector, exposition, render
from ._snapshot import MOST_JOBS, Snapshot, snapshot

__all__ = [
    "CONTENT_TYPE",
    "DURATION_BOUNDS",
    "LATENESS_BOUNDS",
    "METRICS",
    "MOST_JOBS",
    "OPENMETRICS_CONTENT_TYPE",
    "PARTS",
    "Collector",
    "Distribution",
    "Metric",
    "MetricKind",
    "Snapshot",
    "exposition",
    "render",
    "snapshot",
]
