"""Metrics in PostgreSQL: COPY into weekly partitions, dropped as a whole.

Imports psycopg. Called on the writer's thread.
"""

from __future__ import annotations

from .store import PostgresMetrics

__all__ = ["PostgresMetrics"]
