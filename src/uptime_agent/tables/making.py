"""Make the tables that name servers and probes."""

from __future__ import annotations

from typing import Final

from ..libpq import Server
from .reading import TablesUnread
from .schema import VERSION, quoted, sql_of

WITHIN: Final = 10
"""Seconds."""


def make_tables(owner: Server, schema: str, reader: str | None) -> bool:
    """Make the tables; False if they exist. Blocks. Raises TablesUnread.

    `reader`: a role that may read them.
    """
    try:
        import psycopg  # noqa: PLC0415 - only tables need it
    except ImportError as exc:
        raise TablesUnread(f"tables need psycopg 3 ({exc}): pip install timerqueue[postgres]") from None
    meta = f"{quoted(schema)}.meta"
    try:
        with psycopg.connect(owner.conninfo() + f" connect_timeout={WITHIN}") as connection:
            there = connection.execute("SELECT to_regclass(%s)", [meta]).fetchone()
            if there != (None,):
                (version,) = connection.execute(f"SELECT max(version) FROM {meta}").fetchone() or (None,)  # noqa: S608 - quoted
                if version != VERSION:
                    raise TablesUnread(f"{schema} has tables of version {version}, this release knows {VERSION}")
                return False
            connection.execute(sql_of(schema, reader))
    except psycopg.Error as exc:
        raise TablesUnread(f"{owner}: {' '.join(str(exc).split())}") from None
    return True
