"""Metrics in PostgreSQL, in weekly partitions.

Imports psycopg. Called on the writer's thread.
"""

from __future__ import annotations

from .store import PostgresMetrics

__all__ = ["PostgresMetrics"]
