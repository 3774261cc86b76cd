"""Answers to callers who asked for a run of a job by hand (`Job.run_now`). On the loop.

A tick that will be tried again is not answered yet. The end of its attempt is kept until the next attempt has ended, or
until something else has taken the place of that attempt.
"""

from __future__ import annotations

from .._jobs import AskedRun, Job
from .._plan import instant_of
from .._values import Cause, RunEnded, RunMissed
from .why_missed import ended_by


def ask_for(job: Job, asked: AskedRun, due_us: int) -> None:
    """Remember the caller who asked for the run of that tick. A job that has been removed meanwhile has none."""
    asked.due_us = due_us
    job.asked = (*job.asked, asked)
    if job.is_removed:
        due = instant_of(due_us)
        answer(job, due_us, RunMissed(job.id, due, due, 1, ended_by(Cause.REMOVED)))


def answer(job: Job, due_us: int, end: RunEnded | RunMissed) -> None:
    """Answer the callers who asked for that tick, unless it will be tried again."""
    for asked in job.asked:
        if asked.due_us == due_us and isinstance(end, RunEnded) and _has_in_hand(job, due_us):
            asked.last_end = end
        elif asked.due_us == due_us:
            job.asked = tuple(each for each in job.asked if each is not asked)
            asked.settle(end)


def answer_given_up(job: Job) -> None:
    """Answer the callers whose tick would have been tried again, but will not."""
    for asked in job.asked:
        if asked.last_end is not None and asked.due_us is not None:
            answer(job, asked.due_us, asked.last_end)


def attempt_ends(job: Job, due_us: int) -> None:
    """Forget the end of an earlier attempt at that tick: another one ends now."""
    for asked in job.asked:
        if asked.due_us == due_us:
            asked.last_end = None


def rename(job: Job, due_us: int, new_us: int) -> None:
    """Give the requested tick another due instant."""
    for asked in job.asked:
        if asked.due_us == due_us:
            asked.due_us = new_us


def go_along(job: Job, due_us: int, other_us: int) -> bool:
    """Answer the callers of that tick with the end of another tick, which has not begun and stands for it.

    Return whether only callers needed the tick: then nothing is missed. The store keeps the requests of other nodes
    until the other tick has its mark, or its end.
    """
    is_theirs = False
    for asked in job.asked:
        if asked.due_us == due_us:
            is_theirs = is_theirs or not asked.is_along
            asked.due_us, asked.is_along = other_us, True
    return is_theirs


def _has_in_hand(job: Job, due_us: int) -> bool:
    """Return whether that tick runs, waits, or will be tried again."""
    if any(run.due_us == due_us for run in job.runs) or (job.again is not None and job.again.due_us == due_us):
        return True
    return any(due_us == each for each, _ in job.backlog or ())
