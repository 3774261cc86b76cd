from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final, LiteralString

from ..._rows import Batch, Retention, size_of
from ..changes import IS_FOREIGN, MadeStatements, snapshot_of
from ..connection import Asked, Cursor, sql
from ..statements import Statements
from ..table import text_array

Ask = Callable[..., list[Cursor]]
"""Carries out statements in one transaction and round trip."""

ROWS: Final = 2_000

JOBS: Final = 1_000

SHARE_OF_JOB: Final = 16
"""A job's records are recounted after a sixteenth of its bound."""

MOST_COUNTS: Final = 200_000
"""Jobs whose new records are counted in memory. Beyond, the table is counted."""

HOUR_US: Final = 3_600_000_000
DAY_US: Final = 24 * HOUR_US

AS_BY_HAND: Final = sql.SQL("SELECT set_config('timerqueue.agent', '', true)")
"""Our own scheduler must hear of the change."""

BLOCKS: Final = 1_000

SIZE: Final = (
    "200 + octet_length(job_id) + coalesce(octet_length(error), 0) + coalesce(octet_length(trace), 0)"
    " + coalesce(octet_length(result), 0) + coalesce(octet_length(waited), 0)"
)
"""Bytes, roughly."""

OLDEST: Final = (
    "(SELECT job_id, due_us, coalesce(ended_us, due_us) AS ended, {size} AS size FROM {schema}.tick"
    " WHERE outcome <> 'running' AND NOT owed ORDER BY coalesce(ended_us, due_us)) AS oldest"
)


class PruneCandidates:
    """Walks through all jobs once; later reads a job's records only after many new ones."""

    def __init__(self, statements: Statements) -> None:
        self._delete_by_age = _delete(statements, "SELECT job_id, due_us FROM {oldest} WHERE ended < %s LIMIT %s")
        self._delete_by_bytes = _delete(
            statements,
            "SELECT job_id, due_us FROM (SELECT job_id, due_us, sum(size) OVER (ORDER BY ended, job_id, due_us) - size"
            " AS older FROM (SELECT * FROM {oldest} LIMIT %s) AS few) AS summed WHERE older < %s",
        )
        self._delete_by_job = _delete(
            statements,
            "SELECT tick.job_id, tick.due_us"
            " FROM (SELECT given.job_id, (SELECT due_us FROM {schema}.tick WHERE tick.job_id = given.job_id"
            " AND outcome <> 'running' AND NOT owed ORDER BY due_us DESC OFFSET %s LIMIT 1) AS due_us"
            " FROM unnest(%s::text[]) AS given (job_id)) AS last"
            " JOIN {schema}.tick USING (job_id)"
            " WHERE tick.due_us <= last.due_us AND outcome <> 'running' AND NOT owed LIMIT %s",
        )
        self._walk = statements.of(
            "WITH RECURSIVE walk AS ((SELECT job_id FROM {schema}.tick WHERE job_id > %s ORDER BY job_id LIMIT 1)"
            " UNION ALL SELECT (SELECT job_id FROM {schema}.tick AS tick WHERE tick.job_id > walk.job_id"
            " ORDER BY job_id LIMIT 1)"
            " FROM walk WHERE walk.job_id IS NOT NULL)"
            " SELECT job_id FROM walk WHERE job_id IS NOT NULL LIMIT %s"
        )
        self._blocks = statements.of(
            "SELECT pg_relation_size({name}::regclass) / current_setting('block_size')::bigint",
            name=sql.Literal(statements.name_of_tick),
        )
        self._sample = statements.of(
            "SELECT coalesce(sum({size}), 0)::double precision FROM {schema}.tick TABLESAMPLE SYSTEM (%s)",
            size=sql.SQL(SIZE),
        )
        self._changes = statements.of(
            "DELETE FROM {schema}.change WHERE ctid = ANY (ARRAY(SELECT ctid FROM {schema}.change"
            " WHERE made_at < now() - interval '1 hour' AND (pg_visible_in_snapshot(xid, %s::pg_snapshot)"
            " OR {is_foreign}) LIMIT %s))",
            is_foreign=IS_FOREIGN,
        )
        self._votes = statements.of(
            "DELETE FROM {schema}.vote WHERE ctid = ANY (ARRAY(SELECT ctid FROM {schema}.vote WHERE due_us < %s"
            " LIMIT %s FOR UPDATE SKIP LOCKED))"
        )
        self._units = statements.of(
            "DELETE FROM {schema}.unit WHERE ctid = ANY (ARRAY(SELECT ctid FROM {schema}.unit"
            " WHERE until < clock_timestamp() - interval '1 hour' LIMIT %s FOR UPDATE SKIP LOCKED))"
        )
        self._parts = statements.of(
            "DELETE FROM {schema}.job WHERE id = ANY (ARRAY(SELECT id FROM {schema}.labelled_shard"
            " JOIN {schema}.job ON shard = number JOIN {schema}.job_state ON job_id = id"
            " WHERE labelled_shard.labels ~ ' [|] agent process [0-9]+ on ' AND owner IS NULL AND next_us < %s"
            " AND NOT EXISTS (SELECT FROM {schema}.agent"
            " WHERE right(labelled_shard.labels, length(name) + 8) = '| agent ' || name)"
            " ORDER BY id LIMIT %s FOR UPDATE OF job SKIP LOCKED))"
        )
        self._made = MadeStatements(statements)
        self._know_nothing()

    def _know_nothing(self) -> None:
        self._new: dict[str, int] = {}
        self._grown: set[str] = set()
        self._walked: str | None = ""
        """Its last id; None: ended."""
        self._most: int | None = None
        self._bytes: float | None = None
        """The last sample plus later records."""

    def note(self, batch: Batch) -> None:
        for ticks in (batch.ended, batch.missed):
            for tick in ticks:
                self._count(tick.job_id)
            if self._bytes is not None:
                self._bytes += sum(map(size_of, ticks))

    def _count(self, job_id: str) -> None:
        new = self._new.get(job_id, 0) + 1
        if new > (self._most or 0) // SHARE_OF_JOB:
            self._grown.add(job_id)
            self._new.pop(job_id, None)
            return
        self._new[job_id] = new
        if len(self._new) > MOST_COUNTS:
            self._grown.update(self._new)
            self._new.clear()

    def prune(self, ask: Ask, retention: Retention, now_us: int, seen: str) -> int:
        """Delete records over the bounds, and changes an hour old that are visible in `seen`.

        Each kind has its own transaction, so one may fail. Return the number; of changes only a full page counts,
        because a few always grow old. Statements are sent together, because commits wait.
        """
        try:
            gone = self._prune_records(ask, retention, now_us)
        except BaseException:
            self._know_nothing()
            raise
        finally:
            try:
                (changes,) = ask((self._changes, [snapshot_of(seen), ROWS]))
            finally:
                ask(*self._left(now_us))
        return gone + (changes.rowcount if changes.rowcount == ROWS else 0)

    def _prune_records(self, ask: Ask, retention: Retention, now_us: int) -> int:
        gone = 0
        if retention.age is not None:
            (old,) = ask((self._delete_by_age, [now_us - int(retention.age * 1e6), ROWS]))
            gone += old.rowcount
        if retention.per_job is not None:
            gone += self._prune_jobs(ask, retention.per_job)
        if retention.total_bytes is not None:
            gone += self._prune_bytes(ask, retention.total_bytes)
        (made,) = ask(self._made.pruned(retention, now_us))
        return gone + made.rowcount

    def _left(self, now_us: int) -> list[Asked]:
        """Delete counted votes, units of unknown limits, and jobs for processes that have gone.

        No other node will be called `process 7 on web`.
        """
        return [
            (self._votes, [now_us - HOUR_US, ROWS]),
            (self._units, [ROWS]),
            (AS_BY_HAND, []),
            (self._parts, [now_us - DAY_US, ROWS]),
        ]

    def _prune_jobs(self, ask: Ask, most: int) -> int:
        if most != self._most:
            self._most, self._walked = most, ""
        if self._walked is None:
            some = list(islice(self._grown, JOBS))
        else:
            (walked,) = ask((self._walk, [self._walked, JOBS]))
            some = [job_id for (job_id,) in walked]
        gone = 0
        if some:
            (over,) = ask((self._delete_by_job, [most, text_array(some), ROWS]))
            gone = over.rowcount
        if gone < ROWS:
            self._grown.difference_update(some)
            if self._walked is not None:
                self._walked = some[-1] if len(some) == JOBS else None
        return gone

    def _prune_bytes(self, ask: Ask, most: int) -> int:
        """PostgreSQL's own sizes do not shrink with deletes."""
        if self._bytes is not None and self._bytes <= most:
            return 0
        (found,) = ask((self._blocks, []))
        blocks = found.fetchone()
        percent = min(100.0, 100.0 * BLOCKS / max(1, blocks[0] if blocks else 0))
        (found,) = ask((self._sample, [percent]))
        sampled = found.fetchone()
        self._bytes = (sampled[0] if sampled else 0) * 100.0 / percent
        excess = self._bytes - most
        if excess <= 0:
            return 0
        (over,) = ask((self._delete_by_bytes, [ROWS, excess]))
        return over.rowcount


def _delete(statements: Statements, which: LiteralString) -> sql.Composed:
    return statements.of(
        "DELETE FROM {schema}.tick USING ({which}) AS gone"
        " WHERE tick.job_id = gone.job_id AND tick.due_us = gone.due_us",
        which=statements.of(which, oldest=statements.of(OLDEST, size=sql.SQL(SIZE))),
    )
