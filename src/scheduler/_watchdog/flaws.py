"""Flaws: what may be wrong with the next start of a job, and how it is mended.

A flaw counts only if it is still there a turn later: a job that another thread is adding may not have reached the heap.
A job that is due in the present turn has left the heap, and may be due again in the next: it is not checked.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import assert_never

from .._jobs import Job
from .._loop import Core


class Flaw(Enum):
    """A defect of a job's next start."""

    NOT_PLANNED = auto()
    """The job starts by itself, and has no next start."""
    NOT_IN_HEAP = auto()
    """Its next start is known, and is not in the heap."""
    STARTS_THOUGH_PAUSED = auto()
    """It must not start by itself, and its start is in the heap."""


def flaw_of(job: Job) -> Flaw | None:
    """Return what is wrong with the job, or None."""
    if job.is_removed:
        return None
    if job.is_paused:
        # a pause of a scope holds some jobs at a time
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
    """Correct the job's next start. Raises what a user's schedule raises."""
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
