"""Starts that a pause leaves out: missed in one record when it ends."""

from __future__ import annotations

from collections.abc import Callable

from .._jobs import Job
from .._plan import Timeline
from .._values import NO_REASON, Pause
from .missed import MissedTicks
from .why_missed import LEFT_OUT


class LeftOut:
    """Starts left out of jobs that are neither parked nor elsewhere."""

    def __init__(self, timeline: Timeline, monotonic: Callable[[], float], missed: MissedTicks) -> None:
        self._timeline = timeline
        self._monotonic = monotonic
        self._missed = missed

    def begin(self, job: Job, due_us: int | None) -> None:
        """Note the first start left out, on the planner's base, unless noted already."""
        if job.left_out_us is None and (job.paused_by or job.held_by) is not None and not job.is_elsewhere:
            job.left_out_us = due_us

    def begin_earlier(self, job: Job, due_us: int | None) -> None:
        """Note an earlier first start: the rest that would have cost it has ended."""
        if job.left_out_us is not None and due_us is not None:
            job.left_out_us = min(job.left_out_us, due_us)

    def takes(self, job: Job) -> bool:
        """Return whether the job is paused as it would start at once. That start is recorded."""
        pause = job.paused_by or job.held_by
        if pause is not None and not job.is_elsewhere:
            us = self._timeline.us(self._monotonic(), steady=False)
            self._missed.miss(job, us, us, 1, LEFT_OUT, why=_why(pause))
        return job.is_paused

    def settle(self, job: Job, pause: Pause | None, now_us: int) -> None:
        """Record starts left out until `now_us`, on the planner's base. Raises what a user's schedule raises.

        A start that came before the job left the queue stands in `due_us`.
        """
        first_us = job.due_us if job.left_out_us is None else job.left_out_us
        job.left_out_us = None
        if pause is not None and first_us is not None:
            self._tell(job, first_us, now_us, _why(pause))

    def _tell(self, job: Job, first_us: int, until_us: int, why: str | None) -> None:
        if first_us > until_us:
            return
        last_us, count, is_exact = self._count(job, first_us, until_us)
        shift = self._timeline.shift(steady=job.planner.steady)
        self._missed.miss(job, first_us + shift, last_us + shift, count, LEFT_OUT, is_exact=is_exact, why=why)

    def go_on(self, job: Job, first_us: int) -> None:
        """Continue the pause of a job that had no node. `first_us`: the first start left out, in UTC microseconds.

        If the pause is over, record starts left out until the next. Their reason is unknown.
        """
        first_us -= self._timeline.shift(steady=job.planner.steady)
        if job.is_paused:
            job.left_out_us = first_us
            return
        now_us = self.now_us(job)
        self._tell(job, first_us, now_us if job.due_us is None else min(now_us, job.due_us - 1), None)

    def settle_now(self, job: Job) -> None:
        if job.left_out_us is not None or job.held_by is not None:
            self.settle(job, job.paused_by or job.held_by, self.now_us(job))

    def now_us(self, job: Job) -> int:
        """Return this moment on the base of the job's planner."""
        return self._timeline.us(self._monotonic(), steady=job.planner.steady)

    @staticmethod
    def _count(job: Job, first_us: int, now_us: int) -> tuple[int, int, bool]:
        """Return the last start, how many there are, and whether that is exact."""
        planner, by_hand = job.planner, int(job.is_due_by_hand and first_us == job.dated_us)
        regular_us = planner.back(job.key, first_us) if by_hand else first_us
        if regular_us is None or regular_us > now_us or (by_hand and planner.waits_for_end):
            return first_us, 1, True
        gap = planner.gap(regular_us, now_us, job.policy)
        last_us = max((*gap.run, gap.last_missed or first_us))
        return last_us, gap.missed + len(gap.run) + by_hand, gap.is_exact


def _why(pause: Pause) -> str | None:
    return None if pause.text == NO_REASON else pause.text
