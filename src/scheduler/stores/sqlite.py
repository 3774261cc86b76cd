"""A store in one SQLite file, for one node: commits survive kill -9 and a power cut."""

# The theory. With a write-ahead log and synchronous FULL a commit costs one fsync, whatever it holds. The rest is the
# processor's, 40 to 60 us for a run: a mark, an end and two states. Meanwhile the loop is busy, and each step of a
# statement that gives the GIL away may wait 5 ms to have it back. While another thread never rested, batches of 500
# runs made 1,800 runs a second with `executemany`, which steps for each row. They made 5,600 with rows out of one JSON
# text, and 7,000 with rows as parameters of one statement (10,300 in batches of 2,000). So _sqlite/rows.py does the
# last.
#
# A commit writes pages: ticks are in the order of their times, where neighbours share pages. Refused rows are looked
# for only when a statement has changed fewer rows than it was given. Triggers log changes of others, and `PRAGMA
# data_version` says whether to read the log. Each call checks that the path still leads to the opened file, and each
# transaction that the file still holds the same store.

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from itertools import islice
from logging import getLogger
from typing import Any, Final

from attrs import evolve

from ._rows import RUNNING, Batch, Changes, Receipt, Retention, Stood, StoredJob, StoredPause, StoredState, StoredTick
from ._sqlite import rows
from ._sqlite.changes import PUT_CHANGE, SQLiteChanges, prune_changes
from ._sqlite.connection import Durability, fetch, primary_code
from ._sqlite.pruning import REMOVE_TICKS, RecordTally
from ._sqlite.session import Session
from ._store import Opened

__all__ = ["SQLiteStore"]

logger = getLogger(__name__)

AT_A_TIME: Final = 1_000

A_FEW: Final = 200

_FAR: Final = 2**63 - 1

_TICKS: Final = f"SELECT {', '.join(StoredTick._fields)} FROM tick"  # noqa: S608 - our own names
_RUNNING: Final = f"{_TICKS} WHERE outcome = '{RUNNING}'"
_OWED: Final = f"{_TICKS} WHERE owed = 1"
_HISTORY: Final = f"{_TICKS} WHERE due_us < ? ORDER BY due_us DESC LIMIT ?"
_HISTORY_OF_JOB: Final = f"{_TICKS} WHERE job_id = ? AND due_us < ? ORDER BY due_us DESC LIMIT ?"
_ORDER: Final = f"""
    SELECT job.rowid FROM job LEFT JOIN job_state ON job_id = id
    ORDER BY job_id IS NULL, min(coalesce(next_us, {_FAR}), coalesce(retry_at_us, {_FAR})), job.rowid
"""  # noqa: S608 - a constant
_ROWS: Final = f"""
    SELECT job.rowid, {", ".join(StoredJob._fields)}, {", ".join(StoredState._fields)}
    FROM job LEFT JOIN job_state ON job_id = id WHERE job.rowid IN ({{rows}})
"""  # noqa: S608 - our own names
_JOB_ENDS: Final = 1 + len(StoredJob._fields)


class SQLiteStore:
    """A store in the SQLite database at `path`. A missing one is made, readable by its owner only.

    `durability`: "full" commits survive a loss of power. "fast" commits survive the end of the process, even by kill
    -9. A loss of power may take "fast" commits since the last `prune`, at most 4 MiB, each whole.

    Next to the database are `-wal` and `-shm` (never remove them, never copy the database without them), `.lock` and
    `.ballast`. Use a local disk, and one process at a time.
    """

    def __init__(self, path: str | os.PathLike[str], *, durability: Durability = "full") -> None:
        self.path = os.fspath(path)
        if not self.path or ":memory:" in self.path or self.path.startswith("file:"):
            msg = f"path is {self.path!r} and must be that of a file: for a store without one take MemoryStore"
            raise ValueError(msg)
        if durability not in {"full", "fast"}:
            msg = f'durability is {durability!r} and must be "full" or "fast"'
            raise ValueError(msg)
        self._durability: Durability = durability
        self._session = Session(self.path, durability)
        self._opened: Opened | None = None
        self._data_version: tuple[sqlite3.Connection, int] | None = None
        self._edited: set[tuple[str, str]] = set()
        self._tally = RecordTally()

    def __repr__(self) -> str:
        state = f"epoch {self._opened.epoch}" if self._opened else "closed"
        return f"<SQLiteStore {self.path!r}, {self._durability}, {state}>"

    @property
    def is_immediate(self) -> bool:
        """False: it waits for the disk."""
        return False

    @property
    def made_changes(self) -> SQLiteChanges:
        """Who changed what."""
        return SQLiteChanges(self._session.reader)

    def preflight(self) -> None:
        """Raise the errors of `open` that show without changing anything, even while another node has the store."""
        self._session.preflight()

    def open(self, now_us: int, hint: Callable[[], None]) -> Opened:  # noqa: ARG002 - a file tells no process of its changes
        """Open the database. Raises StoreUnusable if it is not a scheduler's, is corrupt, or another node has it."""
        self.close()
        self._session = Session(self.path, self._durability)
        self._opened = self._session.open()
        self._edited.clear()
        self._tally = RecordTally()
        logger.info("%r is open", self)
        return self._opened

    def load(self) -> Iterator[list[tuple[StoredJob, StoredState | None]]]:
        """Yield all jobs as at one moment, over its own connection."""
        with self._session.errors():
            with self._session.transaction() as writer:
                writer.execute("DELETE FROM change")
            self._edited.clear()
            with self._session.snapshot() as reader:
                order = fetch(reader, _ORDER)
                for first in range(0, len(order), AT_A_TIME):
                    yield _load(reader, order[first : first + AT_A_TIME])

    def pauses(self) -> list[StoredPause]:
        """See Store."""
        with self._session.errors():
            return [StoredPause._make(row) for row in fetch(self._session.writer(), rows.PAUSES)]

    def running(self) -> list[StoredTick]:
        """See Store."""
        with self._session.errors():
            return [_tick(row) for row in fetch(self._session.writer(), _RUNNING)]

    def owed(self) -> list[StoredTick]:
        """See Store."""
        with self._session.errors():
            return [_tick(row) for row in fetch(self._session.writer(), _OWED)]

    def commit(self, batch: Batch) -> Receipt:
        """Commit the batch in one transaction. Lone surrogates are written as escapes."""
        with self._session.errors():
            try:
                receipt = self._commit(batch, list)
            except UnicodeEncodeError:
                receipt = self._commit(batch, _cleaned)
        self._tally.add(batch)
        return receipt

    def changes(self) -> Changes:
        """Return a page of the changes by other connections, such as the sqlite3 shell."""
        with self._session.errors():
            writer = self._session.writer()
            version = writer, fetch(writer, "PRAGMA data_version")[0][0]
            if version != self._data_version:
                with self._session.transaction():
                    self._take_edited(writer)
                self._data_version = version
            page = set(islice(self._edited, AT_A_TIME))
            changes = _changes(writer, page) if page else Changes()
        self._edited -= page
        return evolve(changes, is_more=bool(self._edited))

    def history(self, job_id: str | None = None, *, limit: int = 100, before_us: int | None = None) -> list[StoredTick]:
        """Return records of ticks due before `before_us`, latest first.

        It also works while the store is not open here, even if another process has it. Then it makes nothing, and
        raises StoreUnusable if there is no database of this version.
        """
        before_us = _FAR if before_us is None else min(before_us, _FAR)
        limit = min(max(limit, 0), _FAR)
        with self._session.reader() as reader:
            if job_id is None:
                found = fetch(reader, _HISTORY, (before_us, limit))
            else:
                found = fetch(reader, _HISTORY_OF_JOB, (rows.without_surrogates([job_id])[0], before_us, limit))
        return [_tick(row) for row in found]

    def standing(self, job_id: str) -> Stood:
        """Return a job's row and state, and all pauses. Like `history`, it needs no open store."""
        with self._session.reader() as reader:
            return rows.stood(reader, job_id)

    def read_jobs(self) -> list[tuple[StoredJob, StoredState | None]]:
        """Return all jobs. As `history`, it also works while the store is not open here."""
        with self._session.reader() as reader:
            return _load(reader, fetch(reader, _ORDER))

    def prune(self, retention: Retention, now_us: int) -> int:
        """Delete at most 5,000 records. On a full disk, the ballast makes room for that."""
        with self._session.errors():
            over = self._tally.over(self._session.writer(), retention, now_us)
            removed = self._remove(over) if over else over
            changes = prune_changes(self._session.transaction, retention, now_us)
            if not over:
                self._session.ballast.put()
            if self._durability == "fast":
                self._session.checkpoint("PASSIVE")
        return len(removed) + changes

    def close(self) -> None:
        """Release the database as one file without a log. Errors are logged."""
        self._session.close()
        self._opened = self._data_version = None

    def _commit(self, batch: Batch, clean: Callable[[Any], list[Any]]) -> Receipt:
        refused: list[StoredTick] = []
        stale: list[StoredTick] = []
        with self._session.transaction() as writer:
            if batch.jobs or batch.paused or batch.finished or batch.pauses:
                self._take_edited(writer)
                _edit(writer, batch, clean)
                writer.execute("DELETE FROM change")  # the entries of this transaction alone
            rows.put(writer, rows.PUT_STATE, clean(batch.states.values()))
            if rows.put(writer, rows.END_TICK, clean(batch.ended)) < len(batch.ended):
                stale = _stale(writer, batch, clean)
            rows.put(writer, rows.MISS_TICK, clean(batch.missed))
            if rows.put(writer, rows.MARK_TICK, clean(batch.marks)) < len(batch.marks):
                refused = _with_another_fence(writer, batch.marks, clean)
            rows.put(writer, PUT_CHANGE, clean(batch.made))
        return Receipt(tuple(refused), tuple(stale))

    def _take_edited(self, writer: sqlite3.Connection) -> None:
        logged = fetch(writer, "SELECT kind, key FROM change")
        if logged:
            self._edited.update(logged)
            writer.execute("DELETE FROM change")

    def _remove(self, over: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """Return the removed ticks: on a full disk a few, because their log needs room."""
        try:
            self._remove_all(over)
        except sqlite3.Error as exc:
            if primary_code(exc) != sqlite3.SQLITE_FULL:
                raise
            self._session.ballast.give_up(exc)
            self._session.checkpoint()
            over = over[:A_FEW]
            self._remove_all(over)
            self._session.checkpoint()
        return over

    def _remove_all(self, over: list[tuple[int, str]]) -> None:
        with self._session.transaction() as writer:
            rows.put(writer, REMOVE_TICKS, over)
        self._tally.subtract(over)


def _changes(writer: sqlite3.Connection, edited: set[tuple[str, str]]) -> Changes:
    jobs: dict[str, StoredJob | None] = {key: None for kind, key in edited if kind == "job"}
    pauses: dict[str, StoredPause | None] = {key: None for kind, key in edited if kind == "pause"}
    for job in map(StoredJob._make, rows.ask(writer, rows.JOBS, [(key,) for key in jobs])):
        jobs[job.id] = job
    for pause in map(StoredPause._make, rows.ask(writer, rows.PAUSES_OF, [(key,) for key in pauses])):
        pauses[pause.scope] = pause
    return Changes(jobs, pauses)


def _load(reader: sqlite3.Connection, order: list[tuple[int]]) -> list[tuple[StoredJob, StoredState | None]]:
    found = {row[0]: row for row in rows.ask(reader, _ROWS, order)}
    ordered = (found[rowid] for (rowid,) in order)
    return [(StoredJob._make(row[1:_JOB_ENDS]), rows.state(row[_JOB_ENDS:])) for row in ordered]


def _tick(row: tuple[Any, ...]) -> StoredTick:
    return StoredTick._make((*row[:-2], bool(row[-2]), row[-1]))


def _edit(writer: sqlite3.Connection, batch: Batch, clean: Callable[[Any], list[Any]]) -> None:
    put = {id: job for id, job in batch.jobs.items() if job is None or id not in batch.changed}
    _put_or_remove(writer, put, rows.PUT_JOB, rows.REMOVE_JOB, clean)
    rows.put(writer, rows.CHANGE_JOB, clean([job for id, job in batch.jobs.items() if id in batch.changed and job]))
    rows.put(writer, rows.PAUSE_JOB, clean([(job_id, *pause) for job_id, pause in batch.paused.items()]))
    rows.put(writer, rows.FINISH_JOB, clean(batch.finished.items()))
    _put_or_remove(writer, batch.pauses, rows.PUT_PAUSE, rows.REMOVE_PAUSE, clean)


def _put_or_remove(
    connection: sqlite3.Connection,
    changes: dict[str, Any],
    put: str,
    remove: str,
    clean: Callable[[Any], list[Any]],
) -> None:
    rows.put(connection, remove, clean([(key,) for key, row in changes.items() if row is None]))
    rows.put(connection, put, clean([row for row in changes.values() if row is not None]))


def _cleaned(some: Any) -> list[Any]:
    return [rows.without_surrogates(row) for row in some]


def _stale(connection: sqlite3.Connection, batch: Batch, clean: Callable[[Any], list[Any]]) -> list[StoredTick]:
    """If the mark of an end's batch is recorded, the batch is repeated and the end is not stale."""
    suspects = _with_another_fence(connection, batch.ended, clean)
    ended = {(tick.job_id, tick.due_us) for tick in suspects}
    marked = [tick for tick in batch.marks if (tick.job_id, tick.due_us) in ended]
    to_come = set(_with_another_fence(connection, marked, clean))
    done = {(tick.job_id, tick.due_us) for tick in marked if tick not in to_come}
    return [tick for tick in suspects if (tick.job_id, tick.due_us) not in done]


def _with_another_fence(
    connection: sqlite3.Connection, ticks: list[StoredTick], clean: Callable[[Any], list[Any]]
) -> list[StoredTick]:
    keys = [(tick[0], tick[1]) for tick in clean(ticks)]
    fences = {(job_id, due_us): fence for job_id, due_us, fence in rows.ask(connection, rows.FENCES, keys)}
    return [tick for tick, key in zip(ticks, keys, strict=True) if fences.get(key) != tick.fence]
