from __future__ import annotations

from functools import cached_property
from typing import Any, Final, LiteralString

from .connection import sql
from .table import JOB, JOB_BUT_ITS_PAUSE, MADE, PAUSE, REQUEST, STATE, TICK, StoreTable

HAND_OVERS: Final = """
ALTER TABLE {schema}.agent ADD COLUMN version text;
CREATE TABLE {schema}.hand_over (
    epoch bigint PRIMARY KEY,
    name text NOT NULL,
    is_dead boolean NOT NULL,
    since timestamptz NOT NULL,
    went timestamptz NOT NULL DEFAULT clock_timestamp(),
    shards integer NOT NULL,
    claimed integer NOT NULL DEFAULT 0,
    claimed_at timestamptz
);
-- Who goes by itself says so by a setting. The last sign of life of one that does not is the last renewal of its lease.
CREATE FUNCTION {schema}.agent_goes() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    leaves boolean := coalesce(current_setting('timerqueue.goes', true), '') > '';
BEGIN
    INSERT INTO {schema}.hand_over (epoch, name, is_dead, since, shards)
        SELECT OLD.epoch, coalesce(OLD.name, ''), NOT leaves,
            CASE WHEN leaves THEN clock_timestamp() ELSE until - interval '3s' END, number
        FROM {schema}.lease, (SELECT count(*) AS number FROM {schema}.shard WHERE owner = OLD.epoch) AS theirs
        WHERE epoch = OLD.epoch AND number > 0
        ON CONFLICT DO NOTHING;
    DELETE FROM {schema}.hand_over
        WHERE went < (SELECT went FROM {schema}.hand_over ORDER BY went DESC OFFSET 19 LIMIT 1);
    RETURN OLD;
END
$body$;
CREATE TRIGGER agent_goes BEFORE DELETE ON {schema}.agent FOR EACH ROW EXECUTE FUNCTION {schema}.agent_goes();
CREATE FUNCTION {schema}.shards_are_claimed() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    claims integer := (SELECT count(*) FROM before JOIN after USING (number)
        WHERE before.owner IS NULL AND after.owner IS NOT NULL);
BEGIN
    IF claims > 0 THEN
        UPDATE {schema}.hand_over SET claimed = least(shards, claimed + claims), claimed_at = clock_timestamp()
            WHERE claimed < shards;
    END IF;
    RETURN NULL;
END
$body$;
CREATE TRIGGER shards_are_claimed AFTER UPDATE ON {schema}.shard REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.shards_are_claimed();
"""

LABELLED: Final = """
CREATE FUNCTION {schema}.where_of(options text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $body$
BEGIN
    IF options NOT LIKE '%"where"%' THEN
        RETURN NULL;
    END IF;
    BEGIN
        RETURN options::jsonb ->> 'where';
    EXCEPTION WHEN OTHERS THEN
        RETURN NULL;
    END;
END
$body$;
CREATE FUNCTION {schema}.shard_of(place text, labels text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $body$
    SELECT CASE WHEN labels IS NULL THEN {schema}.shard_of(place)
        ELSE 1024 + ((('x' || left(md5(labels), 12))::bit(48)::bigint << 4)
            | (('x' || left(md5(place), 8))::bit(32)::bigint & 15)) END
$body$;
ALTER TABLE {schema}.job DROP COLUMN shard, ADD COLUMN shard bigint NOT NULL GENERATED ALWAYS AS
    ({schema}.shard_of({schema}.place_of(id, options), {schema}.where_of(options))) STORED;
CREATE INDEX job_shard ON {schema}.job (shard);

CREATE TABLE {schema}.labelled_shard (
    number bigint PRIMARY KEY,
    labels text COLLATE "C" NOT NULL,
    owner bigint REFERENCES {schema}.agent ON DELETE SET NULL
) WITH (fillfactor = 50);
CREATE INDEX labelled_shard_owner ON {schema}.labelled_shard (owner);
CREATE FUNCTION {schema}.make_labelled_shards() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    IF NOT EXISTS (SELECT FROM new_rows WHERE shard >= 1024) THEN
        RETURN NULL;
    END IF;
    INSERT INTO {schema}.labelled_shard (number, labels)
        SELECT DISTINCT ON (shard) shard, {schema}.where_of(options) FROM new_rows WHERE shard >= 1024 ORDER BY shard
        ON CONFLICT DO NOTHING;
    IF FOUND THEN
        PERFORM pg_notify(TG_TABLE_SCHEMA, 'fleet');
    END IF;
    RETURN NULL;
END
$body$;
CREATE TRIGGER make_labelled_shards AFTER INSERT ON {schema}.job REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.make_labelled_shards();
CREATE TRIGGER make_more_labelled_shards AFTER UPDATE ON {schema}.job REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.make_labelled_shards();
"""
"""Such shards exist once a job asks for them: `shard_of`."""


class Statement(sql.Composed):
    """A statement composed once. The driver takes up to 0.2 ms per use."""

    @cached_property
    def _text(self) -> bytes:
        return super().as_bytes(None)

    def as_bytes(self, context: Any = None) -> bytes:  # noqa: ARG002 - the text is the same for all
        return self._text


class Statements:
    def __init__(self, schema: str, *, shared: bool = False) -> None:
        self._schema = sql.Identifier(schema)
        self.name_of_tick = sql.Identifier(schema, "tick").as_string()
        self.owned = self.of(
            "(SELECT number, owner FROM {schema}.shard UNION ALL SELECT number, owner FROM {schema}.labelled_shard)"
        )
        self.take_epoch = self.of("UPDATE {schema}.meta SET epoch = greatest(epoch, %s) + 1 RETURNING epoch, instance")
        self.add_agent = self.of(
            "INSERT INTO {schema}.agent (epoch, name, opened_us, labels, version) VALUES (%s, %s, %s, %s, %s)"
            " RETURNING incarnation"
        )
        ours: LiteralString = (
            " FROM {schema}.agent, {schema}.meta WHERE agent.epoch = %s AND agent.incarnation = %s"
            " AND meta.instance = %s"
        )
        locked: LiteralString = " FOR NO KEY UPDATE OF agent"
        self.hold = self.of("SELECT" + ours + locked)
        # Commits and takes ask by key. PostgreSQL guesses, and would rather read the whole table of jobs for a few
        # hundred rows. With such plans off it thinks the others expensive, and would compile them: so no jit either.
        by_keys: LiteralString = ", ".join(
            f"set_config('{name}', 'off', true)"
            for name in ("enable_hashjoin", "enable_mergejoin", "enable_seqscan", "jit")
        )
        self.hold_by_keys = self.of("SELECT " + by_keys + ours + locked)
        self.begin_session = self.of("UPDATE {schema}.agent SET session = %s WHERE epoch = %s AND incarnation = %s")
        # Fails if there is no such row, because nothing that was sent with it may be carried out.
        numbered: LiteralString = by_keys + ours + " AND agent.session = %s" + locked
        self.hold_session = self.of("WITH held AS (SELECT " + numbered + ") SELECT 1 / count(*) FROM held")  # noqa: S608 - our own names
        self.who = self.of(
            "SELECT instance, epoch, EXISTS (SELECT FROM {schema}.agent WHERE agent.epoch = %s AND incarnation = %s),"
            " (SELECT name FROM {schema}.agent ORDER BY epoch DESC LIMIT 1), pg_backend_pid() FROM {schema}.meta"
        )
        self.is_ours = self.of(
            "EXISTS (SELECT FROM {schema}.agent WHERE epoch = %(me)s AND incarnation = %(incarnation)s)"
        )
        self.put_jobs = self._put(JOB_BUT_ITS_PAUSE if shared else JOB)
        self.change_jobs = self._put(
            JOB_BUT_ITS_PAUSE if shared else JOB, "WHERE (SELECT true FROM {schema}.job WHERE job.id = given.id)"
        )
        self.pause_jobs = self.of(
            "UPDATE {schema}.job SET paused = given.paused, paused_until_us = given.paused_until_us"
            " FROM unnest(%s::text[], %s::text[], %s::bigint[]) AS given (id, paused, paused_until_us)"
            " WHERE job.id = given.id"
        )
        self.lock_jobs = self.of("SELECT FROM {schema}.job WHERE id = ANY (%s::text[]) ORDER BY id FOR NO KEY UPDATE")
        self.lock_states = self.of(
            "SELECT FROM {schema}.job_state WHERE job_id = ANY (%s::text[]) ORDER BY job_id FOR UPDATE"
        )
        self.remove_jobs = self.of("DELETE FROM {schema}.job WHERE id = ANY (%s::text[])")
        self.finish_jobs = self.of(
            "DELETE FROM {schema}.job USING unnest(%s::text[], %s::text[]) AS given (id, schedule)"
            " WHERE job.id = given.id AND job.schedule = given.schedule"
        )
        self.put_pauses = self._put(PAUSE)
        self.remove_pauses = self.of("DELETE FROM {schema}.pause WHERE scope = ANY (%s::text[])")
        # By a row, not by EXISTS, which PostgreSQL answers by reading all jobs if the batch is large.
        self.put_states = self._put(STATE, "WHERE (SELECT true FROM {schema}.job WHERE job.id = given.job_id)")
        self.put_ended = self._put(TICK, then="WHERE tick.fence = excluded.fence RETURNING job_id, due_us")
        self.put_missed = self.of(
            "INSERT INTO {schema}.tick ({columns}) SELECT * FROM {rows} ON CONFLICT DO NOTHING", TICK
        )
        self.put_marks = self._put(
            TICK,
            then="WHERE tick.fence = excluded.fence OR (tick.attempt < excluded.attempt"
            " AND tick.outcome NOT IN ('running', 'missed')) RETURNING job_id, due_us",
        )
        self.fences = self.of(
            "SELECT job_id, due_us, fence FROM {schema}.tick"
            " JOIN unnest(%s::text[], %s::bigint[]) AS given (job_id, due_us) USING (job_id, due_us)"
        )
        self.put_made = self.of(
            "INSERT INTO {schema}.made_change ({columns}) SELECT * FROM {rows} ON CONFLICT DO NOTHING", MADE
        )
        self._set_reads()
        self._set_requests(schema)
        self._set_fleet()

    def _set_reads(self) -> None:
        self.declare_load = self.of(
            "DECLARE jobs NO SCROLL CURSOR FOR SELECT {job}, {state} FROM {schema}.job"
            " LEFT JOIN {schema}.job_state ON job_state.job_id = job.id"
            " ORDER BY job_state.job_id IS NULL, least(job_state.next_us, job_state.retry_at_us), job.id",
            job=JOB.qualified,
            state=STATE.qualified,
        )
        self.fetch_load = sql.SQL("FETCH 1000 FROM jobs")
        self.history = self.of(
            "SELECT {columns} FROM {schema}.tick WHERE due_us < %s ORDER BY due_us DESC LIMIT %s", TICK
        )
        self.history_of_job = self.of(
            "SELECT {columns} FROM {schema}.tick WHERE job_id = %s AND due_us < %s ORDER BY due_us DESC LIMIT %s", TICK
        )
        self.standing = self.of(
            "SELECT {job}, {state} FROM {schema}.job"
            " LEFT JOIN {schema}.job_state ON job_state.job_id = job.id WHERE job.id = %s",
            job=JOB.qualified,
            state=STATE.qualified,
        )
        self.pauses = self.of("SELECT {columns} FROM {schema}.pause", PAUSE)
        self.owed = self.of("SELECT {columns} FROM {schema}.tick WHERE owed", TICK)
        self.running = self.of("SELECT {columns} FROM {schema}.tick WHERE outcome = 'running'", TICK)

    def _set_requests(self, schema: str) -> None:
        self.add_jobs = self.of(
            "INSERT INTO {schema}.job ({columns}) SELECT * FROM {rows} ON CONFLICT DO NOTHING RETURNING id", JOB
        )
        self.jobs_of = self.of("SELECT {columns} FROM {schema}.job WHERE id = ANY (%s::text[])", JOB)
        self.begin_states = self.of(
            "INSERT INTO {schema}.job_state ({columns}) SELECT * FROM {rows} ON CONFLICT DO NOTHING", STATE
        )
        self.ask = self.of(
            "INSERT INTO {schema}.request ({columns}) SELECT * FROM {rows} ON CONFLICT DO NOTHING", REQUEST
        )
        self.done = self.of(
            "UPDATE {schema}.request SET done_at = coalesce(done_at, clock_timestamp()), due_us = given.due_us,"
            " reason = given.reason"
            " FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) AS given (number, due_us, reason)"
            " WHERE request.number = given.number"
        )
        # By rows, not by EXISTS, as above, and each of the two by its index.
        self.forget_requests = self.of(
            "WITH forgotten AS (DELETE FROM {schema}.request WHERE done_at < now() - interval '10 minutes'"
            " AND (SELECT true FROM {schema}.tick WHERE tick.job_id = request.job_id"
            " AND tick.due_us = request.due_us AND (outcome = 'running' OR owed)) IS NULL"
            " AND (SELECT true FROM {schema}.job_state WHERE job_state.job_id = request.job_id"
            " AND retry_due_us = request.due_us) IS NULL)"
            " DELETE FROM {schema}.request WHERE done_at IS NULL"
            " AND (SELECT true FROM {schema}.job WHERE id = request.job_id) IS NULL"
        )
        self.tell = sql.SQL("SELECT pg_notify({}, 'news')").format(sql.Literal(schema))
        self.answers = self.of(
            "SELECT given.number, done_at IS NOT NULL, job.id IS NULL, request.due_us, request.reason,"
            " owed OR retry_due_us = request.due_us, {qualified}"
            " FROM unnest(%s::bigint[]) AS given (number) LEFT JOIN {schema}.request USING (number)"
            " LEFT JOIN {schema}.job ON job.id = job_id LEFT JOIN {schema}.job_state ON job_state.job_id = job.id"
            " LEFT JOIN {schema}.tick ON tick.job_id = request.job_id AND tick.due_us = request.due_us",
            qualified=TICK.qualified,
        )

    def _set_fleet(self) -> None:
        self.agents = self.of(
            "SELECT coalesce(agent.name, ''), epoch, labels, opened_us, format,"
            " extract(epoch FROM until - clock_timestamp())::float8,"
            " (SELECT count(*) FROM {schema}.shard WHERE owner = epoch), count(job.id),"
            " coalesce(greatest(0, extract(epoch FROM clock_timestamp())"
            " - min(least(next_us, retry_at_us)) FILTER (WHERE job.paused IS NULL AND NOT EXISTS"
            " (SELECT FROM {schema}.pause WHERE scope = '*'"
            " OR position(to_json(substr(scope, 5))::text IN job.tags) > 0)) / 1e6), 0)::float8,"
            " skew, coalesce(is_off, false), version, connections"
            " FROM {schema}.agent LEFT JOIN {schema}.lease USING (epoch) LEFT JOIN {owned} AS owned ON owner = epoch"
            " LEFT JOIN {schema}.job ON job.shard = owned.number LEFT JOIN {schema}.job_state ON job_id = job.id"
            " GROUP BY epoch, agent.name, labels, opened_us, format, until, skew, is_off, version, connections"
            " ORDER BY epoch",
            owned=self.owned,
        )
        self.without_owner = self.of(
            "SELECT labels, count(*) FROM {schema}.labelled_shard JOIN {schema}.job ON shard = number"
            " WHERE owner IS NULL GROUP BY labels ORDER BY labels"
        )
        self.hand_overs = self.of(
            "SELECT name, epoch, is_dead, extract(epoch FROM clock_timestamp() - went)::float8, shards, claimed,"
            " extract(epoch FROM claimed_at - since)::float8 FROM {schema}.hand_over ORDER BY went DESC"
        )
        self.open_work = self.of(
            "SELECT (SELECT count(*) FROM {schema}.shard WHERE owner IS NULL),"
            " (SELECT count(*) FROM {schema}.request WHERE done_at IS NULL)"
        )

    def of(self, text: LiteralString, table: StoreTable | None = None, **parts: sql.Composable) -> Statement:
        if table is not None:
            parts |= {"columns": table.columns, "rows": table.rows, "table": sql.SQL(table.name)}
        return Statement(list(sql.SQL(text).format(schema=self._schema, **parts)))

    def _put(self, table: StoreTable, only: LiteralString = "", then: LiteralString = "") -> sql.Composed:
        return self.of(
            "INSERT INTO {schema}.{table} ({columns}) SELECT * FROM {rows} {only} ON CONFLICT {replacement} {then}",
            table,
            only=self.of(only),
            replacement=table.replacement,
            then=sql.SQL(then),
        )


class ShardStatements:
    def __init__(self, statements: Statements) -> None:
        of = statements.of
        job, state = JOB.qualified, STATE.qualified
        some_jobs = of(  # OFFSET 0: each state by its key, and never all states for the jobs of some shards
            "SELECT {job}, {state} FROM {schema}.job LEFT JOIN LATERAL (SELECT * FROM {schema}.job_state"
            " WHERE job_state.job_id = job.id OFFSET 0) AS job_state ON true WHERE job.shard = ANY (%s::bigint[])",
            job=job,
            state=state,
        )
        due = of("least(job_state.next_us, job_state.retry_at_us)")
        order = of("ORDER BY job_state.job_id IS NULL, {due}, job.id", due=due)
        self.ids = of(
            "SELECT id FROM {schema}.job LEFT JOIN {schema}.job_state ON job_state.job_id = job.id"
            " WHERE job.shard = ANY (%s::bigint[]) {order}",
            order=order,
        )
        self.other_ids = of("SELECT id FROM {schema}.job WHERE shard <> ALL (%s::bigint[])")
        self.page = of(
            "SELECT {job}, {state} FROM unnest(%s::text[]) WITH ORDINALITY AS given (id, place)"
            " JOIN {schema}.job ON job.id = given.id LEFT JOIN LATERAL (SELECT * FROM {schema}.job_state"
            " WHERE job_state.job_id = job.id OFFSET 0) AS job_state ON true"
            " WHERE (job.shard = ANY (%s::bigint[])) = %s ORDER BY place",
            job=job,
            state=state,
        )
        self.first_jobs = of("{jobs} AND (%s OR {due} <= %s) {order} LIMIT %s", jobs=some_jobs, due=due, order=order)
        self.running = of(
            "SELECT {columns} FROM {schema}.tick LEFT JOIN {schema}.job ON job.id = job_id WHERE outcome = 'running'"
            " AND coalesce(shard, {schema}.shard_of(job_id)) = ANY (%s::bigint[])",
            TICK,
        )
        self.owed = of(
            "SELECT {columns} FROM {schema}.tick LEFT JOIN {schema}.job ON job.id = job_id WHERE owed"
            " AND coalesce(shard, {schema}.shard_of(job_id)) = ANY (%s::bigint[])",
            TICK,
        )
        owes: LiteralString = "{jobs} AND job.id IN (SELECT tick.job_id FROM {schema}.tick WHERE owed) {order} LIMIT %s"
        self.owing_jobs = of(owes, jobs=some_jobs, order=order)  # due at once, whenever they start next
        self._set_owners(statements)

    def _set_owners(self, statements: Statements) -> None:
        of = statements.of
        give: LiteralString = (
            "UPDATE {schema}.{where} SET owner = epoch FROM given JOIN (SELECT number FROM {schema}.{where}"
            " WHERE owner IS NULL FOR UPDATE SKIP LOCKED) AS free USING (number)"
            " WHERE {where}.number = free.number RETURNING {where}.number, owner"
        )
        self.give = of(  # a session that has locked a row of these gives it too, so no session waits
            "WITH given AS (SELECT number, epoch FROM unnest(%s::bigint[], %s::bigint[]) AS asked (number, epoch)"
            " JOIN {schema}.agent USING (epoch) WHERE coalesce(incarnation = %s, true)),"
            " one AS ({give}), other AS ({give_labelled})"
            " SELECT number, owner FROM one UNION ALL SELECT number, owner FROM other",
            give=of(give, where=sql.SQL("shard")),
            give_labelled=of(give, where=sql.SQL("labelled_shard")),
        )
        empty = of("(owner IS NULL OR owner = %(me)s) AND NOT EXISTS (SELECT FROM {schema}.job WHERE shard = number)")
        self.empty = of("SELECT number FROM {schema}.labelled_shard WHERE {empty}", empty=empty)
        self.keep_jobs = of(  # the lock is short, so no session waits long for it or behind it
            "SET LOCAL lock_timeout = 100; LOCK TABLE {schema}.job IN SHARE ROW EXCLUSIVE MODE"
        )
        self.forget = of(
            "DELETE FROM {schema}.labelled_shard WHERE number = ANY (%(shards)s::bigint[]) AND {empty}"
            " RETURNING number",
            empty=empty,
        )
        hand_on: LiteralString = (
            "UPDATE {schema}.{where} SET owner = (SELECT epoch FROM {schema}.agent WHERE epoch = %(to)s)"
            " WHERE number = ANY (%(shards)s::bigint[]) AND owner = %(me)s AND {is_ours} RETURNING number"
        )
        self.hand_on = of(
            "WITH one AS ({hand_on}), other AS ({hand_on_labelled}),"
            " moved AS (SELECT FROM one UNION ALL SELECT FROM other)"
            " SELECT count(*), pg_notify(%(channel)s, concat_ws(' ', %(hint)s::text,"
            " (SELECT epoch FROM {schema}.agent WHERE epoch = %(to)s))) FROM moved",
            hand_on=of(hand_on, where=sql.SQL("shard"), is_ours=statements.is_ours),
            hand_on_labelled=of(hand_on, where=sql.SQL("labelled_shard"), is_ours=statements.is_ours),
        )
