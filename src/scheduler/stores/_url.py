"""Stores by their URLs. A URL imports its store's module, and so the driver."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from ._store import Store

_POSSIBLE: Final = "'sqlite:///jobs.db', 'postgresql://user@host/database' or 'memory://'"


def store_at(url: str) -> Store:
    """Make, without opening it, the store that a URL names.

    Raises ValueError for any other URL, and ModuleNotFoundError if the driver is not installed. Errors show only the
    URL's scheme, because the rest may hold a password.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        msg = f"a text for store must be a URL: {_POSSIBLE}"
        raise ValueError(msg)
    match scheme.lower():
        case "sqlite":
            from .sqlite import SQLiteStore  # noqa: PLC0415 - see above

            return SQLiteStore(_path_in(rest))
        case "postgresql" | "postgres":
            from .postgres import PostgresStore  # noqa: PLC0415

            return PostgresStore(url)
        case "memory" if not rest:
            from .memory import MemoryStore  # noqa: PLC0415

            return MemoryStore()
    msg = (
        f"there is no store for {scheme[:20] + '://'!r}{' with anything behind it' * (scheme == 'memory')}: {_POSSIBLE}"
    )
    raise ValueError(msg)


def _path_in(rest: str) -> str:
    if not rest.startswith("/"):
        msg = "a URL of SQLite has three slashes before a relative path and four before an absolute one: "
        raise ValueError(f"{msg}'sqlite:///jobs.db', 'sqlite:////var/lib/jobs.db'")
    if "?" in rest or "#" in rest:
        msg = "a URL of SQLite has no options: 'sqlite:///jobs.db', or SQLiteStore(path, durability=...)"
        raise ValueError(msg)
    path = unquote(rest[1:])
    if not path:
        msg = "a URL of SQLite names a file: 'sqlite:///jobs.db'; for a store without one: 'memory://'"
        raise ValueError(msg)
    return path
