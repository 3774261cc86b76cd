"""PostgreSQL fleets: which probes are due on which servers and databases, what they find, and where it is kept.

Offers `Fleet` and its `PostgresTarget`s, the `CATALOGUE` of probes, and metric stores. Knows nothing of the
configuration, of notifications and of displays. Queries live on the event loop, storage on a thread of its own.
psycopg is imported where it is used, so that the agent runs without it.
"""

from __future__ import annotations

from .changes import Changes, compared
from .choices import Choice, Layer, Origin, Plan, origins
from .doctor import Diagnosis, examine
from .fleet import Fleet
from .identity import IDENTITY, resets
from .probes import CATALOGUE
from .reach import Dialler
from .storage import Drained, MemoryMetrics, ReadableStore, Retention, Spool, SqliteMetrics, postgres_metrics
from .target import PostgresTarget

__all__ = [
    "CATALOGUE",
    "IDENTITY",
    "Changes",
    "Choice",
    "Diagnosis",
    "Dialler",
    "Drained",
    "Fleet",
    "Layer",
    "MemoryMetrics",
    "Origin",
    "Plan",
    "PostgresTarget",
    "ReadableStore",
    "Retention",
    "Spool",
    "SqliteMetrics",
    "compared",
    "examine",
    "origins",
    "postgres_metrics",
    "resets",
]
