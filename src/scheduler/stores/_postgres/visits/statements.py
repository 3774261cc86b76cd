from __future__ import annotations

from ...._values import EVERYTHING
from ..._rows import Act
from ..._sharing import LEASE
from ..connection import sql
from ..execution_statements import IN_PART
from ..statements import Statements


class VisitStatements:
    def __init__(self, statements: Statements) -> None:
        of = statements.of
        act = sql.Literal(Act.AUDIT.value)
        self.now = sql.SQL("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        self.is_queued = of(
            "SELECT EXISTS (SELECT FROM {schema}.execution WHERE status IN ('pending', 'scheduled', 'taken'))"
        )
        until_us = sql.SQL("floor(extract(epoch FROM until) * 1000000)::bigint")
        self.ended = of(
            "SELECT epoch, {until_us} FROM {schema}.agent JOIN {schema}.lease USING (epoch)"
            " WHERE until < clock_timestamp() - {lease} * interval '1s'",
            until_us=until_us,
            lease=sql.Literal(LEASE),
        )
        self.bury = of(
            "DELETE FROM {schema}.agent WHERE epoch IN (SELECT epoch FROM {schema}.agent JOIN {schema}.lease"
            " USING (epoch) JOIN unnest(%s::bigint[], %s::bigint[]) AS ended (epoch, until_us) USING (epoch)"
            " WHERE {until_us} = until_us FOR UPDATE OF agent SKIP LOCKED) RETURNING coalesce(name, '')",
            until_us=until_us,
        )
        self.tell = sql.SQL("SELECT pg_notify(%s, %s)")
        # A job whose tag may be paused is not doubtful. Missing a doubtful job does no harm.
        is_planned = of(
            "job.paused IS NULL AND NOT EXISTS (SELECT FROM {schema}.pause WHERE scope = {everything}"
            " OR position(to_json(substr(scope, 5))::text IN job.tags) > 0)",
            everything=sql.Literal(EVERYTHING),
        )
        self.doubted = of(
            "SELECT job.id, CASE WHEN due_us IS NULL THEN 'without a next start' ELSE 'late' END, due_us, owner"
            " FROM {schema}.job JOIN {schema}.job_state ON job_id = job.id JOIN {owned} AS owned ON number = shard"
            " CROSS JOIN LATERAL (SELECT CASE WHEN coalesce(next_us, retry_at_us) IS NOT NULL"
            " THEN greatest(least(next_us, retry_at_us), not_before_us) END) AS planned (due_us)"
            " WHERE {in_part} AND (shard <= %(highest)s OR owner IS NOT NULL) AND {is_planned}"
            " AND (due_us IS NULL OR due_us < %(before_us)s)"
            " AND NOT EXISTS (SELECT FROM {schema}.tick WHERE tick.job_id = job.id AND outcome = 'running')"
            " AND NOT EXISTS (SELECT FROM {schema}.tick WHERE tick.job_id = job.id AND owed)"
            " UNION ALL SELECT job_id, 'run by nobody', due_us, owner FROM {schema}.tick"
            " JOIN {schema}.job ON job.id = job_id JOIN {owned} AS owned ON number = shard WHERE outcome = 'running'"
            " AND {in_part}"
            " AND NOT EXISTS (SELECT FROM {schema}.agent WHERE epoch = fence >> 32) ORDER BY 1, 3 LIMIT %(limit)s",
            is_planned=is_planned,
            in_part=IN_PART,
            owned=statements.owned,
        )
        self.ask = of(
            "INSERT INTO {schema}.request (number, job_id, act, at_us)"
            " SELECT -1 - floor(random() * 4611686018427387904)::bigint, job_id, {act}, at_us"
            " FROM unnest(%s::text[], %s::bigint[]) AS given (job_id, at_us) RETURNING number",
            act=act,
        )
        self.answers = of(
            "SELECT job_id, done_at IS NOT NULL, reason FROM {schema}.request WHERE number = ANY (%s::bigint[])"
        )
        self.withdraw = of("DELETE FROM {schema}.request WHERE number = ANY (%s::bigint[]) AND done_at IS NULL")
