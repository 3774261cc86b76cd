"""What the next commit will hold, and what has been sealed for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from attrs import Factory, define

from ._standing import state_of
from ._stored import RUNNING, Batch, StoredJob, StoredPause, StoredTick

if TYPE_CHECKING:
    from ._job import Job
    from ._run import MarkedRun
    from ._timeline import Timeline

Flushed = Callable[[Exception | None], object]
"""Told that all is durable, or why some of it is lost."""


@define
class Sealed:
    """A batch that has been, or is to be, sent."""

    batch: Batch
    runs: list[MarkedRun]
    """Those whose marks it holds."""
    flushed: list[Flushed]
    lost: list[Exception] = Factory(list)
    """Why parts of it are not stored. Shared by all parts of a batch that was taken apart."""

    def tell_flushed(self) -> None:
        for done in self.flushed:
            done(self.lost[0] if self.lost else None)

    def job_ids(self) -> list[str]:
        batch = self.batch
        ticks = (*batch.ended, *batch.missed, *batch.marks)
        return list(dict.fromkeys([*batch.jobs, *batch.states, *(tick.job_id for tick in ticks)]))

    def by_job(self) -> list[Sealed]:
        """One for the pauses and one for each job. Whoever waits for all of it waits for the last."""
        parts = [self._of(job_id) for job_id in self.job_ids()]
        if self.batch.pauses:
            parts.insert(0, Sealed(Batch(pauses=self.batch.pauses), [], [], self.lost))
        if parts:
            parts[-1].flushed = self.flushed
        return parts

    def _of(self, job_id: str) -> Sealed:
        batch = self.batch
        part = Batch(
            {key: row for key, row in batch.jobs.items() if key == job_id},
            {key: state for key, state in batch.states.items() if key == job_id},
            {},
            [tick for tick in batch.ended if tick.job_id == job_id],
            [tick for tick in batch.missed if tick.job_id == job_id],
            [tick for tick in batch.marks if tick.job_id == job_id],
        )
        return Sealed(part, [run for run in self.runs if run.job.id == job_id], [], self.lost)


@define
class Pending:
    """What the next batch will hold. The states of dirty jobs are written down when it is sealed."""

    jobs: dict[str, StoredJob | None] = Factory(dict)
    pauses: dict[str, StoredPause | None] = Factory(dict)
    dirty: dict[Job, None] = Factory(dict)
    marks: dict[MarkedRun, None] = Factory(dict)
    ended: list[StoredTick] = Factory(list)
    missed: list[StoredTick] = Factory(list)
    flushed: list[Flushed] = Factory(list)

    def __len__(self) -> int:
        """How many changes there are; those who wait to be told count too."""
        parts = (self.jobs, self.pauses, self.dirty, self.marks, self.ended, self.missed, self.flushed)
        return sum(len(part) for part in parts)

    def seal(self, timeline: Timeline, floors: Mapping[Job, int], now_us: int) -> Sealed:
        """As it is to be sent."""
        states = {job.id: state_of(job, timeline, floors.get(job)) for job in self.dirty if not job.is_removed}
        marks = [
            StoredTick(run.job.id, run.due_us, run.attempt, run.fence_number, RUNNING, now_us) for run in self.marks
        ]
        batch = Batch(self.jobs, states, self.pauses, self.ended, self.missed, marks)
        return Sealed(batch, list(self.marks), self.flushed)
