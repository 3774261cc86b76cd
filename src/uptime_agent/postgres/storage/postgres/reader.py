"""Reading metrics out of PostgreSQL."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from ...contract import ProbeOutcome, Type
from ..reading import Stock, StoredSample, outcome_of, with_sizes
from .connection import MetricsConnection, sql
from .copying import read_instant
from .schema import Schema

_HEADS: Final = """
    SELECT series.id, target, probe, database, at, left_out, rows FROM {schema}.sample
    JOIN {schema}.series ON series.id = series
    WHERE (%(target)s::text IS NULL OR target = %(target)s) AND (%(probe)s::text IS NULL OR probe = %(probe)s)
    AND (%(database)s::text IS NULL OR database = %(database)s)
    ORDER BY at DESC, target, probe, database LIMIT %(limit)s
"""
_OUTCOMES: Final = """
    SELECT target, probe, database, due, kind, failure, reason, lateness, waited, executed, stored, rows, cost
    FROM {schema}.outcome JOIN {schema}.series ON series.id = series
    WHERE (%(target)s::text IS NULL OR target = %(target)s) AND (%(probe)s::text IS NULL OR probe = %(probe)s)
    ORDER BY due DESC, target, probe, database LIMIT %(limit)s
"""


_STOCK: Final = """
    SELECT target, probe, count(DISTINCT nullif(database, '')), count(*), sum(rows)::bigint, max(at)
    FROM {schema}.sample JOIN {schema}.series ON series.id = series GROUP BY 1, 2 ORDER BY 1, 2
"""
_SIZES: Final = """
    SELECT substr(parent.relname, 7), sum(pg_total_relation_size(inhrelid)) FROM pg_inherits
    JOIN pg_class parent ON parent.oid = inhparent JOIN pg_namespace ON pg_namespace.oid = parent.relnamespace
    WHERE nspname = %s AND parent.relkind = 'p' AND parent.relname LIKE 'probe\\_%%' GROUP BY 1
"""


class PostgresReader:
    """Looks into one schema."""

    def __init__(self, connection: MetricsConnection, schema: Schema) -> None:
        self._connection = connection
        self._schema = schema
        self._types = schema.types(connection)

    def samples(self, target: str | None, probe: str | None, database: str | None, limit: int) -> list[StoredSample]:
        """Return samples, newest first."""
        asked = {"target": target, "probe": probe, "database": database, "limit": limit}
        return [self._sample(head) for head in self._connection.execute(self._schema.of(_HEADS), asked).fetchall()]

    def outcomes(self, target: str | None, probe: str | None, limit: int) -> list[ProbeOutcome]:
        """Return the outcomes of probes, newest first."""
        asked = {"target": target, "probe": probe, "limit": limit}
        return [
            outcome_of(target, probe, database, read_instant(due) / 1e6, row)
            for target, probe, database, due, *row in self._connection.execute(self._schema.of(_OUTCOMES), asked)
        ]

    def stock(self) -> list[Stock]:
        """Return how much is stored, by server and probe."""
        found = [
            Stock(target, probe, databases, samples, rows, read_instant(last) / 1e6)
            for target, probe, databases, samples, rows, last in self._connection.execute(self._schema.of(_STOCK))
        ]
        sizes = self._connection.execute(_SIZES, [self._schema.name])
        return with_sizes(found, {probe: int(size) for probe, size in sizes})

    def _sample(self, head: tuple[Any, ...]) -> StoredSample:
        series, target, probe, database, at, left_out, count = head
        types = self._types.get(probe, {})
        rows: list[tuple[Any, ...]] = []
        if count:
            asked = sql.SQL("SELECT {} FROM {} WHERE sample_series = %s AND sample_at = %s ORDER BY sample_row").format(
                sql.SQL(", ").join(map(_selected, types, types.values())), self._schema.table(f"probe_{probe}")
            )
            found = self._connection.execute(asked, [series, at])
            rows = [tuple(map(_read, types.values(), row)) for row in found]
        return StoredSample(
            target, probe, database or None, read_instant(at) / 1e6, tuple(types), tuple(rows), left_out
        )


def _selected(name: str, type_: str) -> sql.Composed:
    """Select a column, an instant as microseconds: some instants exceed Python's datetimes."""
    if type_ == Type.TIMESTAMP.value:
        return sql.SQL("(extract(epoch FROM {}) * 1000000)::bigint").format(sql.Identifier(name))
    return sql.SQL("{}").format(sql.Identifier(name))


def _read(type_: str, value: Any) -> Any:
    if isinstance(value, Decimal) and type_ == Type.NUMERIC.value:
        return int(value) if value.is_finite() and value == value.to_integral_value() else format(value, "f")
    return value
