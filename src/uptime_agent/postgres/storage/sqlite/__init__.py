"""Metrics in a SQLite file.

Called on the writer's thread.
"""

from __future__ import annotations

from .store import SqliteMetrics

__all__ = ["SqliteMetrics"]
