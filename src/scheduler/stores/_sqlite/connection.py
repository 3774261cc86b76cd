"""Connections to a SQLite database. Functions raise sqlite3.Error."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Final, Literal

from .._store import StoreError, StoreUnavailable, StoreUnusable, Unstorable

Durability = Literal["full", "fast"]

BUSY_TIMEOUT: Final = 3.0
"""Seconds."""

_SETTINGS: Final = (
    "busy_timeout = 3000",
    "foreign_keys = ON",
    "trusted_schema = OFF",
    "temp_store = MEMORY",
    "mmap_size = 0",
    "cache_size = -65536",
    "journal_size_limit = 67108864",
    "wal_autocheckpoint = 1000",
)

_ADVICE: Final = {
    sqlite3.SQLITE_BUSY: "another process holds a transaction open: end it",
    sqlite3.SQLITE_LOCKED: "another process holds a transaction open: end it",
    sqlite3.SQLITE_FULL: "the disk is full: make room",
    sqlite3.SQLITE_IOERR: "the disk refuses: look at its room, its quota and the system log",
    sqlite3.SQLITE_CANTOPEN: "the file or its directory is not there or not writable",
    sqlite3.SQLITE_READONLY: "the file, its directory or the file system is read-only: make it writable",
    sqlite3.SQLITE_PERM: "the file may not be read or written: look at its owner and mode",
    sqlite3.SQLITE_AUTH: "the file may not be read or written: look at its owner and mode",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
    sqlite3.SQLITE_INTERRUPT: "it was interrupted",
    sqlite3.SQLITE_PROTOCOL: "the locking of the file system does not work: use a local disk",
}

_USABLE_STILL: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL}


def connect(path: str, durability: Durability) -> sqlite3.Connection:
    return _connect(path, f"synchronous = {'FULL' if durability == 'full' else 'NORMAL'}")


def use_log(connection: sqlite3.Connection, path: str) -> None:
    """Raises StoreUnusable if the database cannot have one."""
    ((mode,),) = fetch(connection, "PRAGMA journal_mode = WAL")
    if mode != "wal":
        msg = f"{path} cannot have a write-ahead log (its journal is {mode!r}): put it on a local disk"
        raise StoreUnusable(msg)


def connect_reader(path: str) -> sqlite3.Connection:
    return _connect(path, "query_only = ON")


def _connect(path: str, *settings: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{Path(path).as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        for setting in (*_SETTINGS, *settings):
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def fetch(connection: sqlite3.Connection, sql: str, parameters: Any = ()) -> list[Any]:
    """Return all rows. Texts that are not UTF-8 come with escapes."""
    try:
        return connection.execute(sql, parameters).fetchall()
    except sqlite3.OperationalError as exc:
        if hasattr(exc, "sqlite_errorcode"):
            raise
    connection.text_factory = _decode
    try:
        return connection.execute(sql, parameters).fetchall()
    finally:
        connection.text_factory = str


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def primary_code(exc: sqlite3.Error) -> int:
    """Return -1 if the error is not SQLite's."""
    code = getattr(exc, "sqlite_errorcode", None)
    return -1 if code is None else code & 0xFF


def is_about_room(exc: sqlite3.Error) -> bool:
    """Whether the disk may be full, which SQLite reports in several ways."""
    return primary_code(exc) in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}


def is_usable_after(exc: sqlite3.Error) -> bool:
    return primary_code(exc) in _USABLE_STILL


def translate(path: str, exc: sqlite3.Error) -> StoreError:
    name = getattr(exc, "sqlite_errorname", type(exc).__name__)
    advice = _ADVICE.get(primary_code(exc))
    if advice is not None:
        return StoreUnavailable(f"{path}: {exc} ({name}): {advice}")
    if primary_code(exc) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return StoreUnusable(
            f"{path} is corrupt or no database: {exc} ({name}): restore a backup, or save what can be with "
            "the sqlite3 shell's .recover, and move the file away"
        )
    if isinstance(exc, sqlite3.OperationalError):
        return StoreUnusable(f"{path}: {exc} ({name}): its tables are not those of this release")
    return Unstorable(f"{path}: {exc} ({name}): it was given what it cannot hold; please report this")
