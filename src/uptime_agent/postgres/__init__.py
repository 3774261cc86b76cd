"""PostgreSQL fleets: probes and metric stores.

Queries run on the event loop, storage on its own thread. First use imports psycopg.
"""

from __future__ import annotations

from .changes import PlanChanges, compared
from .choices import Choice, Layer, Origin, Plan, origins
from .contract import Column, StoreUnavailable
from .doctor import Diagnosis, examine
from .fleet import Fleet
from .identity import IDENTITY, resets
from .probes import CATALOGUE
from .reach import Dialler
from .storage import (
    Drained,
    MemoryMetrics,
    ReadableStore,
    Retention,
    Spool,
    SqliteMetrics,
    Stock,
    StoredSample,
    postgres_metrics,
    rates,
)
from .target import PostgresTarget

__all__ = [
    "CATALOGUE",
    "IDENTITY",
    "Choice",
    "Column",
    "Diagnosis",
    "Dialler",
    "Drained",
    "Fleet",
    "Layer",
    "MemoryMetrics",
    "Origin",
    "Plan",
    "PlanChanges",
    "PostgresTarget",
    "ReadableStore",
    "Retention",
    "Spool",
    "SqliteMetrics",
    "Stock",
    "StoreUnavailable",
    "StoredSample",
    "compared",
    "examine",
    "origins",
    "postgres_metrics",
    "rates",
    "resets",
]
