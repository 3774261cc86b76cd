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

SHARED_PLANNERS: Final = 1_000

_KNOWN: Final = ("phase", "now")


class FirstStart(NamedTuple):
    """`due_us`: on the planner's base; None: only `at_once`, if at all."""

    schedule: Schedule
    planner: Planner
    at_once: bool
    due_us: int | None
    is_dated: bool = False


Plan = tuple[Schedule, Planner, bool, int | None, bool]
"""A FirstStart's fields: making one costs too much."""


def left_out(plan: Plan, now: int) -> int | None:
    """Return the slot whose run would overlap with a start at once."""
    _, planner, at_once, due, _ = plan
    if not at_once or due is None or not isinstance(planner, Grid):
        return None
    slot = due - planner.interval
    return slot if slot > now else None


class Planners:
    def __init__(self, timeline: Timeline, monotonic: Callable[[], float]) -> None:
        self._timeline = timeline
        self._monotonic = monotonic
        self._shared: dict[Schedule | timedelta, tuple[Schedule, Planner]] = {}
        """Equal schedules become one, to save memory."""
        self._given: Schedule | None = None
        self._last: tuple[Schedule, Planner] | None = None
        """Jobs often share one `_given`, which is not hashed again."""

    def first(self, schedule: Schedule, key: str, start: Start) -> Plan:
        """Raises InvalidJob if the job would never start."""
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
            now += planner.interval // 2  # it replaces a slot sooner than that, which would find it still running
        due = planner.first(key, now)
        if due is None and not at_once:
            msg = f'{schedule} has no start after now: give it a later one, or start="now" to run it once'
            raise InvalidJob(msg)
        return schedule, planner, at_once, due, False

    def first_of_each(self, schedule: Schedule, start: Start) -> Callable[[str], Plan] | None:
        """Return a function that plans by key, as of now. None: plan each job alone."""
        if type(schedule) is not Every or not is_grid(schedule) or not (start is None or start == "phase"):
            return None
        shared, planner = self.planner_of(schedule, "")
        now = self._timeline.us(self._monotonic(), steady=True)
        return lambda key: (shared, planner, False, planner.first(key, now), False)

    def planner_of(self, schedule: Schedule, key: str) -> tuple[Schedule, Planner]:
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
    if start not in _KNOWN:
        msg = f'start must be "phase", "now" or an aware datetime, not {start!r}'
        raise InvalidJob(msg)
    if start == "phase" and not isinstance(schedule, (Every, After)):
        msg = f'start="phase" is for Every and After; {schedule} says itself when it starts'
        raise InvalidJob(msg)


def _at(start: datetime, schedule: Schedule, key: str, now: int, shift: int) -> Plan:
    """The first start at `start` or, if that has passed, after now. A grid goes through `start`."""
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
