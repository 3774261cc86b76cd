"""Answers to callers of `Job.run_now`. On the loop.

A tick to be tried again is not answered yet. Its last end is kept until the next attempt ends or is replaced.
"""

from __future__ import annotations

from .._jobs import AskedRun, Job
from .._plan import instant_of
from .._values import Cause, RunEnded, RunMissed
from .why_missed import ended_by


def ask_for(job: Job, asked: AskedRun, due_us: int) -> None:
    asked.due_us = due_us
    job.asked = (*job.asked, asked)
    if job.is_removed:
        due = instant_of(due_us)
        answer(job, due_us, RunMissed(job.id, due, due, 1, ended_by(Cause.REMOVED)))


def answer(job: Job, due_us: int, end: RunEnded | RunMissed) -> None:
    for asked in job.asked:
        if asked.due_us == due_us and isinstance(end, RunEnded) and _has_in_hand(job, due_us):
            asked.last_end = end
        elif asked.due_us == due_us:
            job.asked = tuple(each for each in job.asked if each is not asked)
            asked.settle(end)


def answer_given_up(job: Job) -> None:
    """Answer callers whose tick will not be tried again after all."""
    for asked in job.asked:
        if asked.last_end is not None and asked.due_us is not None:
            answer(job, asked.due_us, asked.last_end)


def attempt_ends(job: Job, due_us: int) -> None:
    for asked in job.asked:
        if asked.due_us == due_us:
            asked.last_end = None


def rename(job: Job, due_us: int, new_us: int) -> None:
    for asked in job.asked:
        if asked.due_us == due_us:
            asked.due_us = new_us


def go_along(job: Job, due_us: int, other_us: int) -> bool:
    """Answer that tick's callers with the end of another tick, which has not begun.

    True: no schedule needed the tick, so nothing is missed. The store keeps other nodes' requests until the other
    tick's mark or end.
    """
    is_theirs = False
    for asked in job.asked:
        if asked.due_us == due_us:
            is_theirs = is_theirs or not asked.is_along
            asked.due_us, asked.is_along = other_us, True
    return is_theirs


def _has_in_hand(job: Job, due_us: int) -> bool:
    if any(run.due_us == due_us for run in job.runs) or (job.again is not None and job.again.due_us == due_us):
        return True
    return any(due_us == each for each, _ in job.backlog or ())
