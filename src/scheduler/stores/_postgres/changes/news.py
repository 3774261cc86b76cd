"""Which changes of others a node has not read.

A node remembers a snapshot, and the life of the server that counted its transactions. A failover may forget
transactions and reuse numbers, so in each new life the whole log is news. Forgotten changes are in no log: while the
new count is behind the old one, all rows are read again.

A long log is read in pages, by transaction, up to the first page's snapshot. Rows are read as they are then: changes
between pages do no harm.
"""

from __future__ import annotations

from typing import Final, LiteralString

from ..connection import sql
from ..statements import Statements
from ..table import JOB, PAUSE, STATE

_LIFE: Final = sql.SQL("floor(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text")
_LAST_SNAPSHOT: Final = sql.SQL("split_part(%(seen)s, ' ', 1)::pg_snapshot")
NOW: Final = sql.SQL("concat_ws(' ', pg_current_snapshot(), {life})").format(life=_LIFE)

_SEEN: Final = sql.SQL(
    "CASE WHEN split_part(%(seen)s, ' ', 2) = {life} THEN {last} ELSE '1:1:'::pg_snapshot END"
).format(life=_LIFE, last=_LAST_SNAPSHOT)

IS_FOREIGN: Final = sql.SQL("xid >= pg_snapshot_xmax(pg_current_snapshot())")
"""A change of another server with a higher count, from a dump."""

IS_NEW: Final = sql.SQL(
    "xid >= pg_snapshot_xmin({seen}) AND NOT pg_visible_in_snapshot(xid, {seen}) AND writer IS DISTINCT FROM %(agent)s"
    " AND xid < pg_snapshot_xmax(pg_current_snapshot())"
).format(seen=_SEEN)
"""A change by others, on this server, not seen yet."""

IS_BEHIND: Final = sql.SQL("pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax({last})").format(
    last=_LAST_SNAPSHOT
)
"""The server has forgotten transactions."""

_UPTO: Final = sql.SQL(
    "CASE WHEN %(upto)s::text = '' THEN pg_current_snapshot() ELSE split_part(%(upto)s, ' ', 1)::pg_snapshot END"
)
IS_IN_PAGES: Final = sql.SQL(
    "xid < pg_snapshot_xmax({upto}) AND pg_visible_in_snapshot(xid, {upto})"
    " AND (xid, number) > (%(xid)s::xid8, %(number)s)"
).format(upto=_UPTO)


def snapshot_of(seen: str) -> str:
    return seen.partition(" ")[0]


def life_of(seen: str) -> str:
    return seen.partition(" ")[2]


class NewsStatements:
    def __init__(self, statements: Statements, *, shared: bool) -> None:
        of = statements.of
        is_asked: LiteralString = "EXISTS (SELECT FROM {schema}.request WHERE done_at IS NULL)"
        parts = {"now": NOW, "is_behind": IS_BEHIND, "is_new": IS_NEW}
        self.now = of("SELECT {now}", None, **parts)
        self.look = of("SELECT {now}, {is_behind}" + (", " + is_asked if shared else ""), None, **parts)
        self.is_news = of(
            "({is_behind} OR " + is_asked + " OR EXISTS (SELECT FROM {schema}.change WHERE {is_new}))", None, **parts
        )
        rows = {"pause": PAUSE.qualified, "job": JOB.qualified, "state": STATE.qualified}
        self.page = of(  # each row by its key, of a page's few
            "WITH page AS MATERIALIZED (SELECT change.table AS kind, key, xid, number FROM {schema}.change"
            " WHERE {is_new} AND {is_in_pages} ORDER BY xid, number LIMIT %(most)s)"
            " SELECT kind, page.key, xid::text::bigint, number, {pause}, {job}, {state} FROM page"
            " LEFT JOIN {schema}.pause ON kind = 'pause' AND pause.scope = page.key"
            " LEFT JOIN {schema}.job ON kind = 'job' AND job.id = page.key"
            " LEFT JOIN {schema}.job_state ON job_state.job_id = job.id",
            None,
            is_in_pages=IS_IN_PAGES,
            is_new=IS_NEW,
            **rows,
        )
        self.rows = of(
            "SELECT 'job', given.id, 0, 0, {pause}, {job}, {state} FROM unnest(%(ids)s::text[]) AS given (id)"
            " LEFT JOIN {schema}.pause ON false LEFT JOIN {schema}.job ON job.id = given.id"
            " LEFT JOIN {schema}.job_state ON job_state.job_id = job.id",
            None,
            **rows,
        )
