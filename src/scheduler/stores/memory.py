"""A store that ends with its process: for tests, and the shortest `Store`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import nlargest
from itertools import count
from operator import attrgetter
from threading import Lock
from typing import Final, TypeVar

from attrs import Factory, define, evolve

from timerqueue import Resident

from .._values import Outcome
from ._executions import Audited, Decide, Fetched, Mended, NotTaken, Taken
from ._memory.changes import MemoryChanges, over as over_of_changes
from ._memory.executions import ExecutionTable, is_enabled
from ._memory.pruning import over_bounds
from ._rows import (
    RUNNING,
    TAKEN,
    Batch,
    Changes,
    Execution,
    Receipt,
    Retention,
    Stood,
    StoredChange,
    StoredJob,
    StoredPause,
    StoredState,
    StoredTick,
)
from ._shards import where_of
from ._store import Opened, StoreForked, StoreTakenOver, StoreUnusable

__all__ = ["MemoryStore"]

AT_A_TIME: Final = 1_000

Row = TypeVar("Row")

_numbers = count(1)


@define(eq=False)
class _Data:
    jobs: dict[str, StoredJob] = Factory(dict)
    states: dict[str, StoredState] = Factory(dict)
    pauses: dict[str, StoredPause] = Factory(dict)
    ticks: dict[tuple[str, int], StoredTick] = Factory(dict)
    made: dict[int, StoredChange] = Factory(dict)
    epoch: int = 0
    instance: str = Factory(lambda: f"memory-{next(_numbers)}")
    lock: Lock = Factory(Lock)
    owner: MemoryStore | None = None
    hint: Callable[[], None] | None = None
    edited_jobs: dict[str, None] = Factory(dict)
    edited_pauses: dict[str, None] = Factory(dict)
    """Edits that the owner has not read yet."""
    executions: ExecutionTable = Factory(ExecutionTable)

    def forget_edits(self) -> None:
        self.edited_jobs.clear()
        self.edited_pauses.clear()


class MemoryStore(Resident):
    """Keeps everything in dicts, which survive `close`.

    To play a restart, give the same store to the next scheduler. To play a crash, give it `another()` while the first
    one runs: it finds the same ticks RUNNING, and the first one's commits raise StoreTakenOver.
    """

    def __init__(self) -> None:
        self._data = _Data()

    def another(self) -> MemoryStore:
        """Return another store object on the same data, like another process."""
        other = MemoryStore()
        other._data = self._data
        return other

    @property
    def is_immediate(self) -> bool:
        """True."""
        return True

    @property
    def executions(self) -> MemoryExecutions:
        """Starts in an external queue."""
        return MemoryExecutions(self)

    @property
    def made_changes(self) -> MemoryChanges:
        """Who changed what."""
        return MemoryChanges(self._data)

    def open(self, now_us: int, hint: Callable[[], None]) -> Opened:  # noqa: ARG002 - it keeps no times of its own
        """Take the data over from another open store."""
        data = self._data
        self._bind_to_process("MemoryStore", error=StoreForked)
        with data.lock:
            data.owner = self
            data.epoch += 1
            data.hint = hint
            data.forget_edits()
            return Opened(data.epoch, data.instance)

    def load(self) -> Iterator[list[tuple[StoredJob, StoredState | None]]]:
        """See Store."""
        data = self._data
        with data.lock:
            data.forget_edits()
            rows = [(job, data.states.get(job.id)) for job in data.jobs.values()]
        rows.sort(key=_soonest_first)
        return iter([rows[first : first + AT_A_TIME] for first in range(0, len(rows), AT_A_TIME)])

    def pauses(self) -> list[StoredPause]:
        """See Store."""
        with self._data.lock:
            return list(self._data.pauses.values())

    def running(self) -> list[StoredTick]:
        """See Store."""
        with self._data.lock:
            return [tick for tick in self._data.ticks.values() if tick.outcome == RUNNING]

    def owed(self) -> list[StoredTick]:
        """See Store."""
        with self._data.lock:
            return [tick for tick in self._data.ticks.values() if tick.owed]

    def commit(self, batch: Batch) -> Receipt:
        """Carry out the batch. Raises StoreUnusable after `close`, StoreTakenOver after another store's `open`."""
        with self.ours() as data:
            _put_jobs(data, {id: job for id, job in batch.jobs.items() if id not in batch.changed or id in data.jobs})
            for job_id, pause in batch.paused.items():
                if job_id in data.jobs:
                    data.jobs[job_id] = data.jobs[job_id]._replace(**pause._asdict())
            over = {job_id for job_id, text in batch.finished.items() if _schedule(data.jobs.get(job_id)) == text}
            _put_jobs(data, dict.fromkeys(over))
            data.states.update((job_id, state) for job_id, state in batch.states.items() if job_id in data.jobs)
            _put(data.pauses, batch.pauses)
            stale = _end(data.ticks, batch)
            for tick in batch.missed:
                data.ticks.setdefault((tick.job_id, tick.due_us), tick)
            refused = tuple(_mark(data.ticks, batch.marks))
            gone = data.executions.carry_out(batch, data, data.epoch)
            data.made.update((each.number, each) for each in batch.made if each.number not in data.made)
            return Receipt(refused=refused, stale=tuple(stale), gone=gone)

    @contextmanager
    def ours(self) -> Iterator[_Data]:
        """Lock the data. Raises like `commit`."""
        data = self._data
        with data.lock:
            if data.owner is None:
                msg = f"{data.instance} is closed: open it again"
                raise StoreUnusable(msg)
            if data.owner is not self:
                msg = f"{data.instance}: another has opened it since (epoch {data.epoch})"
                raise StoreTakenOver(msg)
            yield data

    def changes(self) -> Changes:
        """Return changes by `edit` and the like."""
        data = self._data
        with data.lock:
            jobs = {job_id: data.jobs.get(job_id) for job_id in data.edited_jobs}
            pauses = {scope: data.pauses.get(scope) for scope in data.edited_pauses}
            data.forget_edits()
            return Changes(jobs, pauses)

    def history(self, job_id: str | None = None, *, limit: int = 100, before_us: int | None = None) -> list[StoredTick]:
        """See Store."""
        with self._data.lock:
            ticks = list(self._data.ticks.values())
        asked = (
            tick for tick in ticks if job_id in {None, tick.job_id} and (before_us is None or tick.due_us < before_us)
        )
        return nlargest(limit, asked, key=attrgetter("due_us"))

    def standing(self, job_id: str) -> Stood:
        """Return a job's row and state, and all pauses."""
        data = self._data
        with data.lock:
            return Stood(data.jobs.get(job_id), data.states.get(job_id), [*data.pauses.values()])

    def prune(self, retention: Retention, now_us: int) -> int:
        """Delete at most a thousand records over the bounds."""
        ticks = self._data.ticks
        with self._data.lock:
            over = list(over_bounds(ticks.values(), retention, now_us))[:AT_A_TIME]
            for tick in over:
                del ticks[tick.job_id, tick.due_us]
            changes = over_of_changes(self._data.made.values(), retention, now_us)[:AT_A_TIME]
            for number in changes:
                del self._data.made[number]
            return len(over) + len(changes)

    def close(self) -> None:
        """Release the data; they stay."""
        with self._data.lock:
            if self._data.owner is self:
                self._data.owner = self._data.hint = None

    def edit(self, job: StoredJob) -> None:
        """Put a job by hand, and notify the scheduler."""
        self._edit(jobs={job.id: job})

    def delete(self, job_id: str) -> None:
        """Remove a job by hand."""
        self._edit(jobs={job_id: None})

    def edit_pause(self, pause: StoredPause) -> None:
        """Put a pause by hand."""
        self._edit(pauses={pause.scope: pause})

    def delete_pause(self, scope: str) -> None:
        """Remove a pause by hand."""
        self._edit(pauses={scope: None})

    def _edit(
        self, jobs: dict[str, StoredJob | None] | None = None, pauses: dict[str, StoredPause | None] | None = None
    ) -> None:
        data = self._data
        with data.lock:
            _put_jobs(data, jobs or {})
            _put(data.pauses, pauses or {})
            if data.owner is None:
                return
            data.edited_jobs.update(dict.fromkeys(jobs or ()))
            data.edited_pauses.update(dict.fromkeys(pauses or ()))
            hint = data.hint
        if hint is not None:
            hint()


class MemoryExecutions:
    """See Executions."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def take(self, ticks: Sequence[tuple[str, int]]) -> list[Taken | NotTaken]:
        """See Executions."""
        with self._store.ours() as data:
            lost = _cut_off(data, {job_id for job_id, _ in ticks})
            answers = [data.executions.take(tick, data, data.epoch, {data.epoch}) for tick in ticks]
        return [answer if isinstance(answer, NotTaken) else _with_lost(answer, lost) for answer in answers]

    def fetch(self, job_ids: Sequence[str], now_us: int) -> list[Fetched | NotTaken]:
        """See Executions."""
        with self._store.ours() as data:
            lost = _cut_off(data, set(job_ids))
            answers = [data.executions.fetch(id, now_us, data, data.epoch, {data.epoch}) for id in job_ids]
        return [
            answer if isinstance(answer, NotTaken) else evolve(answer, taken=_with_lost(answer.taken, lost))
            for answer in answers
        ]

    def waiting(
        self, status: str, *, before_us: int, after: tuple[int, str] = (-1, ""), limit: int = 1_000
    ) -> list[Execution]:
        """See Executions."""
        with self._store.ours() as data:
            asked = [row for row in data.executions.every() if row.status == status and row.due_us < before_us]
        asked.sort(key=_place_in_line)
        return [row for row in asked if _place_in_line(row) > after][:limit]

    def taken(self) -> list[Execution]:
        """See Executions."""
        with self._store.ours() as data:
            return [row for row in data.executions.every() if row.status == TAKEN and row.epoch == data.epoch]

    def of_job(self, job_id: str) -> list[Execution]:
        """See Executions."""
        with self._store.ours() as data:
            return data.executions.of(job_id)

    def wheres(self, job_ids: Sequence[str]) -> dict[str, str]:
        """See Executions."""
        with self._store.ours() as data:
            asked = {id: where_of(data.jobs[id].options) for id in job_ids if id in data.jobs}
        return {id: where for id, where in asked.items() if where is not None}

    def reconcile(self, job_ids: Sequence[str], decide: Decide) -> Mended:
        """See Executions."""
        with self._store.ours() as data:
            return data.executions.reconcile(job_ids, decide, data, {data.epoch})

    def audit(self, part: int, *, now_us: int, instance: str | None, decide: Decide) -> Audited | None:
        """See Executions."""
        with self._store.ours() as data:
            return data.executions.audit(part, now_us, instance, decide, data, {data.epoch})

    def last_audit(self, job_id: str) -> int | None:
        """See Executions."""
        with self._store.ours() as data:
            return data.executions.audits.get(job_id)

    def unaudited(self, since_us: int, *, limit: int = 100) -> list[tuple[str, int | None]]:
        """See Executions."""
        with self._store.ours() as data:
            audits = data.executions.audits
            jobs = [(job.id, audits.get(job.id)) for job in data.jobs.values() if is_enabled(job, data.pauses)]
        late = [(id, at_us) for id, at_us in jobs if at_us is None or at_us < since_us]
        return sorted(late, key=lambda found: (found[1] or 0, found[0]))[:limit]


def _cut_off(data: _Data, job_ids: Collection[str]) -> list[StoredTick]:
    cut_off = [tick for tick in data.ticks.values() if tick.outcome == RUNNING or tick.owed]
    return [tick for tick in cut_off if tick.job_id in job_ids]


def _with_lost(taken: Taken, lost: Collection[StoredTick]) -> Taken:
    of_job = [tick for tick in lost if tick.job_id == taken.job.id]
    running = tuple(tick for tick in of_job if tick.outcome == RUNNING)
    return evolve(taken, running=running, owed=tuple(tick for tick in of_job if tick.owed))


def _place_in_line(row: Execution) -> tuple[int, str]:
    return row.due_us, row.job_id


def _schedule(job: StoredJob | None) -> str | None:
    return None if job is None else job.schedule


def _put_jobs(data: _Data, jobs: dict[str, StoredJob | None]) -> None:
    _put(data.jobs, jobs)
    for job_id, job in jobs.items():
        if job is None:
            data.states.pop(job_id, None)


def _put(rows: dict[str, Row], changes: Mapping[str, Row | None]) -> None:
    for key, row in changes.items():
        if row is None:
            rows.pop(key, None)
        else:
            rows[key] = row


def _end(ticks: dict[tuple[str, int], StoredTick], batch: Batch) -> list[StoredTick]:
    """Return the stale ends. If the mark of their batch is recorded, the batch is repeated: they are not stale."""
    marked = {(tick.job_id, tick.due_us, tick.fence) for tick in batch.marks}
    stale = []
    for tick in batch.ended:
        record = ticks.get((tick.job_id, tick.due_us))
        if record is None or record.fence == tick.fence:
            ticks[tick.job_id, tick.due_us] = tick
        elif (record.job_id, record.due_us, record.fence) not in marked:
            stale.append(tick)
    return stale


def _mark(ticks: dict[tuple[str, int], StoredTick], marks: list[StoredTick]) -> Iterator[StoredTick]:
    for tick in marks:
        record = ticks.get((tick.job_id, tick.due_us))
        if record is None or record.fence == tick.fence or _may_be_tried_again(record, tick.attempt):
            ticks[tick.job_id, tick.due_us] = tick
        else:
            yield tick


def _may_be_tried_again(record: StoredTick, attempt: int) -> bool:
    return record.attempt < attempt and record.outcome not in {RUNNING, Outcome.MISSED.value}


def _soonest_first(row: tuple[StoredJob, StoredState | None]) -> tuple[int, int]:
    _, state = row
    if state is None:
        return 2, 0
    starts = [start for start in (state.next_us, state.retry_at_us) if start is not None]
    return (0, min(starts)) if starts else (1, 0)
