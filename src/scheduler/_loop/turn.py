"""One turn of the timer queue: everything due at a moment, in one batch.

Nearly all jobs are plain: on a grid or with one start, and nothing special now. For speed their ticks are written out
here: runs share a bundle, and one lock arms next starts. Others go the long way, after those starts are armed: no code
finds a job without its next start.
"""

from __future__ import annotations

from logging import getLogger
from typing import Final

from schedule import Missed
from timerqueue import OUT, Alarm

from .._jobs import Job
from .._plan import Grid, Once
from .._runs import Run, RunBundle, Runs, drop_waiting
from .._starts import FOUND_LATE, NEVER_EARLY, ClockGuard, MissedTicks, Starts
from .._values import STARTING, Listeners
from .loop import Loop

logger = getLogger(__name__)

_LATEST: Final = Missed.LATEST
_SKIP: Final = Missed.SKIP


class Turn:
    def __init__(
        self,
        loop: Loop,
        starts: Starts,
        runs: Runs,
        missed: MissedTicks,
        listeners: Listeners,
        *,
        clock_guard: ClockGuard,
    ) -> None:
        self._loop = loop
        self._starts = starts
        self._parking = starts.parking
        self._runs = runs
        self._missed = missed
        self._clock_guard = clock_guard
        self._listeners = listeners
        self._queue = starts.queue
        self._timeline = starts.timeline
        self._now = starts.monotonic()
        self._to_arm: list[Alarm] = []
        self._arm_at: list[float] = []
        """In monotonic seconds."""
        self._batch: list[Alarm] = []

    def fire(self, batch: list[Alarm], now: float) -> None:
        self._now, self._batch = now, batch
        self._loop.look_at_clock(now)
        runs = self._runs
        runs.collect()
        try:
            self._fire_all(batch, now)
        finally:
            self._arm_all()
            self._batch = []
            runs.release()

    def is_firing(self, job: Job) -> bool:
        """Such a job has left the heap, perhaps without a next start."""
        return job in self._batch

    def _fire_all(self, batch: list[Alarm], now: float) -> None:
        runs, timeline, arm, arm_at = self._runs, self._timeline, self._to_arm.append, self._arm_at.append
        steady_offset, shift = timeline.steady_offset, timeline.shift_us
        now_us = timeline.us(now, steady=False) + NEVER_EARLY
        bundle: RunBundle | None = None
        for alarm in batch:
            if alarm.slot != OUT:  # an earlier alarm of the batch has replanned it, for later
                continue
            if type(alarm) is not Job or not alarm.is_plain or alarm.sparse is not None or alarm.runs:
                self._go_the_long_way(alarm)
                bundle = None
                continue
            planner, due, due_us = alarm.planner, alarm.due, alarm.due_us
            if bundle is None:
                bundle = self._bundle_from(due)
            if bundle is None or due_us is None:
                self._go_the_long_way(alarm)
                bundle = None
                continue
            if type(planner) is Grid:
                following = due_us + planner.interval
                at = following * 1e-6 - steady_offset
                if at <= now:
                    if alarm.policy.missed is not _LATEST or self._listeners.anybody:
                        self._go_the_long_way(alarm)
                        bundle = None
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
                bundle = None
                continue
            run = Run(runs, alarm, due, due_us, 1, bundle)
            alarm.runs = (run,)
            alarm.state = STARTING
            bundle.left.append(run)

    def _go_the_long_way(self, alarm: Alarm) -> None:
        self._arm_all()
        try:
            alarm.fire()
        except Exception:
            logger.exception("a timer of the scheduler failed: %r", alarm)

    def _bundle_from(self, due: float) -> RunBundle | None:
        runs = self._runs
        return None if runs.is_on_demand or runs.is_stopping else runs.bundle_from(due)

    def _newest(self, job: Job, grid: Grid, due_us: int, now: float) -> int:
        timeline, interval = self._timeline, grid.interval
        offset, shift = timeline.steady_offset, timeline.shift_us
        missed = (int((now + offset) * 1e6) - due_us) // interval
        if (due_us + (missed + 1) * interval) * 1e-6 - offset <= now:  # just now, but for rounding
            missed += 1
        newest = due_us + missed * interval
        if missed:
            self._missed.miss(job, due_us + shift, newest - interval + shift, missed, FOUND_LATE)
        return newest

    def _arm_all(self) -> None:
        if self._to_arm:
            self._queue.arm_all(self._to_arm, self._arm_at)
            self._to_arm.clear()
            self._arm_at.clear()

    # -- the long way of one tick ----------------------------------------------------------------------------------

    def tick(self, job: Job) -> None:  # noqa: C901 - a list of exceptions, one after another
        """Plan the next start, then start the due one."""
        due, due_us, planner = job.due, job.due_us, job.planner
        if due_us is None or job.is_paused or self._runs.is_on_demand or self._runs.is_stopping:
            return
        steady = planner.steady
        if not steady and self._is_early(job, due_us):
            return
        if job.sparse is not None or job.task is not None:
            if not self._clock_guard.is_whole and job.task is not None and self._clock_guard.leave(job):
                return
            self._regular_start_comes(job)
        by_hand = job.is_due_by_hand
        if by_hand and self._starts.must_wait(job):
            return
        timeline = self._timeline
        try:
            following = None
            if not planner.waits_for_end:
                following = planner.back(job.key, due_us) if by_hand else planner.following(due_us)
            if following is not None:
                at = following * 1e-6 - (timeline.steady_offset if steady else timeline.offset)
                if at <= self._now and not by_hand:
                    self._make_up(job, due_us)
                    return
                self._queue.arm(job, at)
        except Exception as exc:  # noqa: BLE001 - a user's schedule may raise anything
            self._parking.park(job, exc)
            following = None
        job.due_us = following
        if job.policy.missed is _SKIP and self._now - due > job.policy.grace:
            self._too_late(job, due_us)
            return
        self._runs.start(job, due, due_us + timeline.shift_us if steady else due_us)
        if following is None and not job.runs:
            self._starts.after_end(job)

    def _too_late(self, job: Job, due_us: int) -> None:
        self._drop_what_waits(job)
        reported = self._timeline.reported(due_us, steady=job.planner.steady)
        self._missed.miss(job, reported, reported, 1, FOUND_LATE)
        self._starts.after_end(job)

    def _drop_what_waits(self, job: Job, next_us: int | None = None) -> None:
        """A stored job's due ticks without a record must be its newest
        (tests/scheduler/runs/failures/test_late_and_waiting.py).
        """
        if job.task is not None:
            drop_waiting(self._missed, job, next_us)

    def _is_early(self, job: Job, due_us: int) -> bool:
        """Replan a start that the clock, set back or slow, has not reached."""
        ahead = due_us - self._timeline.us(self._now, steady=False)
        if ahead <= NEVER_EARLY:
            return False
        self._starts.plan(job, due_us)
        return True

    def _make_up(self, job: Job, due_us: int) -> None:
        planner = job.planner
        now_us = self._timeline.us(self._now, steady=planner.steady)
        gap = planner.gap(due_us, now_us, job.policy)
        self._starts.plan(job, gap.following)
        if gap.first_missed is not None and gap.last_missed is not None:
            newest = self._timeline.reported(gap.run[-1], steady=planner.steady) if gap.run else None
            self._drop_what_waits(job, newest)
            first = self._timeline.reported(gap.first_missed, steady=planner.steady)
            last = self._timeline.reported(gap.last_missed, steady=planner.steady)
            self._missed.miss(job, first, last, gap.missed, FOUND_LATE, is_exact=gap.is_exact)
        for us in gap.run:
            due = self._timeline.monotonic(us, steady=planner.steady)
            self._runs.start(job, due, self._timeline.reported(us, steady=planner.steady))
        if gap.following is None:
            self._starts.retire_if_done(job)

    def _regular_start_comes(self, job: Job) -> None:
        if job.floor is not None:
            self._starts.floors.forgive(job)
        if job.owed is not None:
            self._runs.owing.start(job, before=job.due)
        if job.again is None:
            return
        retry = job.policy.retry
        if retry is None or not retry.past_next_start:
            self._parking.cancel_retry(job)
