from __future__ import annotations

from typing import Final

from timerqueue import TimerQueue

from .._jobs import Job
from .._values import Cause

_STAYS: Final = frozenset({"asked", "held_by", "is_parked", "is_paused", "paused_by", "threads", "unfit"})
"""Values of the row, callers that wait, threads that still work."""


def leave_to_others(job: Job) -> None:
    """Make a job idle. Its state is in the store."""
    job.due_us = job.dated_us = job.tally = None
    kept = {} if job.sparse is None else {name: value for name, value in job.sparse.items() if name in _STAYS}
    job.sparse = kept or None
    job.is_elsewhere = True
    job.settle_pause()
    job.settle_state()


def let_go_of(job: Job, queue: TimerQueue) -> None:
    """Another node has the job now."""
    for alarm in (job, job.again, job.owed):
        if alarm is not None:
            queue.disarm(alarm)
    leave_to_others(job)
    for run in job.runs:
        run.terminate(Cause.LOST)


def come_to_us(job: Job) -> None:
    """Make a job ours. Its stored state is read next."""
    job.is_elsewhere = False
    job.tally = None
    job.settle_pause()
    job.settle_state()
