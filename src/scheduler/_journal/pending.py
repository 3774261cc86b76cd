"""The batch that fills, and the records that stand in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from itertools import islice
from typing import Final

from attrs import Factory, define

from .._jobs import Attempt, Job
from .._plan import Timeline
from .._values import MissedReason, Outcome
from ..stores import (
    AT_LEAST,
    RUNNING,
    Batch,
    JobPause,
    Placed,
    RequestDone,
    StoredJob,
    StoredPause,
    StoredRequest,
    StoredState,
    StoredTick,
)
from .rows import state_of
from .sealed import Flushed, Sealed

MOST_JOBS: Final = 2_000
"""Rows, and states that have no tick with them, in one batch."""


@define
class Pending:
    """The next batch, so far. The states of dirty jobs are written down when it is sealed."""

    jobs: dict[str, StoredJob | None] = Factory(dict)
    paused: dict[str, JobPause] = Factory(dict)
    """Columns of rows that are not among `jobs`."""
    telling: str | None = None
    """The job of which listeners hear that a run has ended: what they ask for is in the same batch as the record of
    that run, or it could be lost alone.
    """
    together: dict[str, None] = Factory(dict)
    """Jobs of which something was noted when the end of a run was told, and those of these runs."""
    finished: dict[str, str] = Factory(dict)
    """Schedules of rows that are not among `jobs` either."""
    pauses: dict[str, StoredPause | None] = Factory(dict)
    dirty: dict[Job, None] = Factory(dict)
    """Jobs whose states have changed."""
    with_tick: dict[Job, None] = Factory(dict)
    """Jobs whose states have changed together with a tick that is in here."""
    marks: dict[Attempt, None] = Factory(dict)
    ended: list[StoredTick] = Factory(list)
    missed: list[StoredTick] = Factory(list)
    last_missed: dict[Job, int] = Factory(dict)
    """Where the last of `missed` of a job stands, unless the job has run since."""
    placed: list[Placed] = Factory(list)
    """Where executions stand in a queue."""
    flushed: list[Flushed] = Factory(list)
    added: dict[str, str] = Factory(dict)
    """Which of `jobs` are put only where there is no row, and what is to be done where there is one (OnConflict)."""
    fresh: set[str] = Factory(set)
    """Which of `jobs` the store has never heard of, and no other node can have added: of one that is removed before it
    is sent nothing is left.
    """
    begun: dict[str, StoredState] = Factory(dict)
    """First states of some of these, whose agents are others."""
    requests: list[StoredRequest] = Factory(list)
    done: dict[int, RequestDone] = Factory(dict)
    """By their numbers."""
    is_news: bool = False
    """The agents that share the store are to look at it."""

    def __len__(self) -> int:
        """How many changes there are; those who wait to be told count too."""
        of_rows = self.jobs, self.paused, self.finished, self.pauses, self.dirty, self.with_tick
        of_ticks = self.marks, self.ended, self.missed, self.placed
        parts: tuple[Sized, ...] = (*of_rows, *of_ticks, self.flushed, self.requests, self.done)
        return sum(map(len, parts))

    def name_missed(self, next_fence: Callable[[], int]) -> None:
        """Record missed ticks like ends of runs, with fences of their own, so that the store says whether the name of
        a tick is taken: after the clock was set back, or by a start that somebody has asked for.
        """
        self.ended += [tick._replace(fence=next_fence()) for tick in self.missed]
        self.missed = []

    def put(self, id: str, row: StoredJob | None) -> None:
        """Put the row as a whole; None: remove it."""
        self.jobs[id] = row
        self._tie(id)
        if row is None:
            self.paused.pop(id, None)
            self.added.pop(id, None)
            self.begun.pop(id, None)
        self.finished.pop(id, None)

    def _tie(self, id: str) -> None:
        """Send what is noted of the job with this batch, however large that is, if an end has brought it about."""
        if self.telling is not None:
            self.together[id] = self.together[self.telling] = None

    def touch(self, job: Job) -> None:
        """Write down the state of the job with one of the next batches."""
        if self.telling is not None:
            self._tie(job.id)
            self.touch_with_tick(job)
        elif job not in self.with_tick:
            self.dirty[job] = None

    def ask(self, request: StoredRequest) -> None:
        """Put what is asked of the agent that has the job."""
        self.requests.append(request)
        self._tie(request.job_id)
        self.is_news = True

    def touch_with_tick(self, job: Job) -> None:
        """Write down the state of the job with this batch, which holds one of its ticks."""
        self.with_tick[job] = None
        self.dirty.pop(job, None)

    def remove(self, job: Job, schedule: str | None) -> None:
        """The row goes, and its state is written no more; with a schedule, which is over, the row goes only if it still
        has that.
        """
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
        self.jobs.pop(id, None)
        self.paused.pop(id, None)
        self.together.pop(id, None)

    def pause(self, id: str, pause: JobPause) -> None:
        """Put the columns of a pause into the row, which may have been put here."""
        row = self.jobs.get(id)
        if row is not None:
            self.jobs[id] = with_pause(row, pause)
        if row is not None or id not in self.jobs:
            self.paused[id] = pause
        self._tie(id)

    def miss(self, job: Job, tick: StoredTick) -> None:
        """Put missed ticks of the job. If they follow one another for one reason they are one record."""
        index = self.last_missed.get(job)
        if index is None or self.missed[index].reason != tick.reason:
            self.last_missed[job] = len(self.missed)
            self.missed.append(tick)
            return
        one = self.missed[index]
        self.missed[index] = one._replace(
            count=one.count + tick.count,
            due_us=min(tick.due_us, one.due_us),  # what waits for room is dropped after newer ticks
            last_due_us=max(tick.last_due_us or tick.due_us, one.last_due_us or one.due_us),
            ended_us=tick.ended_us,
            error=one.error or tick.error,
        )

    def seal(self, timeline: Timeline, now_us: int) -> tuple[Sealed, Pending]:
        """Close a batch, and begin one with the rest: the loop must not stand still for 100,000 states at once. What
        stays for later is not gone through.
        """
        jobs = {id: self.jobs.pop(id) for id in self.together if id in self.jobs} | _first_of(self.jobs)
        states = {job.id: state_of(job, timeline) for job in self._chosen() if _is_ours(job)}
        marks = [
            StoredTick(run.job.id, run.due_us, run.attempt, run.fence_number, RUNNING, now_us) for run in self.marks
        ]
        batch = Batch(
            jobs, states, self.pauses, self.ended, self.missed, marks, self.paused, self.finished, self.placed
        )
        if self.fresh:
            self.fresh.difference_update(jobs)
        rest = Pending(jobs=self.jobs, dirty=self.dirty, fresh=self.fresh)
        batch.is_news = self.is_news
        if self.added or self.requests:
            self._share_out(batch, rest)
        if self.done:
            batch.done = [*self.done.values()]
        batch.done += [done for run in self.marks if run.job.sparse is not None for done in _done_by(run)]
        if rest:
            rest.flushed = self.flushed
        for run in self.marks:
            run.mark_is_sent()
        return Sealed(batch, list(self.marks), [] if rest else self.flushed, self.together), rest

    def _share_out(self, batch: Batch, rest: Pending) -> None:
        """Let what is asked of others go with the rows of their jobs."""
        for id, value in self.added.items():
            (rest if id in rest.jobs else batch).added[id] = value
        for id, state in self.begun.items():
            (rest if id in rest.jobs else batch).begun[id] = state
        for request in self.requests:
            (rest if request.job_id in rest.jobs else batch).requests.append(request)
        rest.is_news = self.is_news

    def _chosen(self) -> dict[Job, None]:
        """Jobs whose states go with this batch: those with ticks in it, and of the first of the others those whose rows
        are there. Taken out, unless a row that comes later needs its state too.
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
    """Whether the job is still there, and its state is for us to write."""
    return not job.is_removed and (job.sparse is None or not job.is_elsewhere)


def _done_by(run: Attempt) -> Iterator[RequestDone]:
    """Say which request of another agent the mark of this run carries out."""
    for asked in run.job.asked:
        if asked.number is not None and asked.due_us == run.due_us:
            yield RequestDone(asked.number, run.job.id, run.due_us)


def _first_of(rows: dict[str, StoredJob | None]) -> dict[str, StoredJob | None]:
    """Take out as many rows as go with one batch."""
    taken = dict(islice(rows.items(), MOST_JOBS))
    for id in taken:
        del rows[id]
    return taken


def with_pause(row: StoredJob, pause: JobPause) -> StoredJob:
    """The row with the columns of that pause."""
    return row._replace(paused=pause.paused, paused_until_us=pause.paused_until_us)


def ended_tick(  # noqa: PLR0917 - made for each stored run
    run: Attempt,
    outcome: Outcome,
    ended: float,
    error: str | None,
    trace: str | None,
    result: str | None,
    *,
    owed: bool,
) -> StoredTick:
    """The record of a run that has ended, at `ended` in UTC seconds. `result`: its last, as JSON."""
    return StoredTick(
        run.job.id,
        run.due_us,
        run.attempt,
        run.fence_number,
        outcome.value,
        round(run.started_at * 1e6),
        round(ended * 1e6),
        run.lateness,
        error,
        trace,
        result=result,
        owed=owed,
    )


def unmarked_tick(run: Attempt, reason: MissedReason, now_us: int) -> StoredTick:
    """The end, `now_us`, of a tick whose mark may be durable, of a run that never began."""
    if run.attempt == 1:
        return missed_tick(run.job.id, run.due_us, run.due_us, 1, reason, now_us, fence=run.fence_number)
    return dropped_tick(run, reason, now_us)


def dropped_tick(run: Attempt, reason: MissedReason, now_us: int) -> StoredTick:
    """The end, `now_us`, of an attempt that never began, of a tick that has had, or may have, another."""
    return dropped_attempt(run.job.id, run.due_us, run.attempt, run.fence_number, reason, now_us)


def dropped_attempt(  # noqa: PLR0917 - the columns, in their order
    job_id: str, due_us: int, attempt: int, fence: int, reason: MissedReason, now_us: int
) -> StoredTick:
    """The end, `now_us`, of that attempt at a tick, which never began."""
    error = f"attempt {attempt} was dropped before it began: {reason.value}"
    before = attempt - 1  # the last one that there was
    return StoredTick(job_id, due_us, before, fence, Outcome.CANCELLED.value, ended_us=now_us, error=error)


def renamed_tick(tick: StoredTick) -> StoredTick:
    """The record of ticks that never began, and whose name is taken, under the next one."""
    due_us = tick.due_us + 1
    return tick._replace(due_us=due_us, last_due_us=None if tick.last_due_us is None else max(due_us, tick.last_due_us))


def missed_tick(  # noqa: PLR0917 - the columns, in their order
    job_id: str,
    first_us: int,
    last_us: int,
    count: int,
    reason: MissedReason,
    now_us: int | None = None,
    *,
    fence: int = 0,
    is_exact: bool = True,
    why: str | None = None,
) -> StoredTick:
    """The record, made `now_us`, of ticks in a row that have no run. Its age counts from then, however long the gap."""
    return StoredTick(
        job_id,
        first_us,
        0,
        fence,
        Outcome.MISSED.value,
        ended_us=now_us,
        error=why if is_exact else AT_LEAST + (f": {why}" if why else ""),
        reason=reason.value,
        count=count,
        last_due_us=last_us,
    )
