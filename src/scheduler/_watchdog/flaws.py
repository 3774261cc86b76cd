"""Flaws: what may be wrong with the next start of a job, and how it is mended.

A flaw counts only if it is still there a turn later: what another thread is adding has not reached the heap yet. What
is due in the turn that goes on has left the heap already, and may be due again in the next: it is not looked at.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import assert_never

from .._jobs import Job
from .._loop import Core


class Flaw(Enum):
    """How a job stands that will not do what it should."""

    NOT_PLANNED = auto()
    """It is to start by itself, and has no next start."""
    NOT_IN_HEAP = auto()
    """Its next start is known, and stands nowhere."""
    STARTS_THOUGH_PAUSED = auto()
    """It must not start by itself, and its start stands in the heap."""


def flaw_of(job: Job) -> Flaw | None:
    """Say what is wrong with the job; None: nothing is."""
    if job.is_removed:
        return None
    if job.is_paused:
        is_being_held = job.due_us is not None and job.held_by is not None  # a scope: some jobs at a time
        return Flaw.STARTS_THOUGH_PAUSED if job.is_waiting and not is_being_held else None
    if job.due_us is not None:
        waits_for_run = job.is_due_by_hand and bool(job.runs)
        return None if job.is_waiting or waits_for_run else Flaw.NOT_IN_HEAP
    is_at_work = job.runs or job.backlog or job.again is not None or job.owed is not None
    return None if is_at_work else Flaw.NOT_PLANNED


def name_of(flaw: Flaw) -> str:
    """Say what was wrong, in a few words."""
    return flaw.name.lower().replace("_", " ")


def mend(job: Job, flaw: Flaw, core: Core) -> None:
    """Let the job do what it should. Raises what a user's schedule raises."""
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
