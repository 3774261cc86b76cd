"""When a job starts for the first time. Here the clock is read, once for each job that is added."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from attrs import evolve

from schedule import After, At, Every, Schedule

from .._values import InvalidJob
from .planner import Grid, Planner, is_grid, planner_for
from .timeline import Timeline, aware, us_of

Start = Literal["phase", "now"] | datetime | None

PLAIN: Final = (Every, After, At)
"""Kinds of schedule whose planners many jobs can have in common."""

SHARED_PLANNERS: Final = 1_000
"""Distinct schedules whose planners are kept to be shared."""

_KNOWN: Final = ("phase", "now")


class FirstStart(NamedTuple):
    """`due_us`: the first regular start, on the planner's base; None: only `at_once`, if at all."""

    schedule: Schedule
    planner: Planner
    at_once: bool
    due_us: int | None
    is_dated: bool = False
    """It was asked for by a datetime, and stands until then."""


Plan = tuple[Schedule, Planner, bool, int | None, bool]
"""The fields of a FirstStart, bare: to make one costs more than to find them."""


def left_out(plan: Plan, now: int) -> int | None:
    """The slot that a start at once stands for: it comes so soon after `now` that it would find it still running."""
    _, planner, at_once, due, _ = plan
    if not at_once or due is None or not isinstance(planner, Grid):
        return None
    slot = due - planner.interval
    return slot if slot > now else None


class Planners:
    """Plans the jobs of one scheduler. Those that can have a planner in common have the same."""

    def __init__(self, timeline: Timeline, monotonic: Callable[[], float]) -> None:
        self._timeline = timeline
        self._monotonic = monotonic
        self._shared: dict[Schedule | timedelta, tuple[Schedule, Planner]] = {}
        """By what tells schedules apart. Equal ones become one: that each of many jobs was added with one of its own
        costs no memory.
        """
        self._given: Schedule | None = None
        self._last: tuple[Schedule, Planner] | None = None
        """The shared ones of `_given`: jobs are often added with the very schedule of the one before, and then it need
        not be hashed again.
        """

    def first(self, schedule: Schedule, key: str, start: Start) -> Plan:
        """When the job `key` starts for the first time. Raises InvalidJob for what would never start."""
        now = int((self._monotonic() + self._timeline.steady_offset) * 1e6)  # Timeline.us, without the cost of a call
        if start is not None:
            if isinstance(start, datetime):
                return _at(aware("start", start), schedule, key, now, self._timeline.shift_us)
            _check(start, schedule)
        schedule, planner = self.planner_of(schedule, key)
        at_once = planner.waits_for_end if start is None else start == "now"
        if at_once and planner.waits_for_end:
            return schedule, planner, True, None, False
        if not planner.steady:
            now += self._timeline.shift_us
        elif at_once and isinstance(planner, Grid):
            now += planner.interval // 2  # it stands for a slot sooner than that, which would find it still running
        due = planner.first(key, now)
        if due is None and not at_once:
            msg = f'{schedule} has no start after now: give it a later one, or start="now" to run it once'
            raise InvalidJob(msg)
        return schedule, planner, at_once, due, False

    def first_of_each(self, schedule: Schedule, start: Start) -> Callable[[str], Plan] | None:
        """Answer how many jobs with that schedule start, by key, as of now. None: ask for each by itself."""
        if type(schedule) is not Every or not is_grid(schedule) or not (start is None or start == "phase"):
            return None
        shared, planner = self.planner_of(schedule, "")
        now = self._timeline.us(self._monotonic(), steady=True)
        return lambda key: (shared, planner, False, planner.first(key, now), False)

    def planner_of(self, schedule: Schedule, key: str) -> tuple[Schedule, Planner]:
        """Answer the schedule as it stands for the job `key`, and its planner."""
        if self._last is not None and schedule is self._given:
            return self._last
        distinct: Schedule | timedelta = schedule
        if type(schedule) is Every and schedule.anchor is None and schedule.key is None and not schedule.jitter:
            distinct = schedule.interval  # hashed in a tenth of the time
        known = self._shared.get(distinct) if type(schedule) in PLAIN else None
        if known is None:
            if type(schedule) not in PLAIN or (type(schedule) is Every and not is_grid(schedule)):
                schedule = schedule.bind(key)
                return schedule, planner_for(schedule, self._timeline.shift_us)
            if len(self._shared) >= SHARED_PLANNERS:
                self._shared.clear()
            known = self._shared[distinct] = schedule, planner_for(schedule, self._timeline.shift_us)
        self._given, self._last = schedule, known
        return known


def _check(start: object, schedule: Schedule) -> None:
    """Raise InvalidJob for a word that does not exist, or is not for this schedule."""
    if start not in _KNOWN:
        msg = f'start must be "phase", "now" or an aware datetime, not {start!r}'
        raise InvalidJob(msg)
    if start == "phase" and not isinstance(schedule, (Every, After)):
        msg = f'start="phase" is for Every and After; {schedule} says itself when it starts'
        raise InvalidJob(msg)


def _at(start: datetime, schedule: Schedule, key: str, now: int, shift: int) -> Plan:
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
    return schedule, planner, False, due, True
