"""Gather what a running scheduler knows of a job, and answer from it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from .._control import PartedRegistry
from .._jobs import Job
from .._journal import Journal
from .._loop import Core
from .._memory import Memory
from .._plan import instant_at, instant_of, us_of
from .._shape import RunInfo, Waited
from .._values import counted
from ..stores import Batch, StoredTick
from .answer import why
from .facts import MOST_TICKS, Facts, Standing
from .holdups import Holdups
from .verdict import Why

_SECOND_US: Final = 1_000_000


class Whys:
    """Answers why jobs do or do not run. `memory` None: nothing is kept."""

    def __init__(self, core: Core, registry: PartedRegistry, memory: Memory | None) -> None:
        self._core = core
        self._registry = registry
        self._memory = memory
        self._holdups = Holdups(core)
        if memory is not None:
            core.pool.tell_waits(self._holdups.note)
            core.runs.tell_waits(self._holdups.note)

    async def why(self, job_id: str, at: datetime | None, runs: list[RunInfo]) -> Why:
        """`runs`: those of the job that go on or wait. Raises StoreError."""
        ids = {id for id in self._registry.ids_of(job_id) if id is not None}
        now = instant_at(self._core.timeline.us(self._core.monotonic(), steady=False) * 1e-6)
        until_us = us_of(now if at is None else at) + _SECOND_US
        job = self._core.jobs.find(job_id)
        standing = None if job is None else self._standing(job)
        unsaved = _unsaved(self._core.journal, ids)
        ticks: list[StoredTick] = []
        has_later = False
        if self._memory is not None:
            ticks = await self._memory.history(ids, MOST_TICKS, until_us)
            has_later = not ticks and bool(await self._memory.history(ids, 1, None))
        facts = Facts(
            job_id=job_id,
            now=now,
            standing=standing,
            ticks=_merged(ticks, unsaved, until_us),
            has_later=has_later,
            runs=[run for run in runs if run.job_id in ids],
            waits=self._waits(ids),
            is_kept=self._memory is not None and (job is None or job.task is not None),
            epoch=self._core.journal.epoch,
        )
        return why(facts, at)

    def _standing(self, job: Job) -> Standing:
        timeline, left_out = self._core.timeline, job.left_out_us
        first = None if left_out is None else timeline.reported(left_out, steady=job.planner.steady)
        unfit = job.unfit is not None and not job.unfit.is_readable
        counts = counted(job.tally)
        shift_us = 0 if job.is_elsewhere else timeline.shift(steady=job.planner.steady)
        return Standing(
            schedule=None if unfit or job.is_parked else job.schedule.bind(job.key),
            fault=job.error if not job.control.pauses(job) else None,
            pauses=job.control.pauses(job),
            left_out_from=_instant(first),
            rests_from=None if job.floor is None else _instant(job.floor.first_us),
            rests_until=None if job.floor is None else _instant(job.floor.until_us),
            next_start=job.next_start,
            elsewhere=job.agent if job.is_elsewhere else None,
            last_start=None if counts.last_start is None else instant_at(counts.last_start),
            shift=timedelta(microseconds=shift_us),
            most_late=counts.lateness_max or 0.0,
        )

    def _waits(self, ids: set[str]) -> dict[datetime, Waited]:
        waiting = [run for run in self._core.runs.all() if run.job.id in ids and run.started is None]
        found = {instant_of(run.due_us): run.waited or self._holdups.found(run) for run in waiting if not run.is_held}
        return {due: waited for due, waited in found.items() if waited is not None}


def _unsaved(journal: Journal, ids: set[str]) -> list[StoredTick]:
    """Return the ends that are on their way to the store."""
    batches: Iterable[Batch] = [sealed.batch for sealed in journal.unsettled]
    noted = [tick for batch in batches for tick in (*batch.ended, *batch.missed)]
    noted += [*journal.pending.ended, *journal.pending.missed]
    return [tick for tick in noted if tick.job_id in ids]


def _merged(ticks: list[StoredTick], unsaved: list[StoredTick], until_us: int) -> list[StoredTick]:
    found = {(tick.job_id, tick.due_us): tick for tick in (*ticks, *unsaved) if tick.due_us < until_us}
    return sorted(found.values(), key=_due, reverse=True)


def _instant(us: int | None) -> datetime | None:
    return None if us is None else instant_of(us)


def _due(tick: StoredTick) -> int:
    return tick.due_us
