"""What becomes of a tick that comes while an earlier run of its job has not ended.

Ticks may wait: in the pool for room, which has one of them at a time in the form of a run that can still be exchanged,
and in the job's backlog for the end of a run. When one too many waits it is always the oldest that goes. So what waits
are the newest ticks, without holes, and whoever knows the oldest of them knows them all: that is what a store is told.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, assert_never

from schedule import Missed

from ._deadline import Cause
from ._outcome import MissedReason
from ._policy import Delivery, Overlap
from ._run import MarkedRun, Run

if TYPE_CHECKING:
    from ._job import Job
    from ._timeline import Timeline


class Missing(Protocol):
    """Counts what is missed."""

    timeline: Timeline

    def miss(self, job: Job, first_us: int, last_us: int, count: int, reason: MissedReason) -> None:
        """Ticks have no run."""

    def miss_run(self, run: Run, reason: MissedReason) -> None:
        """A run that waited will not begin."""


def may_start(runs: Missing, job: Job, due: float, due_us: int, attempt: int) -> bool:
    """Whether a tick may run now although the job has a run; if not, it waits or something is missed here."""
    overlap = job.policy.overlap
    if job.threads:
        job.threads = [thread for thread in job.threads if not thread.has_ended] or None
    if not job.runs and not job.threads:
        return True
    if overlap is Overlap.ALLOW and len(job.runs) < job.policy.max_running:
        return True
    waiting = _waiting(job)
    room = _backlog_room(job)
    if waiting and (room == 0 or overlap is Overlap.REPLACE):
        runs.miss_run(waiting[0], MissedReason.NO_ROOM)
        _shift(waiting, due, due_us, attempt)
    elif not job.runs or room == 0:
        if attempt == 1:  # of another attempt's tick it is known already how it ended
            runs.miss(job, due_us, due_us, 1, MissedReason.OVERLAP)
    else:
        _queue(runs, job, (due_us, attempt), room, waiting)
        if overlap is Overlap.REPLACE:
            for run in job.runs:
                run.terminate(Cause.REPLACED)
    return False


def drop_waiting(job: Job) -> None:
    """The ticks that wait for room are missed."""
    for run in _waiting(job):
        run.terminate(Cause.REPLACED)


def hold_back(job: Job) -> None:
    """The job has been paused: what has not begun does not. What it owes to a crash is not given up."""
    for run in job.runs:
        if run.started is None and not _is_promised(run):
            run.terminate(Cause.PAUSED)


def _waiting(job: Job) -> list[Run]:
    """The runs that wait for room and may stand for other ticks, oldest first, which is how they stand in the queue."""
    return [run for run in job.runs if _is_exchangeable(run)]


def _is_exchangeable(run: Run) -> bool:
    return run.started is None and not _is_promised(run) and not (isinstance(run, MarkedRun) and run.is_held)


def _is_promised(run: Run) -> bool:
    return run.attempt > 1 and run.job.policy.delivery is Delivery.AT_LEAST_ONCE


def _shift(waiting: list[Run], due: float, due_us: int, attempt: int) -> None:
    """The oldest tick is gone: each run stands for the next one, in the place in the queue that it has already, so that
    older ticks begin first.
    """
    for run in waiting:
        if run.volley is not None:
            run.volley.keep_place(run)
    for run, following in pairwise(waiting):
        run.due, run.due_us, run.attempt = following.due, following.due_us, following.attempt
    last = waiting[-1]
    last.due, last.due_us, last.attempt = due, due_us, attempt


def _queue(runs: Missing, job: Job, tick: tuple[int, int], room: int, waiting: list[Run]) -> None:
    """Let the tick wait for the end of a run. If too many do, the oldest is missed."""
    if job.backlog is None:
        job.backlog = deque()
    backlog = job.backlog
    while len(backlog) >= room:
        oldest = next((each for each in backlog if each[1] == 1), None)
        if oldest is None:  # what waits are attempts that are owed
            runs.miss(job, tick[0], tick[0], 1, MissedReason.OVERLAP)
            return
        backlog.remove(oldest)
        due_us, attempt = oldest
        if waiting:
            runs.miss_run(waiting[0], MissedReason.NO_ROOM)
            _shift(waiting, due_us * 1e-6 - runs.timeline.offset, due_us, attempt)
        else:
            runs.miss(job, due_us, due_us, 1, MissedReason.OVERLAP)
    backlog.append(tick)


def _backlog_room(job: Job) -> int:
    """How many ticks of a job may wait for the end of its run."""
    if job.policy.missed is Missed.ALL:
        return job.policy.catch_up
    match job.policy.overlap:
        case Overlap.SKIP | Overlap.ALLOW:
            return 0
        case Overlap.QUEUE | Overlap.REPLACE:
            return 1
        case _ as never:
            assert_never(never)
