"""Flaws of a job's next start, and how they are mended.

A flaw counts only if the loop's next turn finds it too. An added job may not be in the timer heap yet, and a due job
has left it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import assert_never

from .._jobs import Job
from .._loop import Core


class Flaw(Enum):
    NOT_PLANNED = auto()
    """The job should start by itself, but has no next start."""
    NOT_IN_HEAP = auto()
    STARTS_THOUGH_PAUSED = auto()


def flaw_of(job: Job) -> Flaw | None:
    if job.is_removed:
        return None
    if job.is_paused:
        # a pause of a tag, or of all jobs, holds its jobs in slices
        is_being_held = job.due_us is not None and job.held_by is not None
        return Flaw.STARTS_THOUGH_PAUSED if job.is_waiting and not is_being_held else None
    if job.due_us is not None:
        waits_for_run = job.is_due_by_hand and bool(job.runs)
        return None if job.is_waiting or waits_for_run else Flaw.NOT_IN_HEAP
    is_at_work = job.runs or job.backlog or job.again is not None or job.owed is not None
    return None if is_at_work else Flaw.NOT_PLANNED


def name_of(flaw: Flaw) -> str:
    return flaw.name.lower().replace("_", " ")


def mend(job: Job, flaw: Flaw, core: Core) -> None:
    """Mend the flaw. Raises the errors of a user's schedule."""
    starts = core.starts
    match flaw:
        case Flaw.NOT_PLANNED:
            starts.plan(job, starts.from_now(job))
            starts.retire_if_done(job)
        case Flaw.NOT_IN_HEAP:
            starts.plan(job, job.due_us)
        case Flaw.STARTS_THOUGH_PAUSED:
            core.queue.disarm(job)
            job.due_us = None
        case _ as never:
            assert_never(never)
