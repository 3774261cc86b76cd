"""Tables of metrics in PostgreSQL, and views for people.

Changes hold one advisory lock. A partition is made first and then attached, which blocks no writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, LiteralString

from ...contract import Column, Probe
from ..errors import StoreUnusable
from ..shape import table_of
from ..weeks import Week
from .connection import MetricsConnection, sql

VERSION: Final = 1
OLDEST_SERVER: Final = 130_000

_TABLES: Final[LiteralString] = """
CREATE TABLE {schema}.meta (program text PRIMARY KEY, version int NOT NULL);
INSERT INTO {schema}.meta VALUES ('timerqueue metrics', 1);
CREATE TABLE {schema}.series (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, target text NOT NULL, probe text NOT NULL, database text NOT NULL,
    UNIQUE (target, probe, database)
);
CREATE TABLE {schema}.probe_column (
    probe text, name text, type text NOT NULL, place int NOT NULL, is_key boolean NOT NULL, is_counter boolean NOT NULL,
    PRIMARY KEY (probe, name)
);
CREATE TABLE {schema}.sample (
    series int, at timestamptz, rows int NOT NULL, left_out int NOT NULL, hash text, PRIMARY KEY (series, at)
) PARTITION BY RANGE (at);
CREATE TABLE {schema}.outcome (
    series int, due timestamptz, kind text NOT NULL, failure text, reason text, lateness float8 NOT NULL,
    waited float8 NOT NULL, executed float8 NOT NULL, stored float8 NOT NULL, rows int NOT NULL, cost float8 NOT NULL,
    PRIMARY KEY (series, due)
) PARTITION BY RANGE (due);
CREATE VIEW {schema}.outcomes AS
    SELECT target, probe, nullif(database, '') AS database, outcome.* FROM {schema}.outcome
    JOIN {schema}.series ON series.id = outcome.series;
"""


class Schema:
    """The tables of one schema."""

    def __init__(self, name: str) -> None:
        self.name = name

    def of(self, text: LiteralString, **parts: sql.Composable) -> sql.Composed:
        """Fill in this schema."""
        return sql.SQL(text).format(schema=sql.Identifier(self.name), **parts)

    def table(self, name: str) -> sql.Identifier:
        """Qualify a table."""
        return sql.Identifier(self.name, name)

    def prepare(self, connection: MetricsConnection) -> None:
        """Make missing tables. Raises StoreUnusable."""
        if connection.info.server_version < OLDEST_SERVER:
            msg = f"PostgreSQL {connection.info.server_version // 10_000} is too old for metrics: 13 is the first"
            raise StoreUnusable(msg)
        with connection.short_transaction():
            if self._is_there(connection):
                return
        with connection.short_transaction():
            self.lock(connection)
            if not self._is_there(connection):
                connection.execute(self.of("CREATE SCHEMA IF NOT EXISTS {schema}"))
                connection.execute(self.of(_TABLES))

    def lock(self, connection: MetricsConnection) -> None:
        """Wait for the lock, until the transaction ends."""
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('timerqueue metrics'), hashtext(%s))", [self.name])

    def try_lock(self, connection: MetricsConnection) -> bool:
        """Take that lock if it is free."""
        asked = "SELECT pg_try_advisory_xact_lock(hashtext('timerqueue metrics'), hashtext(%s))"
        return connection.execute(asked, [self.name]).fetchone() == (True,)

    def types(self, connection: MetricsConnection) -> dict[str, dict[str, str]]:
        """Return types by probe and column, oldest first."""
        found: dict[str, dict[str, str]] = {}
        asked = self.of("SELECT probe, name, type FROM {schema}.probe_column ORDER BY probe, place")
        for probe, name, type_ in connection.execute(asked):
            found.setdefault(probe, {})[name] = type_
        return found

    def add_columns(self, connection: MetricsConnection, probe: Probe, added: Sequence[Column], already: int) -> None:
        """Make or widen the probe's table. Needs the lock."""
        table = self.table(table_of(probe))
        declared = [
            sql.SQL("{} {}").format(sql.Identifier(column.name), sql.SQL(column.type.value)) for column in added
        ]
        if already:
            adding = sql.SQL(", ").join(sql.SQL("ADD COLUMN {}").format(each) for each in declared)
            connection.execute(sql.SQL("ALTER TABLE {} {}").format(table, adding))
        else:
            connection.execute(
                sql.SQL(
                    "CREATE TABLE {} (sample_series int, sample_at timestamptz, sample_row int, {},"
                    " PRIMARY KEY (sample_series, sample_at, sample_row)) PARTITION BY RANGE (sample_at)"
                ).format(table, sql.SQL(", ").join(declared))
            )
        for place, column in enumerate(added, already):
            row = [probe.name, column.name, column.type.value, place, column.is_key, column.is_counter]
            connection.execute(self.of("INSERT INTO {schema}.probe_column VALUES (%s, %s, %s, %s, %s, %s)"), row)
        connection.execute(
            self.of(
                "CREATE OR REPLACE VIEW {view} AS SELECT target AS sample_target, nullif(database, '')"
                " AS sample_database, {table}.* FROM {table} JOIN {schema}.series ON series.id = sample_series",
                view=self.table(probe.name),
                table=table,
            )
        )

    def partitioned(self, connection: MetricsConnection) -> list[str]:
        """Return the partitioned tables."""
        asked = "SELECT relname FROM pg_class WHERE relkind = 'p' AND relnamespace = %s::regnamespace ORDER BY relname"
        return [name for (name,) in connection.execute(asked, [sql.Identifier(self.name).as_string(connection)])]

    def weeks(self, connection: MetricsConnection, table: str) -> list[Week]:
        """Return a table's partitioned weeks, sorted."""
        asked = """
            SELECT right(child.relname, 9) FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
            JOIN pg_class parent ON parent.oid = inhparent
            WHERE parent.relname = %s AND parent.relnamespace = %s::regnamespace ORDER BY 1
        """
        found = connection.execute(asked, [table, sql.Identifier(self.name).as_string(connection)])
        return [Week.named(suffix) for (suffix,) in found]

    def make_weeks(self, connection: MetricsConnection, table: str, weeks: Iterable[Week]) -> None:
        """Make missing partitions. Needs the lock."""
        there = set(self.weeks(connection, table))
        for week in sorted(set(weeks) - there):
            name, (first, end) = self.partition(table, week), week.bounds
            parts = {"partition": name, "table": self.table(table)}
            connection.execute(self.of("CREATE TABLE {partition} (LIKE {table} INCLUDING ALL)", **parts))
            bounds = {"first": sql.Literal(first), "end": sql.Literal(end)}
            attach: LiteralString = (
                "ALTER TABLE {table} ATTACH PARTITION {partition} FOR VALUES FROM ({first}) TO ({end})"
            )
            connection.execute(self.of(attach, **parts, **bounds))

    def partition(self, table: str, week: Week) -> sql.Identifier:
        """Return a week's partition."""
        return self.table(f"{table}_{week.suffix}")

    def _is_there(self, connection: MetricsConnection) -> bool:
        asked = """
            SELECT array_agg(relname::text) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
            WHERE nspname = %s AND relkind IN ('r', 'p', 'v')
        """
        (there,) = connection.execute(asked, [self.name]).fetchone() or (None,)
        if not there:
            return False
        version = None
        if {"meta", "probe_column", "sample"} <= set(there):
            version = connection.execute(self.of("SELECT version FROM {schema}.meta")).fetchone()
        if version is None:
            msg = f"schema {self.name!r} holds tables of another program: give the metrics a schema of another name"
            raise StoreUnusable(msg)
        if version[0] > VERSION:
            msg = f"the tables in schema {self.name!r} have version {version[0]}, this release knows {VERSION}"
            raise StoreUnusable(msg)
        return True
