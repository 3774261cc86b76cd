"""Metrics in a SQLite file, for one agent.

Separate from the jobs' file: no job's mark waits for a batch, and losing metrics loses no job. A commit is one fsync,
so batches are large. A sample's row in `sample` keeps it from being stored twice.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from ....instants import microseconds
from ...contract import ProbeOutcome, Sample, StoreUnavailable, Type
from ..reading import LAST_KINDS, Stock, StoredSample
from ..retention import Retention
from ..shape import columns_to_add, table_of
from ..values import fingerprint, normal_columns
from .connection import MetricsLock, connect, connect_reader, errors, put, transaction
from .reader import SqliteReader
from .schema import add_columns, migrate, quoted, types_of
from .sweep import Sweep

GIGABYTE: Final = 1024**3
_OUTCOME: Final = "due_us, series, kind, failure, reason, lateness, waited, executed, stored, rows, cost"


class SqliteMetrics:
    """A store at `path`; beyond `most_bytes`, about, the oldest samples go.

    Readers work while an agent has the file.
    """

    def __init__(
        self, path: str | os.PathLike[str], retention: Retention | None = None, *, most_bytes: int = GIGABYTE
    ) -> None:
        self.path = Path(path)
        self.retention = retention or Retention()
        self._most_bytes = most_bytes
        self._lock = MetricsLock(self.path)
        self._connection: sqlite3.Connection | None = None
        self._types: dict[str, dict[str, str]] = {}
        self._series: dict[tuple[str, str, str], int] = {}
        self._is_known = False
        """Whether `_types` and `_series` are as in the file."""

    def __repr__(self) -> str:
        return f"SqliteMetrics({str(self.path)!r})"

    def open(self) -> None:
        """Make or update the file. Raises StoreUnavailable, StoreUnusable."""
        self.close()
        self._lock.take()
        try:
            with errors(self.path):
                self._connection = connect(self.path)
                migrate(self._connection, self.path)
                self._load(self._connection)
        except BaseException:
            self.close()
            raise

    def write(self, samples: Sequence[Sample], outcomes: Sequence[ProbeOutcome]) -> None:
        """Keep all or none. Raises Unstorable."""
        columns = [normal_columns(sample) for sample in samples]
        hashes = [fingerprint(sample) if sample.probe.on_change else None for sample in samples]
        with errors(self.path):
            writer = self._writer()
            try:
                with transaction(writer):
                    for sample, values, hash_ in zip(samples, columns, hashes, strict=True):
                        self._follow(writer, sample)
                        self._put_sample(writer, sample, values, hash_)
                    self._put_outcomes(writer, outcomes)
                    self._put_last(writer, samples, outcomes)
            except BaseException:
                self._is_known = False  # what was noted of tables and series may have been rolled back
                raise

    def newest(self, target: str, probe: str, database: str | None) -> str | None:
        """See MetricStore."""
        with errors(self.path):
            self._writer()
            return self._newest_before(self._series.get((target, probe, database or "")), None)

    def last(self, target: str, probe: str) -> float | None:
        """See MetricStore."""
        with errors(self.path):
            question = "SELECT max(last_us) FROM series WHERE target = ? AND probe = ?"
            at_us = self._writer().execute(question, [target, probe]).fetchone()[0]
        return None if at_us is None else at_us / 1e6

    def maintain(self, now: float) -> None:
        """Remove old and excess data, in small transactions."""
        with errors(self.path):
            sweep = Sweep(self._writer(), list(self._types))
            sweep.by_age(self._cutoffs(now))
            sweep.by_size(self._most_bytes)

    def samples(
        self, target: str | None = None, probe: str | None = None, *, database: str | None = None, limit: int = 100
    ) -> list[StoredSample]:
        """See MetricReader."""
        with errors(self.path), closing(connect_reader(self.path)) as connection:
            return SqliteReader(connection).samples(target, probe, database, limit)

    def outcomes(self, target: str | None = None, probe: str | None = None, *, limit: int = 100) -> list[ProbeOutcome]:
        """See MetricReader."""
        with errors(self.path), closing(connect_reader(self.path)) as connection:
            return SqliteReader(connection).outcomes(target, probe, limit)

    def stock(self) -> list[Stock]:
        """See MetricReader."""
        with errors(self.path), closing(connect_reader(self.path)) as connection:
            return SqliteReader(connection).stock()

    def interrupt(self) -> None:
        """End a query that another thread waits for."""
        if self._connection is not None:
            self._connection.interrupt()

    def close(self) -> None:
        """Release the file, if held."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._lock.release()

    def _writer(self) -> sqlite3.Connection:
        if self._connection is None:
            msg = f"{self.path} is not open: call open first"
            raise StoreUnavailable(msg)
        if not self._is_known:
            self._load(self._connection)
        return self._connection

    def _load(self, writer: sqlite3.Connection) -> None:
        self._types = types_of(writer)
        rows = writer.execute("SELECT target, probe, database, id FROM series")
        self._series = {(target, probe, database): id for target, probe, database, id in rows}
        self._is_known = True

    def _follow(self, writer: sqlite3.Connection, sample: Sample) -> None:
        there = self._types.setdefault(sample.probe.name, {})
        if added := columns_to_add(sample.probe, there):
            add_columns(writer, sample.probe, added, len(there))
            there |= {column.name: column.type.value for column in added}

    def _series_of(self, writer: sqlite3.Connection, key: tuple[str, str, str]) -> int:
        if key not in self._series:
            made = writer.execute("INSERT INTO series (target, probe, database) VALUES (?, ?, ?) RETURNING id", key)
            self._series[key] = made.fetchone()[0]
        return self._series[key]

    def _put_sample(
        self, writer: sqlite3.Connection, sample: Sample, values: list[tuple[Any, ...]], hash_: str | None
    ) -> None:
        series = self._series_of(writer, (sample.target, sample.probe.name, sample.database or ""))
        at_us = microseconds(sample.at)
        if hash_ is not None and self._newest_before(series, at_us) == hash_:
            return
        head = (at_us, series, len(sample.rows), sample.left_out, hash_)
        if not writer.execute("INSERT OR IGNORE INTO sample VALUES (?, ?, ?, ?, ?)", head).rowcount or not sample.rows:
            return
        probe = sample.probe
        columns = [
            tuple(map(_numeric, column)) if declared.type is Type.NUMERIC else column
            for declared, column in zip(probe.columns, values, strict=True)
        ]
        names = ", ".join(["sample_at_us, sample_series, sample_row", *(quoted(each.name) for each in probe.columns)])
        count = len(sample.rows)
        rows = list(zip((at_us,) * count, (series,) * count, range(count), *columns, strict=True))
        put(writer, f"INSERT INTO {table_of(probe)} ({names}) {{rows}}", rows)

    def _newest_before(self, series: int | None, at_us: int | None) -> str | None:
        """Return the hash of the newest snapshot before `at_us`; None: of all snapshots.

        Later snapshots do not count, so a batch that is written again stores nothing that it left out before.
        """
        question = (
            "SELECT hash FROM sample WHERE series = ? AND hash IS NOT NULL AND at_us < ? ORDER BY at_us DESC LIMIT 1"
        )
        found = self._writer().execute(question, [series, 2**63 - 1 if at_us is None else at_us]).fetchone()
        return found[0] if found else None

    def _put_outcomes(self, writer: sqlite3.Connection, outcomes: Sequence[ProbeOutcome]) -> None:
        rows = [
            (
                microseconds(each.due),
                self._series_of(writer, (each.target, each.probe, each.database or "")),
                each.kind.value,
                each.failure.value if each.failure else None,
                each.reason,
                *(each.lateness, each.waited, each.executed, each.stored, each.rows, each.cost),
            )
            for each in outcomes
        ]
        put(writer, f"INSERT OR IGNORE INTO outcome ({_OUTCOME}) {{rows}}", rows)

    def _put_last(
        self, writer: sqlite3.Connection, samples: Sequence[Sample], outcomes: Sequence[ProbeOutcome]
    ) -> None:
        newest: dict[tuple[str, str, str], float] = {}
        found = [(each.target, each.probe.name, each.database, each.at) for each in samples]
        found += [(each.target, each.probe, each.database, each.due) for each in outcomes if each.kind in LAST_KINDS]
        for target, probe, database, at in found:
            key = (target, probe, database or "")
            newest[key] = max(at, newest.get(key, at))
        writer.executemany(
            "UPDATE series SET last_us = max(:at, coalesce(last_us, :at)) WHERE id = :series",
            [{"at": microseconds(at), "series": self._series_of(writer, key)} for key, at in newest.items()],
        )

    def _cutoffs(self, now: float) -> dict[str, dict[int, int]]:
        found: dict[str, dict[int, int]] = {}
        for (target, probe, _), series in self._series.items():
            found.setdefault(probe, {})[series] = microseconds(now - self.retention.keep(target, probe))
        return found


def _numeric(value: Any) -> Any:
    """Write an integer of more than 64 bits as digits."""
    return value if not isinstance(value, int) or -(2**63) <= value < 2**63 else str(value)
