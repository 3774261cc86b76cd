from __future__ import annotations

from typing import Final

from ..._store import StoreUnusable
from ..._visit import NoTables
from ..connection import StoreConnection
from ..schema import VERSION, check_server, version_of

HOLDING: Final = """
    SELECT nspname::text FROM pg_namespace
    WHERE (SELECT count(*) = 3 FROM pg_class WHERE relnamespace = pg_namespace.oid AND relkind = 'r'
        AND relname IN ('meta', 'job_state', 'tick'))
    ORDER BY nspname <> 'timerqueue', nspname
"""


def check_made(connection: StoreConnection, schema: str) -> None:
    """Raise NoTables if there are no tables, StoreUnusable if of another version."""
    check_server(connection)
    version = version_of(connection, schema)
    if not version:
        raise NoTables(schema, [row[0] for row in connection.execute(HOLDING)])
    if version != VERSION:
        msg = (
            f"the tables in schema {schema!r} are of version {version}, and this timerqueue knows {VERSION}: "
            "let a node of this version open the store first"
        )
        raise StoreUnusable(msg)
