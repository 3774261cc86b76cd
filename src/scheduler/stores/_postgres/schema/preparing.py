from __future__ import annotations

from typing import Final

from ..._store import StoreUnusable
from ..connection import StoreConnection, psycopg, sql
from .steps import MIGRATIONS, VERSION

OLDEST_SERVER: Final = 130_000
"""Has xid8 and gen_random_uuid()."""

LONGEST_STEP: Final = 600
"""Seconds: a step may rewrite a million jobs."""

LONGEST_WAIT: Final = "300ms"
"""Renewals queue behind a waiting step. Then it retries."""

RELATIONS: Final = """
    SELECT array(SELECT relname::text FROM pg_class WHERE relnamespace = pg_namespace.oid) FROM pg_namespace
    WHERE nspname = %s
"""


def prepare(connection: StoreConnection, schema: str) -> None:
    """Make the tables in one transaction, or migrate them with one per step.

    Current tables need no right. Raises StoreUnusable if the server is too old, or the schema another program's or
    newer.
    """
    check_server(connection)
    with connection.transaction_as(""):
        if version_of(connection, schema) == VERSION:
            return
    while _migrate(connection, schema) < VERSION:
        pass


def preflight(connection: StoreConnection, schema: str) -> None:
    """Raise the errors of `prepare` that show without a change."""
    check_server(connection)
    with connection.transaction_as(""):
        version = version_of(connection, schema)
        if version == VERSION:
            return
        if version is None:
            may_make = connection.execute("SELECT has_database_privilege(current_database(), 'CREATE')")
        else:
            may_make = connection.execute("SELECT has_schema_privilege(%s, 'CREATE')", [schema])
        if may_make.fetchone() != (True,):
            raise _without_right(connection, schema)


def check_server(connection: StoreConnection) -> None:
    """Raise StoreUnusable if it is too old or not encoded as UTF8."""
    if connection.info.server_version < OLDEST_SERVER:
        msg = f"PostgreSQL {connection.info.server_version // 10_000} is too old: 13 is the first that can be used"
        raise StoreUnusable(msg)
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        msg = f"the database is encoded as {encoding}, which cannot hold every text: create one with ENCODING 'UTF8'"
        raise StoreUnusable(msg)


def version_of(connection: StoreConnection, schema: str) -> int | None:
    """Return the tables' version; 0: empty schema; None: no schema. Raises StoreUnusable."""
    there = connection.execute(RELATIONS, [schema]).fetchone()
    if there is None or not there[0]:
        return None if there is None else 0
    if "meta" not in there[0]:
        raise _foreign(schema)
    version = _version_of_meta(connection, schema)
    if version > VERSION:
        msg = (
            f"the tables in schema {schema!r} are of version {version}, and this timerqueue knows {VERSION}: "
            "update timerqueue"
        )
        raise StoreUnusable(msg)
    return version


def _version_of_meta(connection: StoreConnection, schema: str) -> int:
    query = sql.SQL("SELECT version FROM {}.meta WHERE program = 'timerqueue'").format(sql.Identifier(schema))
    try:
        row = connection.execute(query).fetchone()
    except psycopg.errors.UndefinedColumn:
        row = None
    if row is None:
        raise _foreign(schema)
    return int(row[0])


def _foreign(schema: str) -> StoreUnusable:
    return StoreUnusable(f"schema {schema!r} holds tables of another program: give a schema of another name")


def _without_right(connection: StoreConnection, schema: str) -> StoreUnusable:
    msg = (
        f"the role {connection.info.user!r} may not make the tables of version {VERSION} in schema {schema!r}: "
        "let a role that may open the store once, and grant this one USAGE on the schema and rights to its tables"
    )
    return StoreUnusable(msg)


def _migrate(connection: StoreConnection, schema: str) -> int:
    """Take the next step, or all if there are no tables. Return the new version.

    Older nodes go on. Their commits first lock their row of `agent`, so they wait without a deadlock. EXCLUSIVE lets
    leases read `agent`, so a slow step alters no table that a renewal reads (test_postgres_schema.py).
    """
    name = sql.Identifier(schema)
    with connection.transaction_as(""):
        # Of two nodes that find no tables, one makes them; the other waits for this lock and finds them.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('timerqueue'), hashtext(%s))", [schema])
        version = version_of(connection, schema)
        if version == VERSION:
            return VERSION
        if version:
            connection.execute(sql.SQL("LOCK TABLE {}.agent IN EXCLUSIVE MODE").format(name))
            connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(LONGEST_WAIT))
        new = version + 1 if version else VERSION
        connection.execute(sql.SQL("SET LOCAL statement_timeout = {}").format(f"{LONGEST_STEP}s"))
        connection.patience = 10 * (LONGEST_STEP + 2)  # the server speaks first
        try:
            if version is None:
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
            for step in MIGRATIONS[version or 0 : new]:
                connection.execute(step.format(schema=name))
        except psycopg.errors.InsufficientPrivilege as error:
            raise _without_right(connection, schema) from error
        connection.execute(sql.SQL("UPDATE {}.meta SET version = %s").format(name), [new])
        del connection.patience  # from here on that of all connections
    return new
