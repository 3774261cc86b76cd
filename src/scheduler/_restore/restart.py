"""Where a stored job starts, or goes on, as `_plan/after_restart.py` decides."""

from __future__ import annotations

from functools import partial

from .._jobs import Job, NextAttempt
from .._loop import Core
from .._plan import FirstStart, after_downtime, retry_by
from ..stores import StoredState


class Restart:
    def __init__(self, core: Core) -> None:
        self._core = core

    def begin(self, job: Job, first: FirstStart) -> None:
        """A row written by hand starts like an added job."""
        if first.at_once and not job.is_paused:
            self._core.runs.start_at_once(job)
        if first.due_us is not None and not job.is_paused:
            self._core.starts.plan(job, first.due_us)
        elif job.is_paused:
            self._core.starts.left_out.begin(job, first.due_us)

    def go_on(self, job: Job, state: StoredState) -> None:
        """When the job is due, its policy decides about passed starts."""
        core = self._core
        if self._is_simple(job, state) and state.next_us is not None:  # nearly all jobs, at a restart of 100,000
            core.starts.plan_first(job, state.next_us - (core.timeline.shift_us if job.planner.steady else 0))
            return
        if job.is_paused:
            self._stay_paused(job, state)
            return
        if state.retry_at_us is not None and state.retry_due_us is not None:
            self._retry(job, state.retry_due_us, state.retry_attempt or 1, state.retry_at_us)
        core.starts.try_owed(job)
        floor = job.floor
        shift = core.timeline.shift_us if job.planner.steady else 0
        back = after_downtime(
            job.planner,
            job.key,
            job.policy,
            self._now_us() - shift,
            next_us=_minus(state.next_us, shift),
            is_by_hand=state.next_by_hand,
            is_of_another=state.next_of is not None and state.next_of != job.schedule_text,
            not_before_us=None if floor is None else floor.until_us - shift,
            last_finish_us=_minus(state.last_finish_us, shift),
        )
        job.is_due_by_hand = back.is_by_hand
        job.dated_us = back.due_us if job.is_due_by_hand else None
        if back.due_us is not None and back.due_us == _minus(state.next_us, shift) and job.floor is None:
            core.starts.plan_first(job, back.due_us)  # as stored: nothing to write
        else:
            comes_again = (job.again is not None or job.owed is not None) and not back.is_by_hand
            core.starts.plan(job, None if comes_again and job.planner.waits_for_end else back.due_us)
        if back.skipped is not None and back.skipped.first_missed is not None and floor is not None:
            floor.first_us = back.skipped.first_missed + shift
        if back.due_us is None:
            core.starts.retire_if_done(job)

    def _stay_paused(self, job: Job, state: StoredState) -> None:
        shift = self._core.timeline.shift_us if job.planner.steady else 0
        due_us = _minus(state.next_us, shift)
        if state.next_by_hand:
            job.is_due_by_hand, job.dated_us = True, due_us
        elif state.next_of is not None and state.next_of != job.schedule_text:
            due_us = None
        elif due_us is not None:
            due_us = job.planner.slot(job.key, due_us)
        if due_us is None and not job.planner.waits_for_end:
            due_us = job.planner.first(job.key, self._now_us() - shift)
        self._core.starts.left_out.begin(job, due_us)

    def _is_simple(self, job: Job, state: StoredState) -> bool:
        interval = job.planner.interval
        if job.sparse is not None or state.next_by_hand or interval is None or state.next_us is None:
            return False  # it may be paused, owe something or rest
        if state.not_before_us is not None or state.retry_at_us is not None:
            return False
        if state.next_of != job.schedule_text or not 0 < state.next_us - self._now_us() <= interval:
            return False
        planner, shift = job.planner, self._core.timeline.shift_us
        return not planner.steady or planner.slot(job.key, state.next_us - shift) == state.next_us - shift

    def _retry(self, job: Job, due_us: int, attempt: int, at_us: int) -> None:
        """Try a failed tick again, but not while the job rests."""
        core, floor = self._core, job.floor
        if job.owed is not None and any(tick.due_us == due_us for tick in job.owed.ticks):
            return  # a store of the first version has it twice
        failures = job.counts().consecutive_failures
        at_us = retry_by(at_us, self._now_us(), failures, job.policy, interval=job.planner.interval)
        job.again = NextAttempt(partial(core.runs.start_again, job), due_us, attempt)
        at_us = at_us if floor is None else max(at_us, floor.until_us)
        core.queue.arm(job.again, core.timeline.monotonic(at_us, steady=False))

    def _now_us(self) -> int:
        return self._core.timeline.us(self._core.monotonic(), steady=False)


def _minus(us: int | None, shift: int) -> int | None:
    return None if us is None else us - shift
