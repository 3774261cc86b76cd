"""Sweeps: old data goes, then the oldest excess. Newest snapshots stay."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Final

from .connection import transaction

AT_A_TIME: Final = 5_000
"""Per transaction: writes never wait long."""

_STEPS: Final = 40

_PROTECTED: Final = """
    SELECT series, max(at_us) FROM sample WHERE hash IS NOT NULL GROUP BY series
"""

_SPAN: Final = f"""
    SELECT min(at_us), max(at_us) FROM (
        SELECT at_us FROM sample WHERE (series, at_us) NOT IN ({_PROTECTED}) UNION ALL SELECT due_us FROM outcome
    )
"""  # noqa: S608 - a constant


class Sweep:
    """One sweep."""

    def __init__(self, connection: sqlite3.Connection, probes: list[str]) -> None:
        self._connection = connection
        self._probes = probes

    def by_age(self, cutoffs: Mapping[str, Mapping[int, int]]) -> None:
        """Remove rows before their series' cutoff, in microseconds."""
        of_all: dict[int, int] = {}
        for probe, of_series in cutoffs.items():
            of_all |= of_series
            if probe in self._probes:
                self._delete(f"probe_{probe}", "sample_at_us", "sample_series", of_series)
        self._delete("sample", "at_us", "series", of_all)
        self._delete("outcome", "due_us", "series", of_all)
        self._shrink()

    def by_size(self, most_bytes: int) -> None:
        """Remove the oldest rows beyond `most_bytes`."""
        for _ in range(_STEPS):
            if self._used() <= most_bytes:
                return
            first, last = self._connection.execute(_SPAN).fetchone()
            if first is None or first >= last:
                return
            before = first + max(1, (last - first) // 10)
            everybody = {id_: before for (id_,) in self._connection.execute("SELECT id FROM series")}
            for table, at, series in self._tables():
                self._delete(table, at, series, everybody)
            self._shrink()

    def _tables(self) -> list[tuple[str, str, str]]:
        probes = [(f"probe_{probe}", "sample_at_us", "sample_series") for probe in self._probes]
        return [*probes, ("sample", "at_us", "series"), ("outcome", "due_us", "series")]

    def _delete(self, table: str, at: str, series: str, cutoffs: Mapping[int, int]) -> None:
        if not cutoffs:
            return
        by_cutoff: dict[int, list[int]] = {}
        for id_, before in cutoffs.items():
            by_cutoff.setdefault(before, []).append(id_)
        for before, ids in by_cutoff.items():
            which = json.dumps(ids)
            spared = "" if table == "outcome" else f"AND ({series}, {at}) NOT IN ({_PROTECTED})"
            while self._delete_some(table, at, series, spared, (before, which)):
                pass

    def _delete_some(self, table: str, at: str, series: str, spared: str, asked: tuple[int, str]) -> bool:
        where = f"{at} < ? AND {series} IN (SELECT value FROM json_each(?)) {spared}"  # noqa: S608 - our own names
        edge = f"SELECT {at} FROM {table} WHERE {where} ORDER BY {at} LIMIT 1 OFFSET {AT_A_TIME}"  # noqa: S608 - our own names
        with transaction(self._connection):
            found = self._connection.execute(edge, asked).fetchone()
            before = found[0] + 1 if found else asked[0]
            self._connection.execute(f"DELETE FROM {table} WHERE {where}", (before, asked[1]))  # noqa: S608 - our own names
        return found is not None

    def _used(self) -> int:
        pages, free, size = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def _shrink(self) -> None:
        self._connection.executescript("PRAGMA incremental_vacuum(20000)")  # `execute` takes one step: a page
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
