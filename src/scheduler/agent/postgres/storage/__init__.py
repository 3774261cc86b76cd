"""Metric storage: where samples and outcomes are kept, for how long, and what becomes of them while the store is down.

Offers stores (`SqliteMetrics`, `postgres_metrics`, `MemoryMetrics`), their `Retention`, and `rates` of counters. Knows
the contract of probes; no connection to a target, no schedule. Stores are called on one thread at a time.
"""

from __future__ import annotations

from .errors import StoreUnusable, Unstorable
from .memory import MemoryMetrics
from .places import postgres_metrics
from .rates import rates
from .reading import MetricReader, ReadableStore, StoredSample
from .retention import Retention
from .sqlite import SqliteMetrics
from .values import fingerprint

__all__ = [
    "MemoryMetrics",
    "MetricReader",
    "ReadableStore",
    "Retention",
    "SqliteMetrics",
    "StoreUnusable",
    "StoredSample",
    "Unstorable",
    "fingerprint",
    "postgres_metrics",
    "rates",
]
