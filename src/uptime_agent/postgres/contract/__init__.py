"""The contract of probes, samples, outcomes and stores.

Plain values for any thread.
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
