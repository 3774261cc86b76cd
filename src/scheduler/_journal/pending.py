from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from itertools import islice
from typing import Final

from attrs import Factory, define

from .._jobs import Job, JobAttempt
from .._plan import Timeline
from ..stores import (
    Batch,
    JobPause,
    Placed,
    RequestDone,
    StoredChange,
    StoredJob,
    StoredPause,
    StoredRequest,
    StoredState,
    StoredTick,
)
from .rows import state_of
from .sealed import Flushed, Sealed
from .ticks import mark_of

MOST_JOBS: Final = 2_000
"""Rows, and states without a tick, in a batch."""


@define
class Pending:
    """The next batch. Dirty jobs' states are written when it is sealed."""

    jobs: dict[str, StoredJob | None] = Factory(dict)
    paused: dict[str, JobPause] = Factory(dict)
    """Pauses of rows that are not in `jobs`."""
    telling: str | None = None
    """The job whose listeners hear its run's end now: their requests belong to this batch."""
    together: dict[str, None] = Factory(dict)
    """That job, and jobs that listeners changed."""
    finished: dict[str, str] = Factory(dict)
    """Schedules of rows not in `jobs`."""
    pauses: dict[str, StoredPause | None] = Factory(dict)
    dirty: dict[Job, None] = Factory(dict)
    with_tick: dict[Job, None] = Factory(dict)
    """Jobs whose states go with a tick of this batch."""
    marks: dict[JobAttempt, None] = Factory(dict)
    ended: list[StoredTick] = Factory(list)
    missed: list[StoredTick] = Factory(list)
    last_missed: dict[Job, int] = Factory(dict)
    placed: list[Placed] = Factory(list)
    flushed: list[Flushed] = Factory(list)
    added: dict[str, str] = Factory(dict)
    """If such a job has a row, the value decides (OnConflict)."""
    changed: set[str] = Factory(set)
    """Jobs that have a row, unless another has removed it: then it stays away."""
    fresh: set[str] = Factory(set)
    """Ids known only here: a job removed before it is sent leaves nothing behind."""
    begun: dict[str, StoredState] = Factory(dict)
    requests: list[StoredRequest] = Factory(list)
    done: dict[int, RequestDone] = Factory(dict)
    made: list[StoredChange] = Factory(list)
    is_news: bool = False

    def __len__(self) -> int:
        of_rows = self.jobs, self.paused, self.finished, self.pauses, self.dirty, self.with_tick
        of_ticks = self.marks, self.ended, self.missed, self.placed
        parts: tuple[Sized, ...] = (*of_rows, *of_ticks, self.flushed, self.requests, self.done, self.made)
        return sum(map(len, parts))

    def name_missed(self, next_fence: Callable[[], int]) -> None:
        """Give missed ticks their own fences, so that the store says whether a tick's name is taken.

        It may be, after the clock was set back or by a start by hand.
        """
        self.ended += [tick._replace(fence=next_fence()) for tick in self.missed]
        self.missed = []

    def put(self, id: str, row: StoredJob | None, *, is_change: bool = False) -> None:
        """Put the whole row. None: remove it. `is_change`: put it in the place of another row alone."""
        if not is_change:
            self.changed.discard(id)
        elif id not in self.jobs:
            self.changed.add(id)
        self.jobs[id] = row
        self._tie(id)
        if row is None:
            self.paused.pop(id, None)
            self.added.pop(id, None)
            self.begun.pop(id, None)
        self.finished.pop(id, None)

    def _tie(self, id: str) -> None:
        if self.telling is not None:
            self.together[id] = self.together[self.telling] = None

    def touch(self, job: Job) -> None:
        if self.telling is not None:
            self._tie(job.id)
            self.touch_with_tick(job)
        elif job not in self.with_tick:
            self.dirty[job] = None

    def ask(self, request: StoredRequest) -> None:
        self.requests.append(request)
        self._tie(request.job_id)
        self.is_news = True

    def touch_with_tick(self, job: Job) -> None:
        """Write the state with this batch, which has the job's tick."""
        self.with_tick[job] = None
        self.dirty.pop(job, None)

    def remove(self, job: Job, schedule: str | None) -> None:
        """Remove row and state. With its ended `schedule`: only if the row still has that."""
        self.dirty.pop(job, None)
        self.with_tick.pop(job, None)
        if job.id in self.fresh:
            self._forget(job.id)
        elif schedule is None or job.id in self.jobs:  # then it is this program that has written it last
            self.put(job.id, None)
        else:
            self.finished[job.id] = schedule
            self._tie(job.id)

    def _forget(self, id: str) -> None:
        self.fresh.discard(id)
        self.changed.discard(id)
        self.jobs.pop(id, None)
        self.paused.pop(id, None)
        self.together.pop(id, None)

    def pause(self, id: str, pause: JobPause) -> None:
        row = self.jobs.get(id)
        if row is not None:
            self.jobs[id] = with_pause(row, pause)
        if row is not None or id not in self.jobs:
            self.paused[id] = pause
        self._tie(id)

    def miss(self, job: Job, tick: StoredTick) -> None:
        """Join successive ticks with the same reason into one record."""
        index = self.last_missed.get(job)
        if index is None or self.missed[index].reason != tick.reason:
            self.last_missed[job] = len(self.missed)
            self.missed.append(tick)
            return
        one = self.missed[index]
        self.missed[index] = one._replace(
            count=one.count + tick.count,
            due_us=min(tick.due_us, one.due_us),  # ticks that wait for room are dropped after newer ticks
            last_due_us=max(tick.last_due_us or tick.due_us, one.last_due_us or one.due_us),
            ended_us=tick.ended_us,
            error=one.error or tick.error,
            waited=one.waited or tick.waited,
        )

    def seal(self, timeline: Timeline, now_us: int) -> tuple[Sealed, Pending]:
        """Leave the rest to the next batch, unwalked: 100,000 states at once would stop the loop."""
        jobs = {id: self.jobs.pop(id) for id in self.together if id in self.jobs} | _first_of(self.jobs)
        states = {job.id: state_of(job, timeline) for job in self._chosen() if _is_ours(job)}
        marks = [mark_of(run, now_us) for run in self.marks]
        batch = Batch(
            jobs, states, self.pauses, self.ended, self.missed, marks, self.paused, self.finished, self.placed
        )
        if self.fresh:
            self.fresh.difference_update(jobs)
        rest = Pending(jobs=self.jobs, dirty=self.dirty, fresh=self.fresh)
        if self.changed:
            batch.changed, rest.changed = self.changed & jobs.keys(), self.changed & rest.jobs.keys()
        batch.is_news = self.is_news
        if self.added or self.requests:
            self._share_out(batch, rest)
        for made in self.made:
            (rest if made.job_id in rest.jobs else batch).made.append(made)
        if self.done:
            batch.done = [*self.done.values()]
        batch.done += [done for run in self.marks if run.job.sparse is not None for done in _done_by(run)]
        if rest:
            rest.flushed = self.flushed
        for run in self.marks:
            run.mark_is_sent()
        return Sealed(batch, list(self.marks), [] if rest else self.flushed, self.together), rest

    def _share_out(self, batch: Batch, rest: Pending) -> None:
        for id, value in self.added.items():
            (rest if id in rest.jobs else batch).added[id] = value
        for id, state in self.begun.items():
            (rest if id in rest.jobs else batch).begun[id] = state
        for request in self.requests:
            (rest if request.job_id in rest.jobs else batch).requests.append(request)
        rest.is_news = self.is_news

    def _chosen(self) -> dict[Job, None]:
        """Take out jobs whose states go now: jobs with ticks, and others whose rows are stored.

        A job whose row comes later stays too, because that row needs its state.
        """
        if not self.jobs and len(self.dirty) <= MOST_JOBS:
            others, self.dirty = self.dirty, {}
        else:
            others = {job: None for job in islice(self.dirty, MOST_JOBS) if job.id not in self.jobs}
            for job in others:
                del self.dirty[job]
            self.dirty.update((job, None) for job in self.with_tick if job.id in self.jobs)
        return self.with_tick | others


def _is_ours(job: Job) -> bool:
    return not job.is_removed and (job.sparse is None or not job.is_elsewhere)


def _done_by(run: JobAttempt) -> Iterator[RequestDone]:
    for asked in run.job.asked:
        if asked.number is not None and asked.due_us == run.due_us:
            yield RequestDone(asked.number, run.job.id, run.due_us)


def _first_of(rows: dict[str, StoredJob | None]) -> dict[str, StoredJob | None]:
    taken = dict(islice(rows.items(), MOST_JOBS))
    for id in taken:
        del rows[id]
    return taken


def with_pause(row: StoredJob, pause: JobPause) -> StoredJob:
    return row._replace(paused=pause.paused, paused_until_us=pause.paused_until_us)
