"""Coming partitions are made, old data goes, newest snapshots stay.

A partition holds one week. A week beyond every retention is dropped; other old rows go in small transactions. Each
transaction needs the advisory lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from ....instants import microseconds
from ..retention import Retention
from ..values import instant
from ..weeks import Week
from .connection import MetricsConnection, sql
from .schema import Schema

WEEKS_AHEAD: Final = 2
AT_A_TIME: Final = 20_000
"""Rows deleted by one transaction."""

_NEWEST: Final = """
    SELECT series, max(at), min(probe) FROM {schema}.sample JOIN {schema}.series ON series.id = series
    WHERE hash IS NOT NULL GROUP BY series
"""
_OLD: Final = """
    DELETE FROM {partition} WHERE ctid = ANY (ARRAY(
        SELECT it.ctid FROM {partition} it
        JOIN unnest(%(series)s::int[], %(before)s::timestamptz[]) AS cut (series, before) ON cut.series = it.{series}
        WHERE it.{at} < cut.before AND NOT EXISTS (
            SELECT FROM unnest(%(spared)s::int[], %(newest)s::timestamptz[]) AS spared (series, newest)
            WHERE spared.series = it.{series} AND spared.newest = it.{at}
        ) LIMIT %(limit)s
    ))
"""


class Busy(Exception):
    """Another node has the lock."""


@frozen
class _Table:
    name: str
    series: str
    at: str
    longest: float


class Upkeep:
    """One round over all tables."""

    def __init__(self, connection: MetricsConnection, schema: Schema, retention: Retention, now: float) -> None:
        self._connection = connection
        self._schema = schema
        self._retention = retention
        self._now = now

    def run(self) -> None:
        """Make partitions, remove old data. Raises Busy."""
        with self._connection.short_transaction():
            self._lock()
            tables = self._schema.partitioned(self._connection)
            for name in tables:
                ahead = Week.of(self._now).and_next(WEEKS_AHEAD)
                self._schema.make_weeks(self._connection, name, ahead)
            self._see()
        for table in map(self._table, tables):
            for week in self._weeks(table.name):
                self._clear(table, week)

    def _see(self) -> None:
        series = self._connection.execute(self._schema.of("SELECT id, target, probe FROM {schema}.series")).fetchall()
        self._probes = {probe for _, _, probe in series}
        keep = [self._retention.keep(target, probe) for _, target, probe in series]
        newest = self._connection.execute(self._schema.of(_NEWEST)).fetchall()
        self._newest = {(f"probe_{probe}", Week.of(at.timestamp())) for _, at, probe in newest}
        self._newest |= {("sample", week) for _, week in self._newest}
        self._asked: Mapping[str, Any] = {
            "series": [id_ for id_, *_ in series],
            "before": [instant(microseconds(self._now - each)) for each in keep],
            "spared": [id_ for id_, *_ in newest],
            "newest": [at for _, at, _ in newest],
            "limit": AT_A_TIME,
        }

    def _table(self, name: str) -> _Table:
        if name.startswith("probe_"):
            return _Table(name, "sample_series", "sample_at", self._retention.longest(name.removeprefix("probe_")))
        longest = max([self._retention.default, *map(self._retention.longest, self._probes)])
        return _Table(name, "series", "due" if name == "outcome" else "at", longest)

    def _weeks(self, table: str) -> list[Week]:
        with self._connection.short_transaction():
            return self._schema.weeks(self._connection, table)

    def _clear(self, table: _Table, week: Week) -> None:
        if week.end <= self._now - table.longest and (table.name, week) not in self._newest:
            with self._connection.short_transaction():
                self._lock()
                partition = self._schema.partition(table.name, week)
                self._connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(partition))
            return
        if self._is_untouched(week):
            return
        while self._delete_some(table, week) == AT_A_TIME:
            pass

    def _is_untouched(self, week: Week) -> bool:
        start = week.end - 7 * 86_400
        return all(start >= before.timestamp() for before in self._asked["before"])

    def _delete_some(self, table: _Table, week: Week) -> int:
        asked = dict(self._asked)
        if table.name == "outcome":
            asked |= {"spared": [], "newest": []}
        names = {"series": sql.Identifier(table.series), "at": sql.Identifier(table.at)}
        statement = self._schema.of(_OLD, partition=self._schema.partition(table.name, week), **names)
        with self._connection.short_transaction():
            self._lock()
            return self._connection.execute(statement, asked).rowcount

    def _lock(self) -> None:
        if not self._schema.try_lock(self._connection):
            raise Busy
