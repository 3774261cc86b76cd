"""Who changed what, in a SQLite store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from sqlite3 import Connection
from typing import Final

from .._rows import Retention, StoredChange
from .connection import fetch
from .rows import without_surrogates

MAX_CHANGES: Final = 5_000
"""Changes that one call deletes."""

_FAR: Final = 2**63 - 1
_COLUMNS: Final = ", ".join(StoredChange._fields)
PUT_CHANGE: Final = (
    f"INSERT INTO made_change ({_COLUMNS}) SELECT * FROM ({{rows}}) WHERE column1 IS NOT NULL ON CONFLICT DO NOTHING"  # noqa: S608 - our own names
)
_READ: Final = (
    f"SELECT {_COLUMNS} FROM made_change WHERE at_us < ? AND (? IS NULL OR scope = ?) AND (? IS NULL OR actor = ?)"  # noqa: S608
    " ORDER BY at_us DESC, number DESC LIMIT ?"
)
_PRUNE: Final = (
    "DELETE FROM made_change WHERE number IN (SELECT number FROM made_change WHERE at_us < ? OR (at_us, number) <="
    " (SELECT at_us, number FROM made_change ORDER BY at_us DESC, number DESC LIMIT 1 OFFSET ?) LIMIT ?)"
)


class SQLiteChanges:
    """`reader`: lends a connection that reads."""

    def __init__(self, reader: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._reader = reader

    def read(
        self, *, scope: str | None = None, actor: str | None = None, limit: int = 100, before_us: int | None = None
    ) -> list[StoredChange]:
        """See MadeChanges."""
        of_scope, of_actor = without_surrogates((scope, actor))
        before = _FAR if before_us is None else before_us
        asked = (before, of_scope, of_scope, of_actor, of_actor, limit)
        with self._reader() as reader:
            return [StoredChange._make(row) for row in fetch(reader, _READ, asked)]


def prune_changes(
    transaction: Callable[[], AbstractContextManager[Connection]], retention: Retention, now_us: int
) -> int:
    """Delete some changes over the bounds. Return their number."""
    before_us = -_FAR if retention.age is None else max(-_FAR, now_us - int(min(retention.age * 1e6, 2**62)))
    most = _FAR if retention.changes is None else retention.changes
    with transaction() as writer:
        return writer.execute(_PRUNE, (before_us, most, MAX_CHANGES)).rowcount
