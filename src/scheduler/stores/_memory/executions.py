"""Executions in dicts: the shortest form of `Executions`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from attrs import Factory, define

from ..._values import EVERYTHING
from .._executions import LIVE, PARTS, Audited, Decide, Fetched, Mended, NotTaken, Standing, Taken
from .._rows import (
    DONE,
    PENDING,
    SCHEDULED,
    SKIPPED,
    SUPERSEDED,
    TAKEN,
    Batch,
    Execution,
    Placed,
    Planned,
    StoredJob,
    StoredPause,
    StoredState,
    StoredTick,
)
from .._shards import SHARDS, shard_of

Key = tuple[str, int]


class Rows(Protocol):
    jobs: dict[str, StoredJob]
    states: dict[str, StoredState]
    pauses: dict[str, StoredPause]
    ticks: dict[Key, StoredTick]


@define(eq=False)
class ExecutionTable:
    jobs: dict[str, dict[int, Execution]] = Factory(dict)
    audits: dict[str, int] = Factory(dict)

    def carry_out(self, batch: Batch, store: Rows, epoch: int) -> tuple[Execution, ...]:
        """Return the executions that gave way."""
        for placed in batch.placed:
            self._place(placed)
        for lost in batch.lost:
            row = self.at(lost.job_id, lost.due_us)
            if row is not None and row.status == SCHEDULED and _stands(row) == _stands(lost):
                self._put(row._replace(status=PENDING, instance=None, number=None, put_us=None))
        for job_id, due_us in batch.released.items():
            self._release(job_id, due_us, epoch)
        return tuple(gone for planned in batch.planned.values() for gone in self.plan(planned, store))

    def _place(self, placed: Placed) -> None:
        row = self.at(placed.job_id, placed.due_us)
        if row is not None and row.status in {*LIVE, TAKEN}:
            status = SCHEDULED if row.status == PENDING else row.status
            self._put(row._replace(status=status, instance=placed.instance, number=placed.number, put_us=placed.put_us))

    def _release(self, job_id: str, due_us: int | None, epoch: int) -> None:
        taken = self.taken(job_id)
        if taken is None or taken.due_us != due_us or taken.epoch != epoch:
            return
        for row in [row for row in self.of(job_id) if row.status == DONE]:
            del self.jobs[job_id][row.due_us]
        self._put(taken._replace(status=DONE, epoch=None))

    def plan(self, planned: Planned, store: Rows) -> Iterator[Execution]:
        """Yield the live execution that gave way."""
        live = self.live(planned.job_id)
        if live is not None and live.due_us != planned.due_us:
            ended = SKIPPED if planned.skips else DONE if (live.job_id, live.due_us) in store.ticks else SUPERSEDED
            yield self._put(live._replace(status=ended))
        if planned.due_us is None or planned.job_id not in store.jobs:
            return
        row = self.at(planned.job_id, planned.due_us)
        if row is None:
            row = Execution(planned.job_id, planned.due_us, PENDING, planned.schedule, planned.made_us)
        elif row.status not in {*LIVE, TAKEN}:
            row = row._replace(status=PENDING, instance=None, number=None, put_us=None, made_us=planned.made_us)
        self._put(row._replace(schedule=planned.schedule, next_due_us=planned.next_due_us))

    def take(self, tick: Key, store: Rows, epoch: int, living: Collection[int]) -> Taken | NotTaken:
        row, job = self.at(*tick), store.jobs.get(tick[0])
        if row is None or job is None:
            return NotTaken.UNKNOWN
        if row.status in {SKIPPED, SUPERSEDED, DONE}:
            return NotTaken(row.status)
        held = self.taken(job.id)
        if held is not None and held is not row and held.epoch in living:
            return NotTaken.RUNNING
        if held is row and held.epoch != epoch and held.epoch in living:
            return NotTaken.RUNNING
        if held is not None and held is not row:
            self._put(held._replace(status=DONE, epoch=None))
        self._put(row._replace(status=TAKEN, epoch=epoch))
        return Taken(job, store.states.get(job.id))

    def fetch(self, job_id: str, now_us: int, store: Rows, epoch: int, living: Collection[int]) -> Fetched | NotTaken:
        job, held = store.jobs.get(job_id), self.taken(job_id)
        if job is None:
            return NotTaken.UNKNOWN
        if held is not None and held.epoch != epoch:
            if held.epoch in living:
                return NotTaken.RUNNING
            self._put(held._replace(status=DONE, epoch=None))
            held = None
        if held is None:
            if self.at(job_id, now_us) is not None:
                return NotTaken.RUNNING
            held = self._put(Execution(job_id, now_us, TAKEN, job.schedule, now_us, epoch=epoch))
        taken = Taken(job, store.states.get(job_id))
        return Fetched(taken=taken, due_us=held.due_us, live=self.live(job_id))

    def reconcile(self, job_ids: Iterable[str], decide: Decide, store: Rows, living: Collection[int]) -> Mended:
        planned, gone = list[Execution](), list[Execution]()
        owing = {tick.job_id for tick in store.ticks.values() if tick.owed}
        for job_id in job_ids:
            live, held = self.live(job_id), self.taken(job_id)
            plan = None
            if held is None or held.epoch not in living:
                job, state = store.jobs.get(job_id), store.states.get(job_id)
                plan = decide(Standing(job_id, job, state, live, owes=job_id in owing))
            if plan is None:
                continue
            gone += self.plan(plan, store)
            now = self.live(job_id)
            if now is not None and (live is None or now.due_us != live.due_us):
                planned.append(now)
        return Mended(planned=tuple(planned), gone=tuple(gone))

    def audit(  # noqa: PLR0917 - the verb's arguments, and what it works on
        self, part: int, now_us: int, instance: str | None, decide: Decide, store: Rows, living: Collection[int]
    ) -> Audited:
        ours = [job for job in store.jobs.values() if part_of(job.id) == part]
        here = [job_id for job_id in self.jobs if job_id in store.jobs and part_of(job_id) == part]
        left = [job_id for job_id in here if (held := self.taken(job_id)) is not None and held.epoch not in living]
        further = [self._put(live._replace(status=SUPERSEDED)) for id in left if (live := self.live(id)) is not None]
        orphans = sum(self._orphan(row, instance, living) for job_id in here for row in self.of(job_id))
        broken = [job.id for job in ours if self._is_broken(job, store)]
        gone = [] if part else [id for id in self.jobs if id not in store.jobs and self.live(id) is not None]
        mended = self.reconcile([*broken, *gone], lambda at: _without_job(at, now_us) or decide(at), store, living)
        enabled = [job for job in ours if is_enabled(job, store.pauses)]
        self.audits.update((job.id, now_us) for job in enabled)
        return Audited(planned=mended.planned, gone=(*further, *mended.gone), jobs=len(enabled), orphans=orphans)

    def _orphan(self, row: Execution, instance: str | None, living: Collection[int]) -> bool:
        is_lost = row.status == SCHEDULED and instance not in {None, row.instance}
        is_left = row.status == TAKEN and row.epoch not in living
        if is_lost or is_left:
            self._put(row._replace(status=PENDING, instance=None, number=None, put_us=None, epoch=None))
        return is_lost or is_left

    def _is_broken(self, job: StoredJob, store: Rows) -> bool:
        live = self.live(job.id)
        if live is None:
            return EVERYTHING not in store.pauses and (job.paused is None or job.paused_until_us is not None)
        is_held = job.paused is not None and live.due_us != job.paused_until_us
        return is_held or live.schedule != job.schedule

    def of(self, job_id: str) -> list[Execution]:
        """Return the latest due first."""
        rows = self.jobs.get(job_id, {})
        return [rows[due_us] for due_us in sorted(rows, reverse=True)]

    def at(self, job_id: str, due_us: int) -> Execution | None:
        return self.jobs.get(job_id, {}).get(due_us)

    def every(self) -> Iterator[Execution]:
        return (row for rows in self.jobs.values() for row in rows.values())

    def live(self, job_id: str) -> Execution | None:
        return next((row for row in self.of(job_id) if row.status in LIVE), None)

    def taken(self, job_id: str) -> Execution | None:
        return next((row for row in self.of(job_id) if row.status == TAKEN), None)

    def _put(self, row: Execution) -> Execution:
        self.jobs.setdefault(row.job_id, {})[row.due_us] = row
        return row


def part_of(job_id: str) -> int:
    return shard_of(job_id) * PARTS // SHARDS


def is_enabled(job: StoredJob, pauses: Mapping[str, StoredPause]) -> bool:
    return job.paused is None and EVERYTHING not in pauses


def _stands(row: Execution | Placed) -> tuple[str | None, int | None]:
    return row.instance, row.number


def _without_job(at: Standing, now_us: int) -> Planned | None:
    return None if at.job is not None else Planned(at.id, None, "", now_us)
