"""The batch that fills, and its records."""

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
"""The most rows, and the most states without a tick, in one batch."""


@define
class Pending:
    """The next batch, so far. The states of dirty jobs are written when it is sealed."""

    jobs: dict[str, StoredJob | None] = Factory(dict)
    paused: dict[str, JobPause] = Factory(dict)
    """Columns of rows that are not among `jobs`."""
    telling: str | None = None
    """The job whose listeners hear the end of a run at this moment.

    Their requests must be in the batch of its record.
    """
    together: dict[str, None] = Factory(dict)
    """Jobs that listeners changed at the end of a run, and the jobs of these runs."""
    finished: dict[str, str] = Factory(dict)
    """Schedules of rows that are not among `jobs` either."""
    pauses: dict[str, StoredPause | None] = Factory(dict)
    dirty: dict[Job, None] = Factory(dict)
    """Jobs whose states have changed."""
    with_tick: dict[Job, None] = Factory(dict)
    """Jobs whose states have changed together with a tick of this batch."""
    marks: dict[Attempt, None] = Factory(dict)
    ended: list[StoredTick] = Factory(list)
    missed: list[StoredTick] = Factory(list)
    last_missed: dict[Job, int] = Factory(dict)
    """The index of a job's last record in `missed`, unless the job has run since."""
    placed: list[Placed] = Factory(list)
    """The queue positions of executions."""
    flushed: list[Flushed] = Factory(list)
    added: dict[str, str] = Factory(dict)
    """Jobs that are put only if they have no row. The value says what happens if there is one (OnConflict)."""
    fresh: set[str] = Factory(set)
    """Ids in `jobs` that the store has never heard of, and no other node can have added. Such a job leaves nothing
    behind if it is removed before it is sent.
    """
    begun: dict[str, StoredState] = Factory(dict)
    """First states of some of these, which other nodes have."""
    requests: list[StoredRequest] = Factory(list)
    done: dict[int, RequestDone] = Factory(dict)
    """Finished requests, by their numbers."""
    is_news: bool = False
    """Whether the nodes that share the store should read this batch."""

    def __len__(self) -> int:
        """Return the number of changes and of waiting callers."""
        of_rows = self.jobs, self.paused, self.finished, self.pauses, self.dirty, self.with_tick
        of_ticks = self.marks, self.ended, self.missed, self.placed
        parts: tuple[Sized, ...] = (*of_rows, *of_ticks, self.flushed, self.requests, self.done)
        return sum(map(len, parts))

    def name_missed(self, next_fence: Callable[[], int]) -> None:
        """Record missed ticks like ends of runs, with fences of their own. So the store says whether a tick's name is
        taken.

        It may be, after the clock was set back, or by a start that was requested by hand.
        """
        self.ended += [tick._replace(fence=next_fence()) for tick in self.missed]
        self.missed = []

    def put(self, id: str, row: StoredJob | None) -> None:
        """Put the row as a whole. None: remove it."""
        self.jobs[id] = row
        self._tie(id)
        if row is None:
            self.paused.pop(id, None)
            self.added.pop(id, None)
            self.begun.pop(id, None)
        self.finished.pop(id, None)

    def _tie(self, id: str) -> None:
        """Send the notes about the job with this batch, however large it is, if a listener is being called."""
        if self.telling is not None:
            self.together[id] = self.together[self.telling] = None

    def touch(self, job: Job) -> None:
        """Write the state of the job with one of the next batches."""
        if self.telling is not None:
            self._tie(job.id)
            self.touch_with_tick(job)
        elif job not in self.with_tick:
            self.dirty[job] = None

    def ask(self, request: StoredRequest) -> None:
        """Put a request to the node that has the job."""
        self.requests.append(request)
        self._tie(request.job_id)
        self.is_news = True

    def touch_with_tick(self, job: Job) -> None:
        """Write the state of the job with this batch, which holds one of its ticks."""
        self.with_tick[job] = None
        self.dirty.pop(job, None)

    def remove(self, job: Job, schedule: str | None) -> None:
        """Remove the row, and write its state no more. With `schedule`, which has ended, only a row that still has it
        goes.
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
        """Put the columns of a pause into the row, which may be in this batch."""
        row = self.jobs.get(id)
        if row is not None:
            self.jobs[id] = with_pause(row, pause)
        if row is not None or id not in self.jobs:
            self.paused[id] = pause
        self._tie(id)

    def miss(self, job: Job, tick: StoredTick) -> None:
        """Put missed ticks of the job. Successive ones with the same reason become one record."""
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
        )

    def seal(self, timeline: Timeline, now_us: int) -> tuple[Sealed, Pending]:
        """Seal a batch, and begin one with the rest: the loop must not stand still for 100,000 states at once.

        The rest is not walked through.
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
        """Send requests to other nodes with the rows of their jobs."""
        for id, value in self.added.items():
            (rest if id in rest.jobs else batch).added[id] = value
        for id, state in self.begun.items():
            (rest if id in rest.jobs else batch).begun[id] = state
        for request in self.requests:
            (rest if request.job_id in rest.jobs else batch).requests.append(request)
        rest.is_news = self.is_news

    def _chosen(self) -> dict[Job, None]:
        """Return the jobs whose states go with this batch: jobs with ticks in it, and the first of the others.

        The rows of the others must be in the store. The jobs are taken out, except for a job whose row comes later and
        needs its state too.
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
    """Return whether the job is still there, and this node writes its state."""
    return not job.is_removed and (job.sparse is None or not job.is_elsewhere)


def _done_by(run: Attempt) -> Iterator[RequestDone]:
    """Yield the requests of other nodes that the mark of this run carries out."""
    for asked in run.job.asked:
        if asked.number is not None and asked.due_us == run.due_us:
            yield RequestDone(asked.number, run.job.id, run.due_us)


def _first_of(rows: dict[str, StoredJob | None]) -> dict[str, StoredJob | None]:
    """Take out and return the rows for one batch."""
    taken = dict(islice(rows.items(), MOST_JOBS))
    for id in taken:
        del rows[id]
    return taken


def with_pause(row: StoredJob, pause: JobPause) -> StoredJob:
    """Return the row with the columns of that pause."""
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
    """Return the record of a run that has ended, at `ended` in UTC seconds. `result`: its last, as JSON."""
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
    """Return the end, at `now_us`, of a run that never began. Its mark may be durable."""
    if run.attempt == 1:
        return missed_tick(run.job.id, run.due_us, run.due_us, 1, reason, now_us, fence=run.fence_number)
    return dropped_tick(run, reason, now_us)


def dropped_tick(run: Attempt, reason: MissedReason, now_us: int) -> StoredTick:
    """Return the end, at `now_us`, of a retry that never began."""
    return dropped_attempt(run.job.id, run.due_us, run.attempt, run.fence_number, reason, now_us)


def dropped_attempt(  # noqa: PLR0917 - the columns, in their order
    job_id: str, due_us: int, attempt: int, fence: int, reason: MissedReason, now_us: int
) -> StoredTick:
    """Return the end, at `now_us`, of that attempt at a tick, which never began."""
    error = f"attempt {attempt} was dropped before it began: {reason.value}"
    before = attempt - 1  # the last attempt that ran
    return StoredTick(job_id, due_us, before, fence, Outcome.CANCELLED.value, ended_us=now_us, error=error)


def renamed_tick(tick: StoredTick) -> StoredTick:
    """Return the record of ticks that never began under the next name, because theirs is taken."""
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
    """Return the record, made at `now_us`, of successive ticks without a run. Its age counts from that time."""
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
