"""Starts that a pause leaves out. The regular starts of a paused job are missed, in one record, when the pause ends."""

from __future__ import annotations

from collections.abc import Callable

from .._jobs import Job
from .._plan import Timeline
from .._values import NO_REASON, Pause
from .missed import MissedTicks
from .why_missed import LEFT_OUT


class LeftOut:
    """The starts that pauses cost the jobs of one scheduler. It knows none of jobs that are parked or elsewhere."""

    def __init__(self, timeline: Timeline, monotonic: Callable[[], float], missed: MissedTicks) -> None:
        self._timeline = timeline
        self._monotonic = monotonic
        self._missed = missed

    def begin(self, job: Job, due_us: int | None) -> None:
        """Note `due_us` as the first start that the job's pause leaves out, unless an earlier one is noted.

        `due_us` is on the planner's base. None: the job had no next start.
        """
        if job.left_out_us is None and (job.paused_by or job.held_by) is not None and not job.is_elsewhere:
            job.left_out_us = due_us

    def takes(self, job: Job) -> bool:
        """Return whether the job is paused just when it would start at once. That start is left out, and recorded."""
        pause = job.paused_by or job.held_by
        if pause is not None and not job.is_elsewhere:
            us = self._timeline.us(self._monotonic(), steady=False)
            self._missed.miss(job, us, us, 1, LEFT_OUT, why=_why(pause))
        return job.is_paused

    def settle(self, job: Job, pause: Pause | None, now_us: int) -> None:
        """Record what the pause has left out until `now_us`, on the planner's base. Raises what a user's schedule
        raises.

        A start that came before the job could be taken out of the queue stands in `due_us`.
        """
        first_us = job.due_us if job.left_out_us is None else job.left_out_us
        job.left_out_us = None
        if pause is not None and first_us is not None:
            self._tell(job, first_us, now_us, _why(pause))

    def _tell(self, job: Job, first_us: int, until_us: int, why: str | None) -> None:
        """Record the starts from `first_us` on, if that has come before `until_us`."""
        if first_us > until_us:
            return
        last_us, count, is_exact = self._count(job, first_us, until_us)
        shift = self._timeline.shift(steady=job.planner.steady)
        self._missed.miss(job, first_us + shift, last_us + shift, count, LEFT_OUT, is_exact=is_exact, why=why)

    def go_on(self, job: Job, first_us: int) -> None:
        """Continue the pause of a job that had no node meanwhile. `first_us`: the first start left out, in UTC
        microseconds.

        If that pause is over, record what it has left out until the next start. The reason of that pause is not known.
        """
        first_us -= self._timeline.shift(steady=job.planner.steady)
        if job.is_paused:
            job.left_out_us = first_us
            return
        now_us = self.now_us(job)
        self._tell(job, first_us, now_us if job.due_us is None else min(now_us, job.due_us - 1), None)

    def settle_now(self, job: Job) -> None:
        """Record what the job's pause has left out so far: its schedule, or its next start, is about to change."""
        if job.left_out_us is not None:
            self.settle(job, job.paused_by or job.held_by, self.now_us(job))

    def now_us(self, job: Job) -> int:
        """Return this moment, on the base of the job's planner."""
        return self._timeline.us(self._monotonic(), steady=job.planner.steady)

    @staticmethod
    def _count(job: Job, first_us: int, now_us: int) -> tuple[int, int, bool]:
        """Return the last start from `first_us` until `now_us`, how many there are, and whether that is exact."""
        planner, by_hand = job.planner, int(job.is_due_by_hand and first_us == job.dated_us)
        regular_us = planner.back(job.key, first_us) if by_hand else first_us
        if regular_us is None or regular_us > now_us or (by_hand and planner.waits_for_end):
            return first_us, 1, True
        gap = planner.gap(regular_us, now_us, job.policy)
        last_us = max((*gap.run, gap.last_missed or first_us))
        return last_us, gap.missed + len(gap.run) + by_hand, gap.is_exact


def _why(pause: Pause) -> str | None:
    """Return the pause in words. None: it has no reason."""
    return None if pause.text == NO_REASON else pause.text
