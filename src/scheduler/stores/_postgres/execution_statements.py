from __future__ import annotations

from typing import Any, Final

from .._executions import PARTS
from .._shards import SHARDS
from .connection import sql
from .locks import Locks
from .statements import Statements
from .table import EXECUTION, JOB, PLACED, PLANNED, STATE, TICK

EXECUTIONS: Final = """
CREATE TABLE {schema}.execution (
    job_id text COLLATE "C" NOT NULL,
    due_us bigint NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'scheduled', 'taken', 'done', 'skipped', 'superseded')),
    schedule text NOT NULL,
    made_us bigint NOT NULL,
    next_due_us bigint,
    instance text,
    number bigint,
    put_us bigint,
    epoch bigint REFERENCES {schema}.agent ON DELETE SET NULL,
    PRIMARY KEY (job_id, due_us)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX execution_live ON {schema}.execution (job_id) WHERE status IN ('pending', 'scheduled');
CREATE UNIQUE INDEX execution_taken ON {schema}.execution (job_id) WHERE status = 'taken';
CREATE INDEX execution_epoch ON {schema}.execution (epoch) WHERE epoch IS NOT NULL;
CREATE INDEX execution_pending ON {schema}.execution (due_us, job_id) WHERE status = 'pending';

-- When a job was last looked at by an audit. No foreign key: an audit waits for nobody who is removing a job.
CREATE TABLE {schema}.audit (
    job_id text COLLATE "C" PRIMARY KEY,
    audited_us bigint NOT NULL
) WITH (fillfactor = 50);
"""

OVERDUE: Final = "CREATE INDEX execution_scheduled ON {schema}.execution (due_us, job_id) WHERE status = 'scheduled';"

GIVEN: Final = sql.SQL("unnest(%s::text[], %s::bigint[]) AS given (job_id, due_us)")
IS_GIVEN: Final = sql.SQL("execution.job_id = given.job_id AND execution.due_us = given.due_us")
IN_PART: Final = sql.SQL(
    "(job.shard BETWEEN %(first)s AND %(last)s OR job.shard > %(highest)s AND job.shard %% %(parts)s = %(part)s)"
)
"""Shards of labels have higher numbers."""

IS_LIVE: Final = sql.SQL("status IN ('pending', 'scheduled')")
LIVE: Final = sql.SQL(", ").join(sql.Identifier("live", column) for column in EXECUTION.types)
STAYS: Final = sql.SQL("execution.status IN ('pending', 'scheduled', 'taken')")


def in_part(part: int) -> dict[str, Any]:
    width = SHARDS // PARTS
    return {
        "first": part * width,
        "last": (part + 1) * width - 1,
        "highest": SHARDS - 1,
        "parts": PARTS,
        "part": part,
    }


class ExecutionStatements:
    """Commits and takes put conditions beyond the key into a CASE, and look up by SELECT of one row.

    PostgreSQL expects few live or taken rows, and might read all for each row of a batch. See `hold_by_keys`.
    """

    def __init__(self, statements: Statements) -> None:
        self.locks = Locks(statements)
        self._of_batches(statements)
        self._of_taking(statements)
        self._of_reading(statements)
        self._of_audits(statements)
        self._around_audits(statements)
        self._of_finding(statements)

    def _of_batches(self, statements: Statements) -> None:
        of, whole = statements.of, EXECUTION.qualified
        self.place = of(
            "UPDATE {schema}.execution SET instance = given.instance, number = given.number, put_us = given.put_us,"
            " status = CASE status WHEN 'pending' THEN 'scheduled' ELSE status END FROM {rows}"
            " WHERE {is_given} AND CASE WHEN {stays} THEN true END",
            PLACED,
            is_given=IS_GIVEN,
            stays=STAYS,
        )
        self.lose = of(
            "UPDATE {schema}.execution SET status = 'pending', instance = NULL, number = NULL, put_us = NULL"
            " FROM {rows} WHERE {is_given} AND CASE WHEN status = 'scheduled'"
            " AND execution.instance = given.instance AND execution.number = given.number THEN true END",
            PLACED,
            is_given=IS_GIVEN,
        )
        self.forget_done = of(
            "DELETE FROM {schema}.execution USING {given} JOIN {schema}.execution AS taken USING (job_id, due_us)"
            " WHERE execution.job_id = taken.job_id"
            " AND CASE WHEN taken.status = 'taken' AND taken.epoch = %s THEN execution.status = 'done' END",
            given=GIVEN,
        )
        self.release = of(
            "UPDATE {schema}.execution SET status = 'done', epoch = NULL FROM {given}"
            " WHERE {is_given} AND CASE WHEN status = 'taken' AND epoch = %s THEN true END",
            given=GIVEN,
            is_given=IS_GIVEN,
        )
        self.give_way = of(
            "UPDATE {schema}.execution SET status = CASE WHEN given.skips THEN 'skipped' WHEN"
            " (SELECT true FROM {schema}.tick WHERE tick.job_id = execution.job_id AND tick.due_us = execution.due_us)"
            " THEN 'done' ELSE 'superseded' END FROM {rows} WHERE execution.job_id = given.job_id"
            " AND CASE WHEN {is_live} THEN execution.due_us IS DISTINCT FROM given.due_us END RETURNING {whole}",
            PLANNED,
            is_live=IS_LIVE,
            whole=whole,
        )
        self.plan = of(
            "INSERT INTO {schema}.execution (job_id, due_us, status, schedule, made_us, next_due_us)"
            " SELECT job_id, due_us, 'pending', schedule, made_us, next_due_us FROM {rows} WHERE due_us IS NOT NULL"
            " AND (SELECT true FROM {schema}.job WHERE job.id = given.job_id)"
            " ON CONFLICT (job_id, due_us) DO UPDATE SET schedule = excluded.schedule,"
            " next_due_us = excluded.next_due_us,"
            " status = CASE WHEN {stays} THEN execution.status ELSE 'pending' END,"
            " made_us = CASE WHEN {stays} THEN execution.made_us ELSE excluded.made_us END,"
            " instance = CASE WHEN {stays} THEN execution.instance END,"
            " number = CASE WHEN {stays} THEN execution.number END,"
            " put_us = CASE WHEN {stays} THEN execution.put_us END"
            " RETURNING {whole}",
            PLANNED,
            whole=whole,
            stays=STAYS,
        )

    def _of_taking(self, statements: Statements) -> None:
        of = statements.of
        self.lock_jobs = statements.lock_jobs
        self.end_left = of(
            "UPDATE {schema}.execution SET status = 'done'"
            " FROM {given} WHERE execution.job_id = given.job_id AND CASE WHEN execution.due_us <> given.due_us"
            " AND status = 'taken' AND epoch IS NULL THEN (SELECT true FROM {schema}.execution AS asked"
            " WHERE asked.job_id = given.job_id AND asked.due_us = given.due_us AND asked.{is_live}) END",
            given=GIVEN,
            is_live=IS_LIVE,
        )
        self.take = of(
            "UPDATE {schema}.execution SET status = 'taken', epoch = %s FROM {given} WHERE {is_given}"
            " AND CASE WHEN {is_live} OR status = 'taken' AND epoch IS NULL"
            " THEN (SELECT true FROM {schema}.job WHERE job.id = given.job_id)"
            " AND (SELECT true FROM {schema}.execution AS other WHERE other.job_id = given.job_id"
            " AND other.due_us <> given.due_us AND other.status = 'taken') IS NULL END",
            given=GIVEN,
            is_given=IS_GIVEN,
            is_live=IS_LIVE,
        )
        self.end_all_left = of(
            "UPDATE {schema}.execution SET status = 'done'"
            " WHERE job_id = ANY (%s::text[]) AND status = 'taken' AND epoch IS NULL"
        )
        self.fetch = of(
            "INSERT INTO {schema}.execution (job_id, due_us, status, schedule, made_us, epoch)"
            " SELECT id, %(now_us)s, 'taken', schedule, %(now_us)s, %(epoch)s FROM {schema}.job"
            " WHERE id = ANY (%(ids)s::text[]) AND NOT EXISTS (SELECT FROM {schema}.execution"
            " WHERE job_id = job.id AND status = 'taken') ON CONFLICT (job_id, due_us) DO NOTHING"
        )
        self.fetched = of(
            "SELECT held.due_us, {job}, {state}, {live} FROM {schema}.job"
            " LEFT JOIN {schema}.job_state ON job_state.job_id = job.id"
            " LEFT JOIN {schema}.execution AS live ON live.job_id = job.id AND live.{is_live}"
            " LEFT JOIN {schema}.execution AS held ON held.job_id = job.id AND held.status = 'taken'"
            " AND held.epoch = %s WHERE job.id = ANY (%s::text[])",
            job=JOB.qualified,
            state=STATE.qualified,
            live=LIVE,
            is_live=IS_LIVE,
        )
        self.asked = of(
            "SELECT given.job_id, given.due_us, status, epoch, {job}, {state} FROM {given}"
            " LEFT JOIN {schema}.execution USING (job_id, due_us) LEFT JOIN {schema}.job ON job.id = given.job_id"
            " LEFT JOIN {schema}.job_state ON job_state.job_id = given.job_id",
            given=GIVEN,
            job=JOB.qualified,
            state=STATE.qualified,
        )
        self.lost = of(
            "SELECT {columns} FROM {schema}.tick WHERE job_id = ANY (%s::text[]) AND outcome = 'running'"
            " UNION ALL SELECT {columns} FROM {schema}.tick WHERE job_id = ANY (%s::text[]) AND owed",
            TICK,
        )

    def _of_reading(self, statements: Statements) -> None:
        of = statements.of
        self.waiting = of(
            "SELECT {columns} FROM {schema}.execution WHERE status = %s AND due_us < %s AND (due_us, job_id) > (%s, %s)"
            " ORDER BY due_us, job_id LIMIT %s",
            EXECUTION,
        )
        self.taken = of("SELECT {columns} FROM {schema}.execution WHERE epoch = %s AND status = 'taken'", EXECUTION)
        self.of_job = of("SELECT {columns} FROM {schema}.execution WHERE job_id = %s ORDER BY due_us DESC", EXECUTION)
        self.wheres = of(
            "SELECT id, {schema}.where_of(options) FROM {schema}.job WHERE id = ANY (%s::text[]) AND shard >= 1024"
        )
        self.last_audit = of("SELECT audited_us FROM {schema}.audit WHERE job_id = %s")
        self.unaudited = of(
            "SELECT id, audited_us FROM {schema}.job LEFT JOIN {schema}.audit ON job_id = id"
            " WHERE {is_enabled} AND (audited_us IS NULL OR audited_us < %(since_us)s)"
            " ORDER BY audited_us NULLS FIRST, id LIMIT %(limit)s",
            is_enabled=_is_enabled(statements),
        )

    def _of_audits(self, statements: Statements) -> None:
        of = statements.of
        free = of(
            " LEFT JOIN {schema}.execution AS live ON live.job_id = job.id AND live.{is_live}"
            " WHERE NOT EXISTS (SELECT FROM {schema}.execution AS taken WHERE taken.job_id = job.id"
            " AND taken.status = 'taken' AND taken.epoch IS NOT NULL)",
            is_live=IS_LIVE,
        )
        standing = of(
            "SELECT EXISTS (SELECT FROM {schema}.tick WHERE tick.job_id = job.id AND tick.owed), {job}, {state}, {live}"
            " FROM {schema}.job LEFT JOIN {schema}.job_state ON job_state.job_id = job.id{free}",
            job=JOB.qualified,
            state=STATE.qualified,
            live=LIVE,
            free=free,
        )
        is_broken = of(
            "CASE WHEN live.job_id IS NULL THEN (job.paused IS NULL OR job.paused_until_us IS NOT NULL)"
            " AND NOT EXISTS (SELECT FROM {schema}.pause WHERE scope = %(everything)s)"
            " ELSE live.schedule <> job.schedule"
            " OR job.paused IS NOT NULL AND live.due_us IS DISTINCT FROM job.paused_until_us END"
        )
        self.standing = of(
            "{standing} AND job.id = ANY (%s::text[]) ORDER BY job.id FOR NO KEY UPDATE OF job", standing=standing
        )
        self.without_job = of(
            "SELECT {columns} FROM {schema}.execution WHERE job_id = ANY (%s::text[]) AND {is_live}"
            " AND NOT EXISTS (SELECT FROM {schema}.job WHERE job.id = execution.job_id)",
            EXECUTION,
            is_live=IS_LIVE,
        )
        self.lock_broken = of(
            "SELECT job.id FROM {schema}.job{free} AND {in_part} AND job.id > %(after)s AND {is_broken}"
            " ORDER BY job.id LIMIT %(limit)s FOR NO KEY UPDATE OF job SKIP LOCKED",
            free=free,
            in_part=IN_PART,
            is_broken=is_broken,
        )
        self.broken = of(
            "{standing} AND job.id = ANY (%(ids)s::text[]) AND {is_broken} ORDER BY job.id",
            standing=standing,
            is_broken=is_broken,
        )

    def _around_audits(self, statements: Statements) -> None:
        of = statements.of
        self.try_lock = of("SELECT pg_try_advisory_xact_lock(hashtext(%s), %s)")
        self.supersede_removed = of(
            "UPDATE {schema}.execution SET status = 'superseded' WHERE {is_live}"
            " AND NOT EXISTS (SELECT FROM {schema}.job WHERE job.id = execution.job_id) RETURNING {columns}",
            EXECUTION,
            is_live=IS_LIVE,
        )
        self.forget_audits = of(
            "DELETE FROM {schema}.audit WHERE NOT EXISTS (SELECT FROM {schema}.job WHERE job.id = audit.job_id)"
        )
        self.stamp = of(
            "WITH audited AS (INSERT INTO {schema}.audit (job_id, audited_us) SELECT id, %(now_us)s FROM {schema}.job"
            " WHERE {in_part} AND {is_enabled} ON CONFLICT (job_id) DO UPDATE SET audited_us = excluded.audited_us"
            " RETURNING job_id) SELECT count(*) FROM audited",
            in_part=IN_PART,
            is_enabled=_is_enabled(statements),
        )

    def _of_finding(self, statements: Statements) -> None:
        of = statements.of
        pending = sql.SQL("status = 'pending', instance = NULL, number = NULL, put_us = NULL")
        # Two statements, each by its partial index. With OR, a server without statistics of the tables takes ten times
        # as long for all later statements. Each passes over locked jobs: a node that takes them waits for no audit.
        found = of(
            "(SELECT job.id FROM {schema}.job JOIN {schema}.execution ON execution.job_id = job.id WHERE {in_part}",
            in_part=IN_PART,
        )
        self.find_lost = of(
            "UPDATE {schema}.execution SET {pending} FROM {found} AND status = 'scheduled'"
            " AND instance IS DISTINCT FROM %(instance)s FOR NO KEY UPDATE OF job SKIP LOCKED) AS found"
            " WHERE execution.job_id = found.id AND status = 'scheduled' AND instance IS DISTINCT FROM %(instance)s",
            pending=pending,
            found=found,
        )
        self.find_left = of(
            "UPDATE {schema}.execution SET {pending} FROM {found} AND status = 'taken' AND epoch IS NULL"
            " FOR NO KEY UPDATE OF job SKIP LOCKED) AS found WHERE execution.job_id = found.id"
            " AND status = 'taken' AND epoch IS NULL AND NOT EXISTS (SELECT FROM {schema}.execution AS live"
            " WHERE live.job_id = execution.job_id AND live.{is_live})",
            pending=pending,
            found=found,
            is_live=IS_LIVE,
        )
        self.give_way_to_left = of(
            "UPDATE {schema}.execution SET status = 'superseded' FROM {found} AND status = 'taken' AND epoch IS NULL"
            " FOR NO KEY UPDATE OF job SKIP LOCKED) AS found WHERE execution.job_id = found.id AND {is_live}"
            " RETURNING {whole}",
            found=found,
            is_live=IS_LIVE,
            whole=EXECUTION.qualified,
        )


def _is_enabled(statements: Statements) -> sql.Composed:
    return statements.of("job.paused IS NULL AND NOT EXISTS (SELECT FROM {schema}.pause WHERE scope = %(everything)s)")
