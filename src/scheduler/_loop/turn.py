"""One turn of the timer queue: everything that is due at a moment, in one batch.

Nearly all that is due are plain jobs: on a grid or with one start, with nothing special to them at this moment. Such a
tick is nothing but a run and the next slot, and here it is written out, for many at a time: their runs share a volley
and their next starts are armed under one lock. Everything else goes the long way, by `Loop.tick` or the alarm's own
`fire`; what has been collected until then is armed first, so that nobody finds a job without its next start.
"""

from __future__ import annotations

from logging import getLogger
from typing import Final, Protocol

from schedule import Missed
from timerqueue import OUT, Alarm, TimerQueue

from .._jobs.job import Job
from .._plan.planner import Grid, Once
from .._plan.timeline import Timeline
from .._runs.bundles import RunVolley
from .._runs.run import Run
from .._runs.runs import Runs
from .._starts.pausing import NEVER_EARLY
from .._values.listeners import Listeners
from .._values.outcome import MissedReason
from .._values.state import STARTING

logger = getLogger(__name__)

_LATEST: Final = Missed.LATEST
_LATE: Final = MissedReason.LATE


class Ticking(Protocol):
    """What a turn asks of the loop."""

    queue: TimerQueue
    timeline: Timeline
    listeners: Listeners
    runs: Runs
    only_on_demand: bool

    def begin_turn(self, now: float) -> None: ...


class Turns:
    """Those of one loop."""

    def __init__(self, loop: Ticking) -> None:
        self._loop = loop
        self._to_arm: list[Alarm] = []
        self._arm_at: list[float] = []
        """In monotonic seconds."""

    def fire(self, batch: list[Alarm], now: float) -> None:
        """Look at the clock, fire what is due, then let all that this started begin."""
        self._loop.begin_turn(now)
        runs = self._loop.runs
        runs.hold()
        try:
            self._fire_all(batch, now)
        finally:
            self._arm_all()
            runs.let_go()

    def _fire_all(self, batch: list[Alarm], now: float) -> None:
        loop, arm, arm_at = self._loop, self._to_arm.append, self._arm_at.append
        runs, steady_offset, shift = loop.runs, loop.timeline.steady_offset, loop.timeline.shift_us
        now_us = loop.timeline.us(now, steady=False) + NEVER_EARLY
        volley: RunVolley | None = None
        for alarm in batch:
            if alarm.slot != OUT:  # somebody before it in the batch has planned it anew: its time is to come
                continue
            if type(alarm) is not Job or not alarm.is_plain or alarm.special is not None or alarm.runs:
                self._go_the_long_way(alarm)
                volley = None
                continue
            planner, due, due_us = alarm.planner, alarm.due, alarm.due_us
            if volley is None:
                volley = self._volley_from(due)
            if volley is None or due_us is None:
                self._go_the_long_way(alarm)
                volley = None
                continue
            if type(planner) is Grid:
                following = due_us + planner.interval
                at = following * 1e-6 - steady_offset
                if at <= now:
                    if alarm.policy.missed is not _LATEST or loop.listeners.anybody:
                        self._go_the_long_way(alarm)
                        volley = None
                        continue
                    due_us = self._newest(alarm, planner, due_us, now)
                    due = due_us * 1e-6 - steady_offset
                    following = due_us + planner.interval
                    at = following * 1e-6 - steady_offset
                arm(alarm)
                arm_at(at)
                alarm.due_us = following
                due_us += shift
            elif type(planner) is Once and due_us <= now_us:
                alarm.due_us = None
            else:
                self._go_the_long_way(alarm)
                volley = None
                continue
            run = Run(runs, alarm, due, due_us, 1, volley)
            alarm.runs = (run,)
            alarm.state = STARTING
            volley.left.append(run)

    def _go_the_long_way(self, alarm: Alarm) -> None:
        """Let it do what it does. That may change everything, also who may go the short way."""
        self._arm_all()
        try:
            alarm.fire()
        except Exception:
            logger.exception("a timer of the scheduler failed: %r", alarm)

    def _volley_from(self, due: float) -> RunVolley | None:
        """Where plain runs go at this moment, of which the next is due at `due`. None: they go the long way."""
        loop = self._loop
        return None if loop.only_on_demand or loop.runs.is_stopping else loop.runs.volley_from(due)

    def _newest(self, job: Job, grid: Grid, due_us: int, now: float) -> int:
        """The newest slot that has passed; the next one lies ahead. Those before it are missed."""
        timeline, interval = self._loop.timeline, grid.interval
        offset, shift = timeline.steady_offset, timeline.shift_us
        missed = (int((now + offset) * 1e6) - due_us) // interval
        if (due_us + (missed + 1) * interval) * 1e-6 - offset <= now:  # just now, but for rounding
            missed += 1
        newest = due_us + missed * interval
        if missed:
            self._loop.runs.misses.miss(job, due_us + shift, newest - interval + shift, missed, _LATE)
        return newest

    def _arm_all(self) -> None:
        """Put the next starts of plain jobs into the heap, before anybody else can do anything about them."""
        if self._to_arm:
            self._loop.queue.arm_all(self._to_arm, self._arm_at)
            self._to_arm.clear()
            self._arm_at.clear()
