"""The contract of probes: the probe, its samples, the outcome of each that was due, and the store.

Offers `Probe` with `Column`s and `Variant`s, `pick` (the variant for a server), `Sample`, `ProbeOutcome` and the
protocol `MetricStore`. Knows no probe, connection or store. Plain values for any thread.
"""

from __future__ import annotations

from .outcome import Failure, OutcomeKind, ProbeOutcome
from .probe import (
    NEWEST_PROVEN,
    OLDEST_SUPPORTED,
    Column,
    Probe,
    ProbeCall,
    ProbeConnection,
    Role,
    Row,
    Rows,
    Scope,
    Type,
    Value,
    Variant,
    pick,
)
from .sample import Sample
from .store import MetricStore, StoreUnavailable

__all__ = [
    "NEWEST_PROVEN",
    "OLDEST_SUPPORTED",
    "Column",
    "Failure",
    "MetricStore",
    "OutcomeKind",
    "Probe",
    "ProbeCall",
    "ProbeConnection",
    "ProbeOutcome",
    "Role",
    "Row",
    "Rows",
    "Sample",
    "Scope",
    "StoreUnavailable",
    "Type",
    "Value",
    "Variant",
    "pick",
]
