"""The SQLite file's lock, settings and errors."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from ...contract import StoreUnavailable
from ..errors import StoreUnusable

if sys.platform != "win32":
    import fcntl

APPLICATION_ID: Final = 0x74716D78
"""Marks our files."""

_SETTINGS: Final = (
    "busy_timeout = 3000",
    "trusted_schema = OFF",
    "temp_store = MEMORY",
    "mmap_size = 0",
    "cache_size = -65536",
    "journal_size_limit = 67108864",
    "synchronous = FULL",
)
_LASTING: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class MetricsLock:
    """The file `path`.lock: one process writes, and kill -9 releases it."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}.lock")
        self._file: int | None = None

    def take(self) -> None:
        """Take it. Raises StoreUnavailable."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except OSError as error:
            msg = f"cannot make the lock {self._path}: {error.strerror}"
            raise StoreUnavailable(msg) from error
        try:
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            msg = f"{self._path} is locked: another agent writes its metrics there. Stop it, or name another file"
            raise StoreUnavailable(msg) from None
        self._file = file

    def release(self) -> None:
        """Release it. The file stays, as removing it would race."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def connect(path: Path) -> sqlite3.Connection:
    """Connect for writing. A new file is its owner's alone. Raises sqlite3.Error."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=3.0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
    )
    try:
        _check_owner(connection, path)
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only heard while the file is empty
        connection.execute("PRAGMA journal_mode = WAL")
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """Connect for reading, also while the agent runs. Raises sqlite3.Error, StoreUnusable."""
    if not path.exists():
        msg = f"there are no metrics in {path}: look at the path, or start the agent that makes it"
        raise StoreUnusable(msg)
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=3.0, isolation_level=None)
    try:
        _check_owner(connection, path)
        _check_made(connection, path)
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            if connection.in_transaction:  # a full disk has ended it already
                connection.execute("ROLLBACK")
        raise


@contextmanager
def errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as a metric store's."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        code = getattr(error, "sqlite_errorcode", None)
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        if code is not None and code & 0xFF in _LASTING:
            msg = f"{path} is corrupt or no database: {error} ({name}): move it away, and another is made"
            raise StoreUnusable(msg) from error
        msg = f"{path}: {error} ({name})"
        raise StoreUnavailable(msg) from error


def _check_owner(connection: sqlite3.Connection, path: Path) -> None:
    application, tables = (
        connection.execute(question).fetchone()[0]
        for question in ("PRAGMA application_id", "SELECT count(*) FROM sqlite_schema")
    )
    if application != APPLICATION_ID and (application or tables):
        msg = f"{path} is a database of another program: give the metrics a file of their own"
        raise StoreUnusable(msg)


def _check_made(connection: sqlite3.Connection, path: Path) -> None:
    if not connection.execute("PRAGMA user_version").fetchone()[0]:
        msg = f"there are no metrics in {path} yet: its agent has just begun, or could not"
        raise StoreUnusable(msg)


def put(connection: sqlite3.Connection, sql: str, rows: list[tuple[Any, ...]]) -> None:
    """Execute `sql` with many rows in place of {rows}.

    Each step releases the GIL, and a busy loop keeps it for milliseconds. Powers of two: few statements are prepared.
    """
    first = 0
    while first < len(rows):
        most = min(len(rows) - first, 512, 32_000 // len(rows[0]))
        size = 1 << (most.bit_length() - 1)
        places = ", ".join([f"({', '.join('?' * len(rows[0]))})"] * size)
        values = [value for row in rows[first : first + size] for value in row]
        connection.execute(sql.replace("{rows}", f"VALUES {places}"), values)
        first += size
