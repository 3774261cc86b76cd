from __future__ import annotations

from sqlite3 import Connection, complete_statement
from typing import Final

from .._store import StoreUnusable

APPLICATION_ID: Final = 0x54695175

# A job has a rowid, so that a list of jobs is a list of integers. The defaults are those of StoredJob: a person writes
# id, task and schedule. Triggers, not foreign keys, remove the state, because the sqlite3 shell has foreign keys off.
# `change` is a set of keys that one reader empties, so it cannot outgrow the existing keys. Its triggers look before
# they insert, because a statement's OR REPLACE overrides the OR IGNORE of its triggers.
#
# Ticks are in the order of their times: ticks that are marked together are neighbours, and a commit of hundreds writes
# a few pages. The oldest are pruned from one end.
_VERSION_1: Final = """
CREATE TABLE meta (
    one INTEGER NOT NULL PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    instance TEXT NOT NULL,
    epoch INTEGER NOT NULL DEFAULT 0,
    clean INTEGER NOT NULL DEFAULT 1 CHECK (clean IN (0, 1))
) STRICT;
INSERT INTO meta (instance) VALUES (lower(hex(randomblob(16))));

CREATE TABLE job (
    id TEXT NOT NULL PRIMARY KEY,
    task TEXT NOT NULL,
    schedule TEXT NOT NULL,
    args TEXT NOT NULL DEFAULT '[]',
    kwargs TEXT NOT NULL DEFAULT '{}',
    options TEXT NOT NULL DEFAULT '{}',
    tags TEXT NOT NULL DEFAULT '[]',
    name TEXT,
    paused TEXT,
    paused_until_us INTEGER
) STRICT;

CREATE TABLE job_state (
    job_id TEXT NOT NULL PRIMARY KEY,
    next_us INTEGER,
    next_by_hand INTEGER NOT NULL DEFAULT 0,
    retry_due_us INTEGER,
    retry_attempt INTEGER,
    retry_at_us INTEGER,
    not_before_us INTEGER,
    runs INTEGER NOT NULL DEFAULT 0,
    successes INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    timeouts INTEGER NOT NULL DEFAULT 0,
    cancellations INTEGER NOT NULL DEFAULT 0,
    missed INTEGER NOT NULL DEFAULT 0,
    consecutive_failures INTEGER NOT NULL DEFAULT 0,
    consecutive_crashes INTEGER NOT NULL DEFAULT 0,
    total_duration REAL NOT NULL DEFAULT 0,
    total_duration_failures REAL NOT NULL DEFAULT 0,
    lateness_sum REAL NOT NULL DEFAULT 0,
    lateness_max REAL NOT NULL DEFAULT 0,
    last_start_us INTEGER,
    last_finish_us INTEGER,
    last_success_us INTEGER,
    last_outcome TEXT,
    last_error TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE tick (
    job_id TEXT NOT NULL,
    due_us INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    started_us INTEGER,
    ended_us INTEGER,
    lateness REAL,
    error TEXT,
    trace TEXT,
    reason TEXT,
    count INTEGER NOT NULL DEFAULT 1,
    last_due_us INTEGER,
    result TEXT,
    PRIMARY KEY (due_us, job_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tick_of_job ON tick (job_id, due_us);
CREATE INDEX tick_running ON tick (job_id) WHERE outcome = 'running';

CREATE TABLE pause (
    scope TEXT NOT NULL PRIMARY KEY,
    reason TEXT NOT NULL DEFAULT '',
    since_us INTEGER NOT NULL DEFAULT 0,
    until_us INTEGER
) STRICT;

CREATE TABLE change (
    kind TEXT NOT NULL CHECK (kind IN ('job', 'pause')),
    key TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER job_inserted AFTER INSERT ON job BEGIN
    INSERT INTO change SELECT 'job', new.id
        WHERE NOT EXISTS (SELECT 1 FROM change WHERE kind = 'job' AND key = new.id);
END;
CREATE TRIGGER job_updated AFTER UPDATE ON job BEGIN
    INSERT INTO change SELECT 'job', new.id
        WHERE NOT EXISTS (SELECT 1 FROM change WHERE kind = 'job' AND key = new.id);
END;
CREATE TRIGGER job_renamed AFTER UPDATE OF id ON job WHEN old.id <> new.id BEGIN
    INSERT INTO change SELECT 'job', old.id
        WHERE NOT EXISTS (SELECT 1 FROM change WHERE kind = 'job' AND key = old.id);
    DELETE FROM job_state WHERE job_id = old.id;
END;
CREATE TRIGGER job_deleted AFTER DELETE ON job BEGIN
    INSERT INTO change SELECT 'job', old.id
        WHERE NOT EXISTS (SELECT 1 FROM change WHERE kind = 'job' AND key = old.id);
    DELETE FROM job_state WHERE job_id = old.id;
END;
CREATE TRIGGER pause_inserted AFTER INSERT ON pause BEGIN
    INSERT INTO change SELECT 'pause', new.scope
        WHERE NOT EXISTS (SELECT 1 FROM change WHERE kind = 'pause' AND key = new.scope);
END;
CREATE TRIGGER pause_updated AFTER UPDATE ON pause BEGIN
    INSERT INTO change SELECT 'pause', new.scope
        WHERE NOT EXISTS (SELECT 1 FROM change WHERE kind = 'pause' AND key = new.scope);
END;
CREATE TRIGGER pause_renamed AFTER UPDATE OF scope ON pause WHEN old.scope <> new.scope BEGIN
    INSERT INTO change SELECT 'pause', old.scope
        WHERE NOT EXISTS (SELECT 1 FROM change WHERE kind = 'pause' AND key = old.scope);
END;
CREATE TRIGGER pause_deleted AFTER DELETE ON pause BEGIN
    INSERT INTO change SELECT 'pause', old.scope
        WHERE NOT EXISTS (SELECT 1 FROM change WHERE kind = 'pause' AND key = old.scope);
END;

CREATE VIEW job_statistics AS SELECT
    id, name, task, schedule, paused,
    strftime('%Y-%m-%d %H:%M:%f', next_us / 1e6, 'unixepoch') AS next_start,
    runs, successes, failures, runs - successes - failures AS crashes, timeouts, cancellations, missed,
    consecutive_failures, consecutive_crashes,
    total_duration / nullif(successes + failures, 0) AS mean_duration,
    lateness_sum / nullif(runs, 0) AS mean_lateness, lateness_max,
    strftime('%Y-%m-%d %H:%M:%f', last_start_us / 1e6, 'unixepoch') AS last_start,
    strftime('%Y-%m-%d %H:%M:%f', last_finish_us / 1e6, 'unixepoch') AS last_finish,
    strftime('%Y-%m-%d %H:%M:%f', last_success_us / 1e6, 'unixepoch') AS last_success,
    last_outcome, last_error
FROM job LEFT JOIN job_state ON job_id = id;
"""

# Before, a tick that a death or a stop cut off was a retry in its job's state. Now its record says that it is owed.
_VERSION_2: Final = """
ALTER TABLE tick ADD COLUMN owed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tick_owed ON tick (job_id) WHERE owed = 1;
ALTER TABLE job_state ADD COLUMN next_of TEXT;
UPDATE tick SET owed = 1 WHERE outcome IN ('crashed', 'cancelled') AND (job_id, due_us, attempt + 1) IN (
    SELECT job_id, retry_due_us, retry_attempt FROM job_state WHERE retry_at_us IS NOT NULL
);
"""

# Older counts of missed ticks are lower bounds if a record says so, or if the schedule is counted one by one, up to 32.
_VERSION_3: Final = """
ALTER TABLE job_state ADD COLUMN missed_is_exact INTEGER NOT NULL DEFAULT 1;
UPDATE job_state SET missed_is_exact = 0 WHERE job_id IN (SELECT job_id FROM tick WHERE error = 'at least')
    OR missed >= 32 AND job_id IN (
        SELECT id FROM job WHERE schedule LIKE '%|%' OR schedule LIKE '% from %' OR schedule LIKE '% until %'
        OR schedule LIKE '% except %'
    );
DROP VIEW job_statistics;
CREATE VIEW job_statistics AS SELECT
    id, name, task, schedule, paused,
    strftime('%Y-%m-%d %H:%M:%f', next_us / 1e6, 'unixepoch') AS next_start,
    runs, successes, failures, runs - successes - failures AS crashes, timeouts, cancellations, missed, missed_is_exact,
    consecutive_failures, consecutive_crashes,
    total_duration / nullif(successes + failures, 0) AS mean_duration,
    lateness_sum / nullif(runs, 0) AS mean_lateness, lateness_max,
    strftime('%Y-%m-%d %H:%M:%f', last_start_us / 1e6, 'unixepoch') AS last_start,
    strftime('%Y-%m-%d %H:%M:%f', last_finish_us / 1e6, 'unixepoch') AS last_finish,
    strftime('%Y-%m-%d %H:%M:%f', last_success_us / 1e6, 'unixepoch') AS last_success,
    last_outcome, last_error
FROM job LEFT JOIN job_state ON job_id = id;
"""

_VERSION_4: Final = "ALTER TABLE tick ADD COLUMN waited TEXT;"

# `change` is the log of edits by hand, and empty most of the time. This table says who changed what.
_VERSION_5: Final = """
CREATE TABLE made_change (
    number INTEGER NOT NULL PRIMARY KEY,
    at_us INTEGER NOT NULL,
    act TEXT NOT NULL,
    scope TEXT NOT NULL,
    actor TEXT,
    reason TEXT,
    before TEXT,
    after TEXT
) STRICT;
CREATE INDEX made_change_at ON made_change (at_us, number);
"""

MIGRATIONS: Final = (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4, _VERSION_5)
"""The n-th leads to version n. Never change one; append."""


def version_of(connection: Connection, path: str) -> int:
    """0: no tables. Raises StoreUnusable if they are another program's or newer."""
    application, version, tables = (
        connection.execute(question).fetchone()[0]
        for question in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema")
    )
    if application != APPLICATION_ID and (application or version or tables):
        msg = (
            f"{path} is a database of another program (application id {application:#x}, {tables} tables and the like): "
            "give the scheduler a file of its own"
        )
        raise StoreUnusable(msg)
    if version > len(MIGRATIONS):
        msg = (
            f"{path} has schema version {version}, and this release knows versions up to {len(MIGRATIONS)}: "
            "install the release that wrote it, or a later one"
        )
        raise StoreUnusable(msg)
    return int(version)


def check_current(connection: Connection, path: str) -> None:
    """Raise StoreUnusable if the tables are another program's or of another version."""
    version = version_of(connection, path)
    if version < len(MIGRATIONS):
        msg = (
            f"{path} has schema version {version}, and this release reads version {len(MIGRATIONS)}: "
            "start its program with this release once, which migrates it"
        )
        raise StoreUnusable(msg)


def migrate(connection: Connection, version: int) -> None:
    for script in MIGRATIONS[version:]:
        for statement in _statements(script):
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _statements(script: str) -> list[str]:
    """Split, because `executescript` commits first."""
    statements, current = [], ""
    for line in script.splitlines():
        current += line + "\n"
        if complete_statement(current):
            statements.append(current)
            current = ""
    return statements
