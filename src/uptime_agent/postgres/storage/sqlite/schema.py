"""Tables in SQLite, and views for people."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...contract import Column, Probe, Type
from ..errors import StoreUnusable
from ..shape import table_of
from .connection import APPLICATION_ID, transaction

_VERSION_1: Final = (
    """CREATE TABLE series (
        id INTEGER PRIMARY KEY, target TEXT NOT NULL, probe TEXT NOT NULL, database TEXT NOT NULL,
        last_us INTEGER, UNIQUE (target, probe, database)
    ) STRICT""",
    """CREATE TABLE probe_column (
        probe TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, place INTEGER NOT NULL,
        is_key INTEGER NOT NULL, is_counter INTEGER NOT NULL, PRIMARY KEY (probe, name)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE sample (
        at_us INTEGER NOT NULL, series INTEGER NOT NULL, rows INTEGER NOT NULL, left_out INTEGER NOT NULL, hash TEXT,
        PRIMARY KEY (at_us, series)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX sample_on_change ON sample (series, at_us) WHERE hash IS NOT NULL",
    """CREATE TABLE outcome (
        due_us INTEGER NOT NULL, series INTEGER NOT NULL, kind TEXT NOT NULL, failure TEXT, reason TEXT,
        lateness REAL NOT NULL, waited REAL NOT NULL, executed REAL NOT NULL, stored REAL NOT NULL,
        rows INTEGER NOT NULL, cost REAL NOT NULL, PRIMARY KEY (due_us, series)
    ) STRICT, WITHOUT ROWID""",
    """CREATE VIEW outcomes AS SELECT target, probe, nullif(database, '') AS database,
        strftime('%Y-%m-%d %H:%M:%f', due_us / 1e6, 'unixepoch') AS due, kind, failure, reason, lateness, waited,
        executed, stored, rows, cost FROM outcome JOIN series ON series.id = outcome.series""",
)
MIGRATIONS: Final = (_VERSION_1,)
"""The n-th leads to version n."""

TYPES: Final = {
    Type.BIGINT: "INTEGER",
    Type.DOUBLE: "REAL",
    Type.TEXT: "TEXT",
    Type.BOOLEAN: "INTEGER",
    Type.TIMESTAMP: "INTEGER",
    Type.NUMERIC: "ANY",
}


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Make or update the tables. Raises StoreUnusable if they are newer."""
    with transaction(connection):
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > len(MIGRATIONS):
            msg = (
                f"{path} has version {version} of the tables, this release knows {len(MIGRATIONS)}: install a later one"
            )
            raise StoreUnusable(msg)
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def types_of(connection: sqlite3.Connection) -> dict[str, dict[str, str]]:
    """Return types by probe and column, oldest first."""
    found: dict[str, dict[str, str]] = {}
    for probe, name, type_ in connection.execute("SELECT probe, name, type FROM probe_column ORDER BY probe, place"):
        found.setdefault(probe, {})[name] = type_
    return found


def add_columns(connection: sqlite3.Connection, probe: Probe, added: Sequence[Column], already: int) -> None:
    """Make or widen the probe's table."""
    table = table_of(probe)
    if not already:
        connection.execute(
            f"CREATE TABLE {table} (sample_at_us INTEGER NOT NULL, sample_series INTEGER NOT NULL, "
            f"sample_row INTEGER NOT NULL, {', '.join(map(_declared, added))}, "
            "PRIMARY KEY (sample_at_us, sample_series, sample_row)) STRICT, WITHOUT ROWID"
        )
    else:
        for column in added:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {_declared(column)}")
    connection.executemany(
        "INSERT INTO probe_column VALUES (?, ?, ?, ?, ?, ?)",
        [
            (probe.name, column.name, column.type.value, already + place, column.is_key, column.is_counter)
            for place, column in enumerate(added)
        ],
    )
    connection.execute(f"DROP VIEW IF EXISTS {quoted(probe.name)}")
    connection.execute(
        f"CREATE VIEW {quoted(probe.name)} AS SELECT target AS sample_target, nullif(database, '') AS sample_database, "  # noqa: S608 - names are checked
        "strftime('%Y-%m-%d %H:%M:%f', sample_at_us / 1e6, 'unixepoch') AS sample_at, "
        f"{table}.* FROM {table} JOIN series ON series.id = sample_series"
    )


def quoted(name: str) -> str:
    """Quote a name: keywords, too."""
    return f'"{name}"'


def _declared(column: Column) -> str:
    return f"{quoted(column.name)} {TYPES[column.type]}"
