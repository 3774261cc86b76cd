"""Metrics in one PostgreSQL schema.

A sample's row in `sample` is inserted first; only new samples' rows are copied. So nothing is stored twice, by
whichever node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Final

from ....instants import microseconds
from ...contract import ProbeOutcome, Sample, StoreUnavailable
from ..reading import Stock, StoredSample
from ..retention import Retention
from ..shape import columns_to_add, table_of
from ..values import fingerprint
from ..weeks import Week
from .connection import MetricsConnection, connect, described, errors, sql
from .copying import read_instant, spelled_instant
from .parts import Key, SampleColumns, key_of, parted
from .reader import PostgresReader
from .schema import Schema
from .upkeep import Busy, Upkeep

_LONGEST_SCHEMA: Final = 63
_SERIES: Final = """
    WITH given AS (SELECT * FROM unnest(%s::text[], %s::text[], %s::text[]) AS given (target, probe, database)),
    made AS (INSERT INTO {schema}.series (target, probe, database) SELECT * FROM given
        ON CONFLICT DO NOTHING RETURNING target, probe, database, id)
    SELECT * FROM made UNION ALL
    SELECT target, probe, database, id FROM {schema}.series JOIN given USING (target, probe, database)
"""
_HEADS: Final = """
    INSERT INTO {schema}.sample (series, at, rows, left_out, hash)
    SELECT * FROM unnest(%s::int[], %s::timestamptz[], %s::int[], %s::int[], %s::text[])
    ON CONFLICT DO NOTHING RETURNING series, at
"""
_OUTCOMES: Final = """
    INSERT INTO {schema}.outcome (series, due, kind, failure, reason, lateness, waited, executed, stored, rows, cost)
    SELECT * FROM unnest(%s::int[], %s::timestamptz[], %s::text[], %s::text[], %s::text[], %s::float8[], %s::float8[],
        %s::float8[], %s::float8[], %s::int[], %s::float8[])
    ON CONFLICT DO NOTHING
"""
_NEWEST: Final = """
    SELECT hash FROM {schema}.sample JOIN {schema}.series ON series.id = series
    WHERE target = %s AND probe = %s AND database = %s AND hash IS NOT NULL AND at < %s::timestamptz
    ORDER BY at DESC LIMIT 1
"""
_LAST: Final = """
    SELECT greatest(max((SELECT max(at) FROM {schema}.sample WHERE series = series.id)),
        max((SELECT max(due) FROM {schema}.outcome WHERE series = series.id AND kind IN ('stored', 'partial'))))
    FROM {schema}.series WHERE target = %s AND probe = %s
"""


class PostgresMetrics:
    """A store in a schema at `dsn`, which several nodes may share. Readers connect separately."""

    def __init__(
        self,
        dsn: str,
        retention: Retention | None = None,
        *,
        schema: str = "timerqueue_metrics",
        password: str | None = None,
    ) -> None:
        if not 0 < len(schema.encode("utf-8", "replace")) <= _LONGEST_SCHEMA or "\0" in schema or "%" in schema:
            msg = f"schema={schema!r} is not a name for a schema: give 1 to {_LONGEST_SCHEMA} bytes, without % and NUL"
            raise ValueError(msg)
        self.retention = retention or Retention()
        self._dial = partial(connect, dsn, password)
        self._schema = Schema(schema)
        self._where = f"PostgreSQL at {described(dsn) or 'its default place'}, schema {schema}"
        self._connection: MetricsConnection | None = None
        self._types: dict[str, dict[str, str]] = {}
        self._series: dict[Key, int] = {}
        self._partitions: set[tuple[str, Week]] = set()

    def __repr__(self) -> str:
        return f"PostgresMetrics({self._where})"

    def open(self) -> None:
        """Connect, make missing tables. Raises StoreUnavailable, StoreUnusable."""
        self.close()
        with errors(self._where):
            self._connection = self._dial()
            self._schema.prepare(self._connection)
            self._load()

    def write(self, samples: Sequence[Sample], outcomes: Sequence[ProbeOutcome]) -> None:
        """Keep all or none. Raises Unstorable."""
        parts = list(parted(samples))
        hashes = [fingerprint(sample) if sample.probe.on_change else None for sample in samples]
        with errors(self._where):
            connection = self._connected()
            try:
                with connection.short_transaction():
                    self._follow(connection, samples)
                    self._make_partitions(connection, samples, outcomes)
                    self._number(connection, [*map(key_of, samples), *map(_key_of_outcome, outcomes)])
                    new = self._put_heads(connection, samples, hashes)
                    self._copy(connection, parts, new)
                    self._put_outcomes(connection, outcomes)
            except BaseException:
                self._forget()  # what was noted of tables and series may have been rolled back
                raise

    def newest(self, target: str, probe: str, database: str | None) -> str | None:
        """See MetricStore."""
        with errors(self._where), self._transaction() as connection:
            return self._newest_before(connection, (target, probe, database or ""), "infinity")

    def last(self, target: str, probe: str) -> float | None:
        """See MetricStore."""
        with errors(self._where), self._transaction() as connection:
            (at,) = connection.execute(self._schema.of(_LAST), [target, probe]).fetchone() or (None,)
        return None if at is None else read_instant(at) / 1e6

    def maintain(self, now: float) -> None:
        """Make partitions and remove old data, unless another node does."""
        with errors(self._where):
            connection = self._connected()
            self._partitions.clear()  # some of them may go
            with suppress(Busy):
                Upkeep(connection, self._schema, self.retention, now).run()

    def samples(
        self, target: str | None = None, probe: str | None = None, *, database: str | None = None, limit: int = 100
    ) -> list[StoredSample]:
        """See MetricReader."""
        with errors(self._where), self._dial() as connection:
            return PostgresReader(connection, self._schema).samples(target, probe, database, limit)

    def outcomes(self, target: str | None = None, probe: str | None = None, *, limit: int = 100) -> list[ProbeOutcome]:
        """See MetricReader."""
        with errors(self._where), self._dial() as connection:
            return PostgresReader(connection, self._schema).outcomes(target, probe, limit)

    def stock(self) -> list[Stock]:
        """See MetricReader."""
        with errors(self._where), self._dial() as connection:
            return PostgresReader(connection, self._schema).stock()

    def interrupt(self) -> None:
        """End another thread's wait, within a tenth of a second."""
        if self._connection is not None:
            self._connection.is_unwanted = True

    def close(self) -> None:
        """Close the connection, if any."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._forget()

    def _connected(self) -> MetricsConnection:
        if self._connection is None:
            msg = f"{self._where}: it is not open: call open first"
            raise StoreUnavailable(msg)
        if self._connection.closed:
            self._connection = self._dial()
            self._load()
        return self._connection

    @contextmanager
    def _transaction(self) -> Iterator[MetricsConnection]:
        connection = self._connected()
        with connection.short_transaction():
            yield connection

    def _load(self) -> None:
        with self._transaction() as connection:
            self._types = self._schema.types(connection)

    def _forget(self) -> None:
        self._types.clear()
        self._series.clear()
        self._partitions.clear()

    def _follow(self, connection: MetricsConnection, samples: Sequence[Sample]) -> None:
        for probe in {id(sample.probe): sample.probe for sample in samples}.values():
            if not columns_to_add(probe, self._types.get(probe.name, {})):
                continue
            self._schema.lock(connection)
            self._types = self._schema.types(connection)  # another agent may have been quicker
            there = self._types.setdefault(probe.name, {})
            if added := columns_to_add(probe, there):
                self._schema.add_columns(connection, probe, added, len(there))
                there |= {column.name: column.type.value for column in added}

    def _make_partitions(
        self, connection: MetricsConnection, samples: Sequence[Sample], outcomes: Sequence[ProbeOutcome]
    ) -> None:
        needed = {("outcome", Week.of(each.due)) for each in outcomes}
        for sample in samples:
            week = Week.of(sample.at)
            needed |= {("sample", week), (table_of(sample.probe), week)}
        if missing := needed - self._partitions:
            self._schema.lock(connection)
            for table in sorted({table for table, _ in missing}):
                self._schema.make_weeks(connection, table, [week for name, week in missing if name == table])
            self._partitions |= missing

    def _number(self, connection: MetricsConnection, keys: Iterable[Key]) -> None:
        unknown = sorted(set(keys) - self._series.keys())
        while unknown:  # a series that another agent commits at this moment is seen by the next statement
            columns = [list(column) for column in zip(*unknown, strict=True)]
            for *key, number in connection.execute(self._schema.of(_SERIES), columns):
                self._series[key[0], key[1], key[2]] = number
            unknown = [key for key in unknown if key not in self._series]

    def _put_heads(
        self, connection: MetricsConnection, samples: Sequence[Sample], hashes: Sequence[str | None]
    ) -> set[tuple[int, int]]:
        several = [sample for sample, hash_ in zip(samples, hashes, strict=True) if hash_ is None]
        new = self._insert_heads(connection, several, [None] * len(several))
        for sample, hash_ in zip(samples, hashes, strict=True):
            at = spelled_instant(microseconds(sample.at))
            if hash_ is not None and self._newest_before(connection, key_of(sample), at) != hash_:
                new |= self._insert_heads(connection, [sample], [hash_])
        return new

    def _insert_heads(
        self, connection: MetricsConnection, samples: Sequence[Sample], hashes: Sequence[str | None]
    ) -> set[tuple[int, int]]:
        if not samples:
            return set()
        asked = [
            [self._series[key_of(each)] for each in samples],
            [spelled_instant(microseconds(each.at)) for each in samples],
            [len(each.rows) for each in samples],
            [each.left_out for each in samples],
            list(hashes),
        ]
        return {(series, read_instant(at)) for series, at in connection.execute(self._schema.of(_HEADS), asked)}

    def _newest_before(self, connection: MetricsConnection, key: Key, at: str) -> str | None:
        """A second replay stores nothing that the first left out."""
        found = connection.execute(self._schema.of(_NEWEST), [*key, at]).fetchone()
        return found[0] if found else None

    def _copy(self, connection: MetricsConnection, parts: Sequence[SampleColumns], new: set[tuple[int, int]]) -> None:
        """Of two samples with one key, the first."""
        for table, of_table in groupby(parts, attrgetter("into")):
            name, names = table
            listed = map(sql.Identifier, ("sample_series", "sample_at", "sample_row", *names))
            statement = sql.SQL("COPY {} ({}) FROM STDIN").format(self._schema.table(name), sql.SQL(", ").join(listed))
            with connection.cursor() as cursor, cursor.copy(statement) as copy:
                for part in of_table:
                    if text := part.text(self._series, new):
                        copy.write(text)

    def _put_outcomes(self, connection: MetricsConnection, outcomes: Sequence[ProbeOutcome]) -> None:
        rows = [
            (
                self._series[_key_of_outcome(each)],
                spelled_instant(microseconds(each.due)),
                each.kind.value,
                each.failure.value if each.failure else None,
                None if each.reason is None else each.reason.replace("\0", "\ufffd"),
                *(each.lateness, each.waited, each.executed, each.stored, each.rows, each.cost),
            )
            for each in outcomes
        ]
        if rows:
            connection.execute(self._schema.of(_OUTCOMES), [list(column) for column in zip(*rows, strict=True)])


def _key_of_outcome(outcome: ProbeOutcome) -> Key:
    return outcome.target, outcome.probe, outcome.database or ""
