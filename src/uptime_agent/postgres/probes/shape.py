"""The notation of the catalogue: fields, each with its SQL by version.

A variant begins where a field's SQL changes. What a version lacks is a NULL. Names are those of the newest version's
view.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from ..contract import NEWEST_PROVEN, OLDEST_SUPPORTED, Column, Probe, Scope, Type, Variant

Reading = str | Mapping[int, str | None]
"""SQL, {} being the column's name; or by first version."""

OTHERS: Final = (
    "a.pid <> pg_backend_pid() AND coalesce(a.application_name, '') "
    "IS DISTINCT FROM nullif(current_setting('application_name'), '')"
)
"""Rows of pg_stat_activity AS a, without our connections."""
NEEDS_MONITOR: Final = "a role in pg_monitor: else the sessions of others show neither state nor query"


@frozen
class ProbeColumn:
    """A column, with SQL by version."""

    column: Column
    readings: Mapping[int, str | None]

    def on(self, version: int) -> str:
        """Return its SQL on a version."""
        sql = self.readings[max(since for since in self.readings if since <= version)]
        return f"({sql or 'NULL'})::{self.column.type.value} AS {self.column.name}"


Fields = tuple[ProbeColumn, ...]


def texts(names: str, reading: Reading = "{}", since: int = 0, **options: Any) -> Fields:
    """Text columns."""
    return _fields(Type.TEXT, names, reading, since, options)


def keys(names: str, reading: Reading = "{}", **options: Any) -> Fields:
    """Text columns that identify rows."""
    return _fields(Type.TEXT, names, reading, 0, {"is_key": True} | options)


def flags(names: str, reading: Reading = "{}", since: int = 0, **options: Any) -> Fields:
    """Boolean columns."""
    return _fields(Type.BOOLEAN, names, reading, since, options)


def moments(names: str, reading: Reading = "{}", since: int = 0, **options: Any) -> Fields:
    """Columns of instants."""
    return _fields(Type.TIMESTAMP, names, reading, since, options)


def numbers(names: str, reading: Reading = "{}", since: int = 0, **options: Any) -> Fields:
    """Whole numbers that go up and down."""
    return _fields(Type.BIGINT, names, reading, since, options)


def number_keys(names: str, reading: Reading = "{}", **options: Any) -> Fields:
    """Whole numbers that identify rows."""
    return _fields(Type.BIGINT, names, reading, 0, {"is_key": True} | options)


def counters(names: str, reading: Reading = "{}", since: int = 0, **options: Any) -> Fields:
    """Whole numbers that only grow until reset."""
    return _fields(Type.BIGINT, names, reading, since, {"is_counter": True} | options)


def timers(names: str, reading: Reading = "{} / 1000", since: int = 0, **options: Any) -> Fields:
    """Seconds that only grow until reset, from milliseconds."""
    return _fields(Type.DOUBLE, names, reading, since, {"is_counter": True, "unit": "s"} | options)


def seconds(names: str, reading: Reading = "{}", since: int = 0, **options: Any) -> Fields:
    """Seconds that go up and down."""
    return _fields(Type.DOUBLE, names, reading, since, {"unit": "s"} | options)


def shares(names: str, reading: Reading = "{}", since: int = 0, **options: Any) -> Fields:
    """Ratios, 1 for the whole."""
    return _fields(Type.DOUBLE, names, reading, since, options)


def _fields(kind: Type, names: str, reading: Reading, since: int, options: Mapping[str, Any]) -> Fields:
    readings = {since: reading} if isinstance(reading, str) else reading
    return tuple(
        ProbeColumn(
            Column(name, kind, **options),
            {0: None} | {start: sql and sql.replace("{}", name) for start, sql in readings.items()},
        )
        for name in names.split()
    )


def age_of(moment: str) -> str:
    """SQL: age in seconds, at least 0, or NULL."""
    return f"CASE WHEN {moment} IS NOT NULL THEN greatest(extract(epoch FROM clock_timestamp() - {moment}), 0) END"


def bytes_between(newer: str, older: str) -> str:
    """SQL: bytes between WAL positions, at least 0, or NULL."""
    distance = f"pg_wal_lsn_diff({newer}, {older})"
    return f"CASE WHEN {distance} > 0 THEN {distance} ELSE {distance} * 0 END"


def kept_query(query: str) -> str:
    """SQL: a query's beginning, without a password that it sets."""
    return rf"left(regexp_replace({query}, '(password\s+)e?''[^'']*''', '\1''***''', 'gi'), 500)"


def probe(
    name: str,
    purpose: str,
    source: Reading,
    *groups: Fields,
    order: str | None = None,
    left_out: str = "0",
    since: int = OLDEST_SUPPORTED,
    scope: Scope = Scope.SERVER,
    most_rows: int = 300,
    **options: Any,
) -> Probe:
    """Return a probe, with a variant for each version that differs.

    `source` follows FROM, or holds {columns}. `order` puts first what `most_rows` keeps. `left_out`: SQL, rows that the
    source left out.
    """
    fields = tuple(field for group in groups for field in group)
    cap = f", (greatest(count(*) OVER () - {most_rows}, 0) + {left_out})::bigint AS left_out" if order else ""
    end = f" ORDER BY {order} LIMIT {most_rows}" if order else ""

    def on(version: int) -> Variant:
        columns = ", ".join(field.on(version) for field in fields) + cap
        sql = _sql(name, _on(source, version), columns, end)
        return Variant(sql, since=version, is_proven=version <= NEWEST_PROVEN)

    return Probe(
        name=name,
        purpose=purpose,
        scope=scope,
        columns=tuple(field.column for field in fields),
        variants=tuple(map(on, starts(source, fields, since))),
        most_rows=most_rows,
        **options,
    )


def starts(source: Reading, fields: Fields, since: int) -> list[int]:
    """Return the versions at which SQL changes."""
    readings = [field.readings for field in fields] + ([] if isinstance(source, str) else [source])
    return sorted({since} | {version for each in readings for version in each if version > since})


def _on(source: Reading, version: int) -> str:
    if isinstance(source, str):
        return source
    found = source[max(since for since in source if since <= version)]
    assert found is not None, source
    return found


def _sql(name: str, source: str, columns: str, end: str) -> str:
    text = source.replace("{columns}", columns) if "{columns}" in source else f"SELECT {columns} FROM {source}"
    return f"/* timerqueue:{name} */ {' '.join(text.split())}{end}"
