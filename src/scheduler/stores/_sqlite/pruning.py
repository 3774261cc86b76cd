"""Which ticks of a SQLite store are over its retention, without reading all each time.

All are counted once, then commits are added. Counts of jobs are never too small, and corrected before a removal. Bytes
are estimated, and recounted after each sixteenth of the bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from sqlite3 import Connection
from typing import Final

from .._rows import RUNNING, SIZE_OF_TICK, Batch, Retention, size_of
from .connection import fetch
from .rows import MOST_ROWS, ask

MAX_ROWS: Final = 5_000

SHARE_OF_JOB: Final = 16
"""A job's records are read from a sixteenth over its bound."""

_LONGEST: Final = 2**62
_SIZE: Final = (
    f"{SIZE_OF_TICK} + length(job_id) + coalesce(length(error), 0) "
    "+ coalesce(length(trace), 0) + coalesce(length(result), 0) + coalesce(length(waited), 0)"
)
_MAY_GO: Final = f"outcome <> '{RUNNING}' AND owed = 0"
_COUNT: Final = "SELECT job_id, count(*) FROM tick GROUP BY job_id"
_TOTAL: Final = f"SELECT coalesce(sum({_SIZE}), 0) FROM tick"  # noqa: S608 - our own constants
_OLDEST: Final = f"SELECT due_us, job_id, {_SIZE} FROM tick WHERE {_MAY_GO} ORDER BY due_us, job_id LIMIT ?"  # noqa: S608
_OLDEST_OF_JOB: Final = (
    f"SELECT due_us, job_id, {_SIZE} FROM tick WHERE job_id = ? AND {_MAY_GO} ORDER BY due_us LIMIT ?"  # noqa: S608
)
# A tick that ended before an instant was due before it: the first condition is a range of the primary key.
_OLDER: Final = (
    f"SELECT due_us, job_id, {_SIZE} FROM tick WHERE due_us < ? AND coalesce(ended_us, due_us) < ? AND {_MAY_GO} "  # noqa: S608
    "ORDER BY due_us, job_id LIMIT ?"
)
_COUNT_OF_JOBS: Final = (
    "SELECT column1, (SELECT count(*) FROM tick WHERE job_id = column1), "  # noqa: S608 - our own constants
    f"(SELECT count(*) FROM tick WHERE job_id = column1 AND NOT ({_MAY_GO})) "
    "FROM ({rows}) WHERE column1 IS NOT NULL"
)
REMOVE_TICKS: Final = "DELETE FROM tick WHERE (due_us, job_id) IN ({rows})"


class RecordTally:
    def __init__(self) -> None:
        self._of_job: Counter[str] | None = None
        self._grown: set[str] = set()
        self._per_job = -1
        self._bytes = 0
        self._bytes_since = 0
        self._found: dict[tuple[int, str], int] = {}

    def add(self, batch: Batch) -> None:
        if self._of_job is None:
            return
        ticks = [*batch.marks, *batch.missed, *batch.ended]
        job_ids = [tick.job_id for tick in ticks]
        self._of_job.update(job_ids)
        self._grown.update(job_ids)
        grown = sum(map(size_of, ticks)) - SIZE_OF_TICK * len(batch.ended)  # ends replace marks
        self._bytes += grown
        self._bytes_since += grown

    def over(self, connection: Connection, retention: Retention, now_us: int) -> list[tuple[int, str]]:
        """Return at most MAX_ROWS keys."""
        self._count(connection)
        found: dict[tuple[int, str], int] = {}
        if retention.age is not None:
            before_us = now_us - int(min(retention.age * 1e6, _LONGEST))
            _note(found, fetch(connection, _OLDER, (before_us, before_us, MAX_ROWS)))
        if retention.per_job is not None:
            self._note_those_of_jobs(found, connection, retention.per_job)
        if retention.total_bytes is not None:
            self._note_those_beyond(found, connection, retention.total_bytes)
        self._found = found
        return list(found)[:MAX_ROWS]

    def subtract(self, removed: list[tuple[int, str]]) -> None:
        if self._of_job is not None:
            self._of_job.subtract(job_id for _, job_id in removed)
            self._bytes -= sum(map(self._found.__getitem__, removed))

    def _count(self, connection: Connection) -> None:
        if self._of_job is None:
            self._of_job = Counter(dict(fetch(connection, _COUNT)))
            self._grown = set(self._of_job)
            self._count_bytes(connection)

    def _count_bytes(self, connection: Connection) -> None:
        self._bytes, self._bytes_since = fetch(connection, _TOTAL)[0][0], 0

    def _note_those_of_jobs(self, found: dict[tuple[int, str], int], connection: Connection, per_job: int) -> None:
        assert self._of_job is not None
        slack = per_job // SHARE_OF_JOB
        if per_job != self._per_job:
            self._per_job, slack = per_job, 0
            self._grown = set(self._of_job)
        self._grown = {job_id for job_id in self._grown if self._of_job[job_id] > per_job + slack}
        suspects = [(job_id,) for job_id in self._grown]
        for first in range(0, len(suspects), MOST_ROWS):
            for job_id, count, staying in ask(connection, _COUNT_OF_JOBS, suspects[first : first + MOST_ROWS]):
                self._of_job[job_id] = count
                surplus = count - staying - per_job
                if surplus > 0 and len(found) < MAX_ROWS:
                    _note(found, fetch(connection, _OLDEST_OF_JOB, (job_id, min(surplus, MAX_ROWS))))
            if len(found) >= MAX_ROWS:
                return

    def _note_those_beyond(self, found: dict[tuple[int, str], int], connection: Connection, total_bytes: int) -> None:
        if self._bytes > total_bytes and self._bytes_since > total_bytes // 16:
            self._count_bytes(connection)
        surplus = self._bytes - sum(found.values()) - total_bytes
        if surplus <= 0:
            return
        oldest = [row for row in fetch(connection, _OLDEST, (MAX_ROWS + len(found),)) if (row[0], row[1]) not in found]
        before = accumulate((size for *_, size in oldest), initial=0)
        _note(found, [row for row, gone in zip(oldest, before, strict=False) if gone < surplus])


def _note(found: dict[tuple[int, str], int], rows: Iterable[tuple[int, str, int]]) -> None:
    found.update(((due_us, job_id), size) for due_us, job_id, size in rows)
