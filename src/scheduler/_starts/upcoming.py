"""The next starts of a job, and free instants between them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from .._jobs import Job
from .._plan import Timeline, some_instant_of

MOST_TRIES: Final = 100
"""Microseconds tried. If all have ticks, the schedule has them everywhere."""


def next_start(job: Job, timeline: Timeline) -> datetime | None:
    """Return when the job starts next, retries included."""
    starts = [] if job.due_us is None else [timeline.reported(job.due_us, steady=job.planner.steady)]
    if job.again is not None:
        starts.append(timeline.us(job.again.due, steady=False))
    if job.owed is not None and not job.is_paused:
        starts.append(timeline.us(job.owed.due, steady=False))
    return some_instant_of(min(starts)) if starts else None


def next_starts(job: Job, timeline: Timeline, count: int) -> list[datetime]:
    return _starts_from(job, job.due_us, timeline, count)


def foreseen_starts(job: Job, timeline: Timeline, now_us: int, count: int) -> list[datetime]:
    """Return regular starts after `now_us`, on the planner's base, of another node's job.

    Retries, rests and starts set by hand are unknown here.
    """
    if job.error is not None or job.planner.waits_for_end:
        return []
    return _starts_from(job, job.planner.first(job.key, now_us), timeline, count)


def _starts_from(job: Job, due: int | None, timeline: Timeline, count: int) -> list[datetime]:
    starts: list[datetime] = []
    while due is not None and len(starts) < count:
        instant = some_instant_of(timeline.reported(due, steady=job.planner.steady))
        if instant is None:
            break
        starts.append(instant)
        by_hand = job.is_due_by_hand and len(starts) == 1
        due = job.planner.back(job.key, due) if by_hand else job.planner.following(due)
    return starts


def after_last_run(job: Job, now_us: int, shift_us: int) -> int | None:
    """Return the start counted from the last run's end, or from now. On the steady base."""
    finish = None if job.tally is None else job.counts().last_finish
    finish_us = now_us if finish is None else int(finish * 1e6) - shift_us
    return job.planner.following(min(finish_us, now_us))


def beside_ticks(job: Job, us: int, timeline: Timeline) -> int:
    """Return the first microsecond from `us` without a tick past, present or future, as users see it.

    If a hundred in a row have ticks, return the first that no present run has.
    """
    taken = {run.due_us for run in job.runs}
    taken.update(due_us for due_us, _ in job.backlog or ())
    if job.due_us is not None:
        taken.add(timeline.reported(job.due_us, steady=job.planner.steady))
    if job.again is not None:
        taken.add(job.again.due_us)
    shift = timeline.shift_us if job.planner.steady else 0
    has_ticks = job.tally is not None or job.left_out_us is not None
    tries = range(us, us + MOST_TRIES) if has_ticks else ()
    beside = next((each for each in tries if each not in taken and not _may_have_been(job, each - shift)), None)
    if beside is not None:
        return beside
    while us in taken:
        us += 1
    return us


def has_just_started(job: Job, us: int) -> bool:
    started = None if job.tally is None else job.counts().last_start
    return started is not None and round(started * 1e6) == us


def _may_have_been(job: Job, us: int) -> bool:
    """Whether a tick may have been due then, on the planner's base."""
    planner = job.planner
    if planner.waits_for_end:
        return job.due_us is not None and planner.interval is not None and (job.due_us - us) % planner.interval == 0
    try:
        return planner.first(job.key, us - 1) == us
    except Exception:  # noqa: BLE001 - a user's schedule may raise anything
        return False
