"""When a job starts for the first time. Pure: told what time it is."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal, NamedTuple

from attrs import evolve

from schedule import After, At, Every, Schedule

from ._errors import InvalidJob
from ._planner import Grid, Planner, planner_for
from ._timeline import us_of

Start = Literal["phase", "now"] | datetime | None

_SHARED: Final = (Every, After, At)
"""Schedules whose planners many jobs can have in common."""

_KNOWN: Final = ("phase", "now")


class FirstStart(NamedTuple):
    """`due_us`: the first regular start, on the planner's base; None: only `at_once`, if at all."""

    schedule: Schedule
    planner: Planner
    at_once: bool
    due_us: int | None
    is_dated: bool = False
    """It was asked for by a datetime, and stands until then."""


def first_start(
    schedule: Schedule,
    key: str,
    start: Start,
    *,
    now: int,
    shift: int,
    shared: dict[Schedule, Planner],
) -> FirstStart:
    """Plan the job `key`. `now` and `shift` in microseconds, on the steady base and from there to the wall.

    Planners that jobs can have in common are taken from `shared` and put there. Raises InvalidJob for what would
    never start.
    """
    if isinstance(start, datetime):
        return _at(_aware(start), schedule, key, now, shift)
    if start is not None and start not in _KNOWN:
        msg = f'start must be "phase", "now" or an aware datetime, not {start!r}'
        raise InvalidJob(msg)
    if start == "phase" and not isinstance(schedule, (Every, After)):
        msg = f'start="phase" is for Every and After; {schedule} says itself when it starts'
        raise InvalidJob(msg)
    schedule, planner = bound_planner(schedule, key, shift, shared)
    at_once = start == "now" or (start is None and planner.waits_for_end)
    if at_once and planner.waits_for_end:
        return FirstStart(schedule, planner, at_once=True, due_us=None)
    due = planner.first(key, _from(planner, now, at_once=at_once) if planner.steady else now + shift)
    if due is None and not at_once:
        msg = f'{schedule} has no start after now: give it a later one, or start="now" to run it once'
        raise InvalidJob(msg)
    return FirstStart(schedule, planner, at_once, due)


def bound_planner(
    schedule: Schedule, key: str, shift: int, shared: dict[Schedule, Planner]
) -> tuple[Schedule, Planner]:
    """The schedule as it stands for the job `key`, and its planner: one from `shared`, if jobs can share it."""
    is_shared = type(schedule) in _SHARED and not (type(schedule) is Every and schedule.jitter)
    planner = shared.get(schedule) if is_shared else None
    if planner is None:
        if not is_shared:
            schedule = schedule.bind(key)
        planner = planner_for(schedule, shift)
        if is_shared:
            shared[schedule] = planner
    return schedule, planner


def _from(planner: Planner, now: int, *, at_once: bool) -> int:
    """A start at once stands for a slot that is less than half an interval away: it would find it still running."""
    return now + planner.interval // 2 if at_once and isinstance(planner, Grid) else now


def _at(start: datetime, schedule: Schedule, key: str, now: int, shift: int) -> FirstStart:
    """The first start is at `start`, or the first one after now if that has passed. A grid goes through it."""
    if type(schedule) is Every:
        schedule = evolve(schedule, anchor=start)
    schedule = schedule.bind(key)
    planner = planner_for(schedule, shift)
    if planner.steady:
        start_us = us_of(start) - shift
        due: int | None = start_us if start_us > now or planner.waits_for_end else planner.first(key, now)
    else:
        due = planner.first(key, max(us_of(start) - 1, now + shift))
    if due is None:
        msg = f"{schedule} has no start from {start} on"
        raise InvalidJob(msg)
    return FirstStart(schedule, planner, at_once=False, due_us=due, is_dated=True)


def _aware(start: datetime) -> datetime:
    if start.tzinfo is None:
        msg = f"start={start!r} is naive: give it a zone, as in start.replace(tzinfo=UTC)"
        raise InvalidJob(msg)
    return start
