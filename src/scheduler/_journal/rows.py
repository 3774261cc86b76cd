"""A job's definition and state as rows, and back. Pure."""

from __future__ import annotations

from typing import Any, Final

from .._jobs import Job
from .._plan import Grid, Timeline, instant_of, us_of
from .._shape import copied
from .._values import Outcome, Pause, RunTally
from ..stores import JobPause, StoredJob, StoredPause, StoredState
from .definition import check_size, stored_job

_Retry = tuple[int, int, int] | tuple[None, None, None]


def state_of(job: Job, timeline: Timeline) -> StoredState:
    """Return the job's state now.

    A due tick without a mark counts as a future one: if the process dies, the job continues with it. A paused job's
    next start is the first that the pause leaves out. Owed ticks have their own records.
    """
    next_us = _reported(job, job.due_us, timeline)
    is_dated = job.dated_us is not None and job.dated_us == job.due_us
    is_by_hand, until_us, retry = is_dated, None, _NO_RETRY
    if job.sparse is not None or (job.runs and unmarked(job)):
        until_us = None if job.floor is None else job.floor.until_us
        if job.stood is not None:  # its row has parked it; once that is mended, it continues from this state
            return _counted(job.stood._replace(not_before_us=until_us), job)
        is_by_hand = job.is_due_by_hand or is_dated
        if job.is_due_by_hand and job.is_paused:
            next_us = _reported(job, job.dated_us, timeline)
        elif job.left_out_us is not None:
            next_us = _reported(job, job.left_out_us, timeline)
        next_us, retry = _with_what_waits(job, next_us, timeline)
    state = (
        job.id,
        next_us,
        is_by_hand,
        *retry,
        until_us,
        *_counts_of(job, None if next_us is None else job.schedule_text),
    )
    return StoredState._make(state)


def _reported(job: Job, due_us: int | None, timeline: Timeline) -> int | None:
    return None if due_us is None else timeline.reported(due_us, steady=job.planner.steady)


def _with_what_waits(job: Job, next_us: int | None, timeline: Timeline) -> tuple[int | None, _Retry]:
    retry: tuple[int, int, int] | None = (
        None if job.again is None else (job.again.due_us, job.again.attempt, timeline.us(job.again.due, steady=False))
    )
    if job.floor is not None and job.floor.first_us is not None and next_us is not None:
        next_us = min(next_us, job.floor.first_us)
    for due_us, attempt in unmarked(job):
        if attempt == 1 and not _is_slot(job, due_us, next_us):
            continue
        if attempt > 1:
            retry = (due_us, attempt, due_us) if retry is None else min(retry, (due_us, attempt, due_us))
        else:
            next_us = due_us if next_us is None else min(next_us, due_us)
    return next_us, retry or _NO_RETRY


def starting_at(state: StoredState, at_us: int, schedule: str | None) -> StoredState:
    """A start by hand replaces the regular start and any retry."""
    return state._replace(
        next_us=at_us, next_by_hand=True, next_of=schedule, retry_due_us=None, retry_attempt=None, retry_at_us=None
    )


def _counted(state: StoredState, job: Job) -> StoredState:
    first = state._fields.index("runs")
    return StoredState._make((*state[:first], *_counts_of(job, state.next_of)))


def _counts_of(job: Job, next_of: str | None) -> tuple[Any, ...]:
    if job.tally is None:
        return (*_NOTHING_COUNTED, next_of, True)
    tally = job.counts()
    if tally.sparse is None:  # no run has ever failed
        wrong, seconds, error, is_exact = _NOTHING_WRONG, 0.0, None, True
    else:
        wrong = (
            tally.failures,
            tally.timeouts,
            tally.cancellations,
            tally.missed,
            tally.consecutive_failures,
            tally.consecutive_crashes,
        )
        seconds, error, is_exact = tally.total_duration_failures, tally.last_error, tally.missed_is_exact
    return (
        tally.runs,
        tally.successes,
        *wrong,
        tally.total_duration,
        seconds,
        tally.lateness_sum,
        tally.lateness_max,
        some_us(tally.last_start),
        some_us(tally.last_finish),
        some_us(tally.last_successful_finish),
        None if tally.last_outcome is None else tally.last_outcome.value,
        error,
        next_of,
        is_exact,
    )


_NO_RETRY: Final[_Retry] = (None, None, None)
_NOTHING_WRONG: Final = (0, 0, 0, 0, 0, 0)
_NOTHING_COUNTED: Final = StoredState("")[StoredState._fields.index("runs") : -2]


def tally_of(state: StoredState) -> RunTally | None:
    if not state.runs and not state.missed:
        return None
    tally = RunTally()
    if not state.missed_is_exact:
        tally.missed_is_exact = False
    tally.successes = state.successes
    tally.runs = state.runs
    tally.failures = state.failures
    tally.timeouts = state.timeouts
    tally.cancellations = state.cancellations
    tally.missed = state.missed
    tally.consecutive_failures = state.consecutive_failures
    tally.consecutive_crashes = state.consecutive_crashes
    tally.total_duration = state.total_duration
    tally.total_duration_failures = state.total_duration_failures
    tally.lateness_sum = state.lateness_sum
    tally.lateness_max = state.lateness_max
    tally.last_start = _some_seconds(state.last_start_us)
    tally.last_finish = _some_seconds(state.last_finish_us)
    tally.last_successful_finish = _some_seconds(state.last_success_us)
    tally.last_outcome = _OUTCOMES.get(state.last_outcome or "")
    tally.last_error = state.last_error
    return tally


_OUTCOMES = {outcome.value: outcome for outcome in Outcome}


def some_us(seconds: float | None) -> int | None:
    """Convert UTC seconds to whole microseconds."""
    return None if seconds is None else int(seconds * 1e6)


def _some_seconds(us: int | None) -> float | None:
    return None if us is None else us * 1e-6


def row_of(job: Job) -> StoredJob:
    """Raises InvalidJob if the job cannot be stored."""
    assert job.task is not None
    return stored_job(job.id, job.task, job.schedule, job.definition, job_pause(job))


def known_row(job: Job) -> StoredJob:
    """Return the row in the stored words, or the row that keeps the job from running."""
    if job.unfit is not None:
        return job.unfit.row
    row = row_of(job)
    return row if job.schedule_text is None else row._replace(schedule=job.schedule_text)


def job_pause(job: Job) -> JobPause:
    pause = job.paused_by
    if pause is None:
        return JobPause()
    return JobPause(pause.reason, None if pause.until is None else us_of(pause.until))


def new_row(job: Job) -> StoredJob:
    """Return the row, and copy the arguments: the job is called with what is stored. Raises InvalidJob."""
    row = row_of(job)
    if job.args or job.kwargs:
        job.args, job.kwargs = copied(job.args), copied(job.kwargs)
    return row


def check_pause(job: Job, reason: str | None) -> None:
    """Raise InvalidJob if that reason cannot be stored."""
    check_size(row_of(job)._replace(paused=reason))


def _is_slot(job: Job, due_us: int, next_us: int | None) -> bool:
    """A tick of `run_now` is not on the job's grid."""
    grid = job.planner
    return next_us is None or not isinstance(grid, Grid) or (next_us - due_us) % grid.interval == 0


def stays_due(job: Job, due_us: int, attempt: int, timeline: Timeline) -> bool:
    """Return whether the state can leave this tick to the next scheduler."""
    if job.task is None:
        return False
    next_us = None if job.due_us is None else timeline.reported(job.due_us, steady=job.planner.steady)
    return attempt > 1 or _is_slot(job, due_us, next_us)


def unmarked(job: Job) -> list[tuple[int, int]]:
    """Return due instants and attempts of ticks that are due, not owed and not marked.

    Other nodes' requests are left out: the store keeps them.
    """
    waiting = [
        (run.due_us, run.attempt)
        for run in job.runs
        if run.job.task is not None and not run.is_held and run.owes is None
    ]
    waiting += job.backlog or ()
    if job.sparse is None or not job.asked:
        return waiting
    asked = requested(job)
    return [(due_us, attempt) for due_us, attempt in waiting if attempt > 1 or due_us not in asked]


def requested(job: Job) -> set[int | None]:
    return {asked.due_us for asked in job.asked if asked.number is not None and not asked.is_along}


def stored_pause(pause: Pause) -> StoredPause:
    return StoredPause(
        pause.scope, pause.reason, us_of(pause.since), None if pause.until is None else us_of(pause.until)
    )


def pause_of(stored: StoredPause) -> Pause:
    until = None if stored.until_us is None else instant_of(stored.until_us)
    return Pause(stored.scope, stored.reason, instant_of(stored.since_us), until)
