"""Rows of acts in a store that a running agent has open."""

# ruff: noqa: PLC0415 - only the driver that is asked for is imported

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote

from scheduler import StoreError

from ..acts import COLUMNS, PREFIX, Act, Change, act_of

if TYPE_CHECKING:
    from ..config import StorePlace

BUSY_S: Final = 10.0
"""Seconds to wait for another transaction."""


class Rows(Protocol):
    """A transaction on the table of jobs. `execute` returns the number of rows it met."""

    def execute(self, statement: str, values: Sequence[Any]) -> int:
        """Run a statement with `?` for each value."""

    def texts(self, statement: str, values: Sequence[Any]) -> list[str]:
        """Read one column of text."""


@contextmanager
def by_hand(place: StorePlace) -> Iterator[Rows]:
    """Lend a transaction on the store of a place. It is undone after an error. Raises StoreError."""
    if place.file is not None:
        yield from _sqlite(place.file)
    elif place.dsn is not None:
        yield from _postgres(place.dsn, place.schema)
    else:
        msg = "memory is in its process alone: give the agent a store"
        raise StoreError(msg)


class NoSuchJob(Exception):
    """The store has no job to pause. The transaction is undone."""


def carry_out(rows: Rows, change: Change) -> None:
    """Make a change. Raises NoSuchJob."""
    if change.put is not None:
        marks = ", ".join("?" for _ in COLUMNS)
        others = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[1:])
        rows.execute(
            f"INSERT INTO job ({', '.join(COLUMNS)}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {others}",  # noqa: S608 - constants
            change.put,
        )
    if change.gone is not None:
        rows.execute("DELETE FROM job WHERE id = ?", (change.gone,))
    if change.paused is None:
        return
    name, reason, until_us = change.paused
    pause = "UPDATE job SET paused = ?, paused_until_us = ? WHERE id = ?"
    if rows.execute(pause, (reason, until_us, name)) != 1:
        msg = f"there is no job {name!r}"
        raise NoSuchJob(msg)


def acts_of(rows: Rows) -> list[Act]:
    """All acts that make sense: other programs may have written any row."""
    found = []
    for text in rows.texts("SELECT args FROM job WHERE substr(id, 1, ?) = ?", (len(PREFIX), PREFIX)):
        with suppress(ValueError, IndexError, KeyError, TypeError):
            found.append(act_of(json.loads(text)[0]))
    return found


class _Sqlite:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any]) -> int:
        return self._connection.execute(statement, values).rowcount

    def texts(self, statement: str, values: Sequence[Any]) -> list[str]:
        return [str(text) for (text,) in self._connection.execute(statement, values)]


def _sqlite(file: Path) -> Iterator[Rows]:
    """The file must be there: an agent makes it."""
    try:
        uri = f"file:{quote(str(file.absolute()))}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S)) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield _Sqlite(connection)
    except sqlite3.Error as exc:
        msg = f"{exc}: has an agent run with it?"
        raise StoreError(msg) from None


class _Postgres:
    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def execute(self, statement: str, values: Sequence[Any]) -> int:
        self._cursor.execute(statement.replace("?", "%s"), values)
        return int(self._cursor.rowcount)

    def texts(self, statement: str, values: Sequence[Any]) -> list[str]:
        self._cursor.execute(statement.replace("?", "%s"), values)
        return [str(text) for (text,) in self._cursor]


def _postgres(dsn: str, schema: str) -> Iterator[Rows]:
    try:
        import psycopg
        from psycopg import sql
    except ImportError as exc:
        msg = f"a store in PostgreSQL needs psycopg 3 ({exc}): pip install timerqueue[postgres]"
        raise StoreError(msg) from None
    try:
        with psycopg.connect(dsn, connect_timeout=int(BUSY_S)) as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(schema)))
            yield _Postgres(cursor)
    except psycopg.Error as exc:
        said = str(exc).strip().partition("\n")[0]
        msg = f"{said}: has an agent run with it?" if isinstance(exc, psycopg.errors.UndefinedTable) else said
        raise StoreError(msg) from None
