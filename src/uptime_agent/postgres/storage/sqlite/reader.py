"""Reading metrics out of a SQLite file."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import Any, Final

from ...contract import ProbeOutcome, Type
from ..reading import Stock, StoredSample, outcome_of, with_sizes
from .schema import quoted, types_of

_ASKED: Final = "(:target IS NULL OR target = :target) AND (:probe IS NULL OR probe = :probe)"
_HEADS: Final = f"""
    SELECT series.id, target, probe, database, at_us, left_out, rows FROM sample JOIN series ON series.id = series
    WHERE {_ASKED} AND (:database IS NULL OR database = :database)
    ORDER BY at_us DESC, target, probe, database LIMIT :limit
"""  # noqa: S608 - a constant
_OUTCOMES: Final = f"""
    SELECT target, probe, database, due_us, kind, failure, reason, lateness, waited, executed, stored, rows, cost
    FROM outcome JOIN series ON series.id = series
    WHERE {_ASKED} ORDER BY due_us DESC, target, probe, database LIMIT :limit
"""  # noqa: S608 - a constant


_STOCK: Final = """
    SELECT target, probe, count(DISTINCT nullif(database, '')), count(*), sum(rows), max(at_us)
    FROM sample JOIN series ON series.id = series GROUP BY target, probe ORDER BY target, probe
"""
_SIZES: Final = """
    SELECT substr(name, 7), pgsize FROM dbstat WHERE aggregate = TRUE AND name LIKE 'probe\\_%' ESCAPE '\\'
"""


class SqliteReader:
    """Looks into one file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._types = types_of(connection)

    def samples(self, target: str | None, probe: str | None, database: str | None, limit: int) -> list[StoredSample]:
        """Return samples, newest first."""
        asked = {"target": target, "probe": probe, "database": database, "limit": limit}
        return [self._sample(head) for head in self._connection.execute(_HEADS, asked).fetchall()]

    def outcomes(self, target: str | None, probe: str | None, limit: int) -> list[ProbeOutcome]:
        """Return records, newest first."""
        asked = {"target": target, "probe": probe, "limit": limit}
        return [
            outcome_of(target, probe, database, due_us / 1e6, row)
            for target, probe, database, due_us, *row in self._connection.execute(_OUTCOMES, asked)
        ]

    def stock(self) -> list[Stock]:
        """Return the amounts."""
        found = [
            Stock(target, probe, databases, samples, rows, last_us / 1e6)
            for target, probe, databases, samples, rows, last_us in self._connection.execute(_STOCK)
        ]
        sizes: dict[str, int] = {}
        with suppress(sqlite3.OperationalError):  # some builds of SQLite cannot tell
            sizes = dict(self._connection.execute(_SIZES))
        return with_sizes(found, sizes)

    def _sample(self, head: tuple[Any, ...]) -> StoredSample:
        series, target, probe, database, at_us, left_out, count = head
        types = self._types.get(probe, {})
        rows: list[tuple[Any, ...]] = []
        if count:
            names = ", ".join(map(quoted, types))
            question = (
                f"SELECT {names} FROM probe_{probe} WHERE sample_at_us = ? AND sample_series = ? ORDER BY sample_row"  # noqa: S608 - names were checked
            )
            found = self._connection.execute(question, [at_us, series])
            rows = [tuple(map(_read, types.values(), row)) for row in found]
        return StoredSample(target, probe, database or None, at_us / 1e6, tuple(types), tuple(rows), left_out)


def _read(type_: str, value: Any) -> Any:
    if type_ == Type.BOOLEAN.value and value is not None:
        return bool(value)
    if type_ == Type.NUMERIC.value and isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    return value
