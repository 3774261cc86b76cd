"""News: which changes of others a node has not read.

A node remembers a snapshot, which says of each transaction whether it was seen, and which life of the server counted
it. Another server may have replaced it that does not know the last transactions and gives their numbers again. So in
each new life of the server, the whole log of changes is news. That finds what was changed since. What was forgotten is
in no log: then all rows are read again. This shows while the new count is still behind the old one.

A long log is read page by page, in the order of transactions, up to the snapshot of its first page. Rows are read as
they are at that time, so changes between two pages do no harm.
"""

from __future__ import annotations

from typing import Final, LiteralString

from ..connection import sql
from ..statements import Statements
from ..table import JOB, PAUSE, STATE

_LIFE: Final = sql.SQL("floor(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text")
_LAST_SNAPSHOT: Final = sql.SQL("split_part(%(seen)s, ' ', 1)::pg_snapshot")
NOW: Final = sql.SQL("concat_ws(' ', pg_current_snapshot(), {life})").format(life=_LIFE)
"""What has been seen once everything that is there now has been read."""

_SEEN: Final = sql.SQL(
    "CASE WHEN split_part(%(seen)s, ' ', 2) = {life} THEN {last} ELSE '1:1:'::pg_snapshot END"
).format(life=_LIFE, last=_LAST_SNAPSHOT)

IS_FOREIGN: Final = sql.SQL("xid >= pg_snapshot_xmax(pg_current_snapshot())")
"""Of a change: it was made on another server, with a higher count, and came with a dump."""

IS_NEW: Final = sql.SQL(
    "xid >= pg_snapshot_xmin({seen}) AND NOT pg_visible_in_snapshot(xid, {seen}) AND writer IS DISTINCT FROM %(agent)s"
    " AND xid < pg_snapshot_xmax(pg_current_snapshot())"
).format(seen=_SEEN)
"""Of a change: others made it, on this server, and it was not visible in what was last seen."""

IS_BEHIND: Final = sql.SQL("pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax({last})").format(
    last=_LAST_SNAPSHOT
)
"""The server counts fewer transactions than were seen: it has forgotten some."""

_UPTO: Final = sql.SQL(
    "CASE WHEN %(upto)s::text = '' THEN pg_current_snapshot() ELSE split_part(%(upto)s, ' ', 1)::pg_snapshot END"
)
IS_IN_PAGES: Final = sql.SQL(
    "xid < pg_snapshot_xmax({upto}) AND pg_visible_in_snapshot(xid, {upto})"
    " AND (xid, number) > (%(xid)s::xid8, %(number)s)"
).format(upto=_UPTO)
"""Of a change: it is not newer than the first page, and was on none of the pages before."""


def snapshot_of(seen: str) -> str:
    return seen.partition(" ")[0]


def life_of(seen: str) -> str:
    return seen.partition(" ")[2]


class NewsStatements:
    """The statements of news, in one schema."""

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
