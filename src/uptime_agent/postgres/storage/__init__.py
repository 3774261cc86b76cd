"""Where samples and outcomes are kept, and wait.

Stores are called on one thread at a time.
"""

from __future__ import annotations

from .batch import SampleBatch
from .errors import StoreUnusable, Unstorable
from .memory import MemoryMetrics
from .news import Replayed, SampleRefused, SamplesLost, StorageNews, StoreBack, StoreLost
from .places import postgres_metrics
from .rates import rates
from .reading import MetricReader, ReadableStore, Stock, StoredSample
from .retention import Retention
from .spool import Counts, Spool, SpoolFailed
from .sqlite import SqliteMetrics
from .values import fingerprint
from .writer import Drained, MetricWriter

__all__ = [
    "Counts",
    "Drained",
    "MemoryMetrics",
    "MetricReader",
    "MetricWriter",
    "ReadableStore",
    "Replayed",
    "Retention",
    "SampleBatch",
    "SampleRefused",
    "SamplesLost",
    "Spool",
    "SpoolFailed",
    "SqliteMetrics",
    "Stock",
    "StorageNews",
    "StoreBack",
    "StoreLost",
    "StoreUnusable",
    "StoredSample",
    "Unstorable",
    "fingerprint",
    "postgres_metrics",
    "rates",
]
