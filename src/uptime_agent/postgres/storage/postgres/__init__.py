"""Metrics in PostgreSQL: written by COPY into weekly partitions, made ahead and dropped as a whole.

Offers `PostgresMetrics`. Imports psycopg; who may be without it asks `places` of the folder above. Called on one thread
at a time, the writer's; several agents may share one schema.
"""

from __future__ import annotations

from .store import PostgresMetrics

__all__ = ["PostgresMetrics"]
