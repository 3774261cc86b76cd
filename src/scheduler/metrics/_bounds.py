"""Published bounds: the buckets of histograms, and the most label values of one metric.

Bounds stay as they are: a changed bound would break the history of every dashboard.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ._snapshot import encodable

LATENESS_BOUNDS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0,
)  # fmt: skip
"""Seconds: the upper bounds of the buckets of `timerqueue_lateness_seconds`."""

DURATION_BOUNDS: Final = (
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0,
)  # fmt: skip
"""Seconds: the upper bounds of the buckets of `timerqueue_run_duration_seconds`."""

MOST_KINDS: Final = 50
"""Kinds of job with series of their own. The kinds after these share the label `OTHERS`."""

MOST_LIMITS: Final = 200
"""Limits with series of their own. The limits after these share the label `OTHERS`."""

OTHERS: Final = "(others)"


def labels_of(wanted: Mapping[str, str], most: int) -> Mapping[str, str]:
    """Return the label of each name, of the `wanted` labels by name.

    The first `most` labels stay apart, in the order in which names appeared: a label never changes. Names that look the
    same in UTF-8 share a label.
    """
    labels = {name: encodable(label) for name, label in wanted.items()}
    kept = set(list(dict.fromkeys(labels.values()))[:most])
    return {name: label if label in kept else OTHERS for name, label in labels.items()}
