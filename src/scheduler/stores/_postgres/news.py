"""News: which changes of others an agent has not been told of."""

from __future__ import annotations

from typing import Final

from .connection import sql

IS_NEW: Final = sql.SQL(
    "xid >= pg_snapshot_xmin(%(seen)s::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, %(seen)s::pg_snapshot)"
    " AND writer IS DISTINCT FROM %(agent)s"
)
"""Of a change: others have made it, and it was not visible in the snapshot that was seen last."""
