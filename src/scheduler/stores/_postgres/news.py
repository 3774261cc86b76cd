"""News: which changes of others an agent has not been told of.

It remembers a snapshot, which says of each transaction whether it was seen, and which life of the server counted them.
Another server may have taken its place, one that does not know of the last transactions and gives their numbers again.
So what is in the log of changes is news in each new life of the server. That finds what has been changed since. What
was forgotten is in no log: then all rows are read anew. It shows where the new count is still behind the old one.
"""

from __future__ import annotations

from typing import Final

from .connection import sql

_LIFE: Final = sql.SQL("floor(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text")
_LAST_SNAPSHOT: Final = sql.SQL("split_part(%(seen)s, ' ', 1)::pg_snapshot")
NOW: Final = sql.SQL("concat_ws(' ', pg_current_snapshot(), {life})").format(life=_LIFE)
"""What has been seen, once all that is there now has been read."""

_SEEN: Final = sql.SQL(
    "CASE WHEN split_part(%(seen)s, ' ', 2) = {life} THEN {last} ELSE '1:1:'::pg_snapshot END"
).format(life=_LIFE, last=_LAST_SNAPSHOT)

IS_FOREIGN: Final = sql.SQL("xid >= pg_snapshot_xmax(pg_current_snapshot())")
"""Of a change: it was made on another server, which had counted further, and came here with a dump of the tables."""

IS_NEW: Final = sql.SQL(
    "xid >= pg_snapshot_xmin({seen}) AND NOT pg_visible_in_snapshot(xid, {seen}) AND writer IS DISTINCT FROM %(agent)s"
    " AND xid < pg_snapshot_xmax(pg_current_snapshot())"
).format(seen=_SEEN)
"""Of a change: others have made it, on this server, and it was not visible in what was seen last."""

IS_BEHIND: Final = sql.SQL("pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax({last})").format(
    last=_LAST_SNAPSHOT
)
"""The server counts fewer transactions than were seen: it has forgotten some."""


NEWS: Final = {"now": NOW, "is_behind": IS_BEHIND, "is_new": IS_NEW}


def snapshot_of(seen: str) -> str:
    """The snapshot of what was seen."""
    return seen.partition(" ")[0]
