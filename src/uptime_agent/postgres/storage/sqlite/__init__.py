"""Metrics in a SQLite file: a table for each probe, made from its columns.

Offers `SqliteMetrics`. Knows no spool and no queue. Called on one thread at a time, the writer's.
"""

from __future__ import annotations

from .store import SqliteMetrics

__all__ = ["SqliteMetrics"]
