"""Metrics in PostgreSQL: written by COPY into weekly partitions, which are made ahead and dropped as a whole.

Offers `PostgresMetrics`. Imports psycopg; `places` of the folder above does without. Called on the writer's thread;
several nodes may share one schema.
"""

from __future__ import annotations

from .store import PostgresMetrics

__all__ = ["PostgresMetrics"]
