from __future__ import annotations

from typing import Final

from ..changes import MADE_CHANGES
from ..connection import sql
from ..execution_statements import EXECUTIONS, OVERDUE
from ..statements import HAND_OVERS, LABELLED
from ..units import RESTS, TABLES as UNITS

TABLES: Final = """
CREATE TABLE {schema}.meta (
    "one" boolean PRIMARY KEY DEFAULT true CHECK ("one"),
    program text NOT NULL DEFAULT 'timerqueue',
    version integer NOT NULL,
    instance text NOT NULL DEFAULT gen_random_uuid(),
    epoch bigint NOT NULL DEFAULT 0
);
INSERT INTO {schema}.meta (version) VALUES (0);

-- Who may write: a commit locks its agent's row first, and without a row there is no commit.
CREATE TABLE {schema}.agent (
    epoch bigint PRIMARY KEY,
    name text,
    opened_us bigint NOT NULL
);

CREATE TABLE {schema}.job (
    id text COLLATE "C" PRIMARY KEY,
    task text NOT NULL,
    schedule text NOT NULL,
    args text NOT NULL DEFAULT '[]',
    kwargs text NOT NULL DEFAULT '{{}}',
    options text NOT NULL DEFAULT '{{}}',
    tags text NOT NULL DEFAULT '[]',
    name text,
    paused text,
    paused_until_us bigint
);

CREATE TABLE {schema}.job_state (
    job_id text COLLATE "C" PRIMARY KEY REFERENCES {schema}.job ON DELETE CASCADE ON UPDATE CASCADE,
    next_us bigint,
    next_by_hand boolean NOT NULL,
    retry_due_us bigint,
    retry_attempt bigint,
    retry_at_us bigint,
    not_before_us bigint,
    runs bigint NOT NULL,
    successes bigint NOT NULL,
    failures bigint NOT NULL,
    timeouts bigint NOT NULL,
    cancellations bigint NOT NULL,
    missed bigint NOT NULL,
    consecutive_failures bigint NOT NULL,
    consecutive_crashes bigint NOT NULL,
    total_duration double precision NOT NULL,
    total_duration_failures double precision NOT NULL,
    lateness_sum double precision NOT NULL,
    lateness_max double precision NOT NULL,
    last_start_us bigint,
    last_finish_us bigint,
    last_success_us bigint,
    last_outcome text,
    last_error text
) WITH (fillfactor = 50);

CREATE TABLE {schema}.tick (
    job_id text COLLATE "C" NOT NULL,
    due_us bigint NOT NULL,
    attempt bigint NOT NULL,
    fence bigint NOT NULL,
    outcome text NOT NULL,
    started_us bigint,
    ended_us bigint,
    lateness double precision,
    error text,
    trace text,
    reason text,
    count bigint NOT NULL DEFAULT 1,
    last_due_us bigint,
    result text,
    PRIMARY KEY (job_id, due_us)
);
CREATE INDEX tick_due ON {schema}.tick (due_us);
CREATE INDEX tick_running ON {schema}.tick (job_id) WHERE outcome = 'running';
CREATE INDEX tick_ended ON {schema}.tick (coalesce(ended_us, due_us)) WHERE outcome <> 'running';

CREATE TABLE {schema}.pause (
    scope text COLLATE "C" PRIMARY KEY,
    reason text NOT NULL DEFAULT '',
    since_us bigint NOT NULL DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000000),
    until_us bigint
);

-- What has been changed in jobs and pauses, and by whom; NULL: by hand.
CREATE TABLE {schema}.change (
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    made_at timestamptz NOT NULL DEFAULT now(),
    writer text DEFAULT nullif(current_setting('timerqueue.agent', true), ''),
    "table" text NOT NULL,
    key text NOT NULL
);
CREATE INDEX change_xid ON {schema}.change (xid);
CREATE INDEX change_made_at ON {schema}.change (made_at);
"""

TRIGGERS: Final = """
CREATE FUNCTION {schema}.note_{table}() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO {schema}.change ("table", key) SELECT '{table}', {key} FROM new_rows;
    ELSIF TG_OP = 'UPDATE' THEN
        INSERT INTO {schema}.change ("table", key)
            SELECT '{table}', {key} FROM old_rows UNION SELECT '{table}', {key} FROM new_rows;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO {schema}.change ("table", key) SELECT '{table}', {key} FROM old_rows;
    ELSE
        INSERT INTO {schema}.change ("table", key) SELECT '{table}', {key} FROM {schema}.{table};
    END IF;
    -- An agent's own commits do not: a commit that notifies waits for a lock of the whole database cluster.
    IF FOUND AND nullif(current_setting('timerqueue.agent', true), '') IS NULL THEN
        PERFORM pg_notify(TG_TABLE_SCHEMA, '');
    END IF;
    RETURN NULL;
END
$body$;
CREATE TRIGGER note_insert AFTER INSERT ON {schema}.{table} REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.note_{table}();
CREATE TRIGGER note_update AFTER UPDATE ON {schema}.{table} REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.note_{table}();
CREATE TRIGGER note_delete AFTER DELETE ON {schema}.{table} REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.note_{table}();
CREATE TRIGGER note_truncate BEFORE TRUNCATE ON {schema}.{table}
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.note_{table}();
"""

OWED: Final = """
ALTER TABLE {schema}.tick ADD COLUMN owed boolean NOT NULL DEFAULT false;
CREATE INDEX tick_owed ON {schema}.tick (job_id) WHERE owed;
ALTER TABLE {schema}.job_state ADD COLUMN next_of text;
UPDATE {schema}.tick SET owed = true FROM {schema}.job_state
    WHERE tick.job_id = job_state.job_id AND due_us = retry_due_us AND attempt + 1 = retry_attempt
    AND retry_at_us IS NOT NULL AND outcome IN ('crashed', 'cancelled');
"""
"""The records of owed ticks say so. Before, the state of their job did."""

EXACT: Final = """
ALTER TABLE {schema}.job_state ADD COLUMN missed_is_exact boolean NOT NULL DEFAULT true;
UPDATE {schema}.job_state SET missed_is_exact = false
    WHERE job_id IN (SELECT job_id FROM {schema}.tick WHERE error = 'at least')
    OR missed >= 32 AND job_id IN (SELECT id FROM {schema}.job WHERE schedule ~* '[|]| (from|until|except) ');
"""
"""Older counts are lower bounds if a record says so, or if counted one by one up to 32."""

SHARING: Final = """
CREATE FUNCTION {schema}.shard_of(place text) RETURNS smallint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $body$ SELECT (('x' || left(md5(place), 8))::bit(32)::bigint & 1023)::smallint $body$;
-- Options that are no JSON may be written by hand: such a job waits until they are mended, and somewhere it has to.
CREATE FUNCTION {schema}.place_of(id text, options text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $body$
BEGIN
    IF options NOT LIKE '%"place"%' THEN
        RETURN id;
    END IF;
    BEGIN
        RETURN coalesce(options::jsonb ->> 'place', id);
    EXCEPTION WHEN OTHERS THEN
        RETURN id;
    END;
END
$body$;
ALTER TABLE {schema}.job ADD COLUMN shard smallint NOT NULL
    GENERATED ALWAYS AS ({schema}.shard_of({schema}.place_of(id, options))) STORED;
CREATE INDEX job_shard ON {schema}.job (shard);

-- Until when the others leave an agent alone that shares the store. One without a lease has it for itself.
CREATE TABLE {schema}.lease (
    epoch bigint PRIMARY KEY REFERENCES {schema}.agent ON DELETE CASCADE,
    until timestamptz NOT NULL,
    format integer NOT NULL,
    in_session boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

CREATE TABLE {schema}.shard (
    number smallint PRIMARY KEY,
    owner bigint REFERENCES {schema}.agent ON DELETE SET NULL
) WITH (fillfactor = 50);
INSERT INTO {schema}.shard (number) SELECT generate_series(0, 1023);
CREATE INDEX shard_owner ON {schema}.shard (owner);
"""

VOTING: Final = """
ALTER TABLE {schema}.agent ADD COLUMN labels jsonb NOT NULL DEFAULT '{{}}';

-- What an agent has found at an instant that several were asked for. They are read together once, and then forgotten.
CREATE TABLE {schema}.vote (
    subject text COLLATE "C" NOT NULL,
    due_us bigint NOT NULL,
    epoch bigint NOT NULL,
    said text NOT NULL,
    PRIMARY KEY (subject, due_us, epoch)
);
CREATE INDEX vote_due ON {schema}.vote (due_us);
"""

REQUESTS: Final = """
-- What agents ask of those that have the jobs. It stays for some minutes when it is done: a commit may come twice.
CREATE TABLE {schema}.request (
    number bigint PRIMARY KEY,
    job_id text COLLATE "C" NOT NULL,
    act text NOT NULL,
    at_us bigint,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    done_at timestamptz,
    due_us bigint,
    reason text
);
CREATE INDEX request_open ON {schema}.request (job_id) WHERE done_at IS NULL;
CREATE INDEX request_done ON {schema}.request (done_at) WHERE done_at IS NOT NULL;
"""

SKEW: Final = "ALTER TABLE {schema}.lease ADD COLUMN skew float8, ADD COLUMN is_off boolean NOT NULL DEFAULT false;"

UNSETTLED: Final = "ALTER TABLE {schema}.lease ADD COLUMN is_unsettled boolean NOT NULL DEFAULT false;"

KEYED: Final = """
LOCK TABLE {schema}.change;
CREATE UNLOGGED TABLE {schema}.kept_change AS SELECT CASE WHEN made_at > now() - interval '1 minute'
    THEN pg_current_xact_id() ELSE xid END AS xid, made_at, writer, "table", key
    FROM {schema}.change WHERE made_at > now() - interval '1 hour';
TRUNCATE {schema}.change;
ALTER TABLE {schema}.change ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY;
INSERT INTO {schema}.change (xid, made_at, writer, "table", key) SELECT * FROM {schema}.kept_change;
DROP TABLE {schema}.kept_change;
"""
"""A primary key: PostgreSQL deletes nothing without one if a publication holds all tables.

The step copies the last hour, because a new column would rewrite perhaps millions of rows. The copy is unlogged, so no
publication holds it. The last minute is news once more: a transaction from before the step finds the table empty.
"""

INCARNATIONS: Final = "ALTER TABLE {schema}.agent ADD COLUMN incarnation uuid NOT NULL DEFAULT gen_random_uuid();"
"""A standby that missed an epoch gives it again."""

PAGED: Final = "CREATE INDEX change_pages ON {schema}.change (xid, number);"
"""An index for pages: one UPDATE may change a million rows. The step takes seconds while renewals read, so the next
step drops the old index.
"""

COUNTED: Final = "ALTER TABLE {schema}.lease ADD COLUMN connections integer; DROP INDEX {schema}.change_xid;"

NUMBERED: Final = "ALTER TABLE {schema}.agent ADD COLUMN session bigint NOT NULL DEFAULT 0;"
"""The number of a node's commit connection."""

WAITED: Final = "ALTER TABLE {schema}.tick ADD COLUMN waited text;"

MIGRATIONS: Final = (
    sql.SQL(
        TABLES
        + TRIGGERS.replace("{table}", "job").replace("{key}", "id")
        + TRIGGERS.replace("{table}", "pause").replace("{key}", "scope")
    ),
    sql.SQL(OWED),
    sql.SQL(EXACT),
    sql.SQL(SHARING),
    sql.SQL(VOTING),
    sql.SQL(EXECUTIONS),
    sql.SQL(REQUESTS),
    sql.SQL(UNITS),
    sql.SQL(SKEW),
    sql.SQL(RESTS),
    sql.SQL(HAND_OVERS),
    sql.SQL(OVERDUE),
    sql.SQL(LABELLED),
    sql.SQL(UNSETTLED),
    sql.SQL(KEYED),
    sql.SQL(INCARNATIONS),
    sql.SQL(PAGED),
    sql.SQL(COUNTED),
    sql.SQL(NUMBERED),
    sql.SQL(WAITED),
    sql.SQL(MADE_CHANGES),
)

VERSION: Final = len(MIGRATIONS)
