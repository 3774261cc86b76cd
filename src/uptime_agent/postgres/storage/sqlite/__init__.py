"""Metrics in a SQLite file: a table for each probe, made from its columns.

Offers `SqliteMetrics`. Knows no spool or queue. Called on the writer's thread.
"""

from __future__ import annotations

from .store import SqliteMetrics

__all__ = ["SqliteMetrics"]
