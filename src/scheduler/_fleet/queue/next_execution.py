"""Which execution a job without a node should have, from its row and state."""

from __future__ import annotations

from typing import Final

from schedule import ScheduleError, parse
from timerqueue import UnknownLimit

from ..._control import Updates
from ..._plan import Timeline
from ..._values import SchedulerError
from ...stores import Execution, Planned, Standing, StoredJob, StoredState

LEFT_OUT: Final = "(left out by a pause)"
"""The `next_of` of a job whose pause leaves out this start and later ones."""


def left_out(state: StoredState) -> StoredState:
    return state._replace(next_of=LEFT_OUT)


def after_pause(
    row: StoredJob, state: StoredState | None, due_us: int | None, *, is_resumed: bool = False
) -> tuple[StoredState | None, int | None]:
    """Return the job's state with this execution, and the first start that its past pause left out."""
    if state is None or state.next_us is None:
        return state, None
    is_marked = state.next_of == LEFT_OUT
    if row.paused is not None:
        return (state._replace(next_of=row.schedule) if is_marked else state), None
    has_passed = due_us is not None and state.next_us < due_us
    if not is_marked and not (is_resumed and has_passed):
        return state, None
    return state._replace(next_us=due_us, next_of=row.schedule), state.next_us


def next_execution(standing: Standing, updates: Updates, timeline: Timeline, now_us: int) -> Planned | None:
    """Return the execution that should be live. None: all is well."""
    job, live = standing.job, standing.live
    due_us = None if job is None else _due(job, standing.state, updates, timeline)
    if standing.owes and job is not None and job.paused is None:
        owed_us = _owed(standing.state, live, now_us)
        due_us = owed_us if due_us is None else min(due_us, owed_us)
    schedule = "" if job is None else job.schedule
    if live is None:
        return None if due_us is None else Planned(standing.id, due_us, schedule, now_us)
    if live.due_us == due_us and live.schedule == schedule:
        return None
    return Planned(standing.id, due_us, schedule, now_us)


def due_elsewhere(state: StoredState, owed_us: int | None) -> int | None:
    """Return when another node should have the job: at its next start, or earlier to retry."""
    if owed_us is not None and state.not_before_us is not None:
        owed_us = max(owed_us, state.not_before_us)
    due = (state.next_us, state.retry_at_us, owed_us)
    return min((each for each in due if each is not None), default=None)


def _due(job: StoredJob, state: StoredState | None, updates: Updates, timeline: Timeline) -> int | None:
    if job.paused is not None:
        return job.paused_until_us
    if state is not None and state.next_us is not None and state.next_of in {None, job.schedule}:
        due_us = state.next_us if state.retry_at_us is None else min(state.next_us, state.retry_at_us)
    elif state is not None and state.retry_at_us is not None:
        due_us = state.retry_at_us
    else:
        found = _first(job, updates, timeline)
        if found is None:
            return None
        due_us = found
    return due_us if state is None or state.not_before_us is None else max(due_us, state.not_before_us)


def _owed(state: StoredState | None, live: Execution | None, now_us: int) -> int:
    rests_until_us = now_us if state is None or state.not_before_us is None else max(now_us, state.not_before_us)
    return rests_until_us if live is None else min(live.due_us, rests_until_us)


def _first(job: StoredJob, updates: Updates, timeline: Timeline) -> int | None:
    try:
        first = updates.first_start(parse(job.schedule), job.id, None)
    except (SchedulerError, ScheduleError, UnknownLimit, ValueError, ArithmeticError, RecursionError):
        return None
    if first.due_us is None:
        return None
    return timeline.reported(first.due_us, steady=first.planner.steady)
