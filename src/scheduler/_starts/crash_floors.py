"""Rests after crashes: a job that rests does not start before its floor."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .._jobs import Job
from .._plan import AT_ONCE, CrashFloor, Timeline
from .missed import MissedTicks
from .why_missed import RESTED


class CrashFloors:
    def __init__(self, timeline: Timeline, monotonic: Callable[[], float], missed: MissedTicks) -> None:
        self._timeline = timeline
        self._monotonic = monotonic
        self._missed = missed

    def not_before(self, job: Job, due_us: int | None) -> int | None:
        """Return `due_us`, or if the floor is later, the first start from the floor on.

        In microseconds on the planner's base: steady or wall time.
        """
        floor = job.floor
        if due_us is None or floor is None:
            return due_us
        shift = self._timeline.shift(steady=job.planner.steady)
        floor_us = floor.until_us - shift
        if due_us >= floor_us:
            return due_us
        following = None if job.planner.waits_for_end else job.planner.first(job.key, floor_us - 1)
        if following is None:
            return floor_us
        if floor.first_us is None:
            floor.first_us = due_us + shift
        return following

    def end(self, job: Job) -> float:
        """Return when the rest ends, in monotonic seconds. AT_ONCE: the job does not rest."""
        floor = job.floor
        return AT_ONCE if floor is None else self._timeline.monotonic(floor.until_us, steady=False)

    def moved(self, us: int, jobs: Iterable[Job]) -> list[Job]:
        """Keep rests' lengths after the wall clock was set by `us` microseconds. Return the resting jobs."""
        resting = []
        for job in jobs:
            floor = job.floor
            if floor is not None:
                resting.append(job)
                floor.until_us += us
                if floor.first_us is not None and job.planner.steady:
                    floor.first_us += us
        return resting

    def settle(self, job: Job) -> None:
        floor = job.floor
        if floor is not None:
            self._miss_until_now(job, floor)
            floor.first_us = None

    def forgive(self, job: Job) -> None:
        """End the rest; the ticks lost so far are missed."""
        floor = job.floor
        job.floor = None
        if floor is not None:
            self._miss_until_now(job, floor)

    def forgive_if_over(self, job: Job) -> None:
        """End a rest that is over, before a later start is missed.

        The stored state continues at the first start without a record: those after it must have none either.
        """
        floor = job.floor
        if floor is not None and self._timeline.us(self._monotonic(), steady=False) >= floor.until_us:
            self.forgive(job)

    def settle_ahead(self, job: Job) -> None:
        """Record all starts that the rest costs, also those to come, before a later start is missed."""
        floor = job.floor
        if floor is not None:
            self._miss_until(job, floor, floor.until_us - self._timeline.shift(steady=job.planner.steady))
            floor.first_us = None

    def _miss_until_now(self, job: Job, floor: CrashFloor) -> None:
        steady = job.planner.steady
        now_us = self._timeline.us(self._monotonic(), steady=steady)
        self._miss_until(job, floor, min(floor.until_us - self._timeline.shift(steady=steady), now_us))

    def _miss_until(self, job: Job, floor: CrashFloor, before_us: int) -> None:
        """`before_us`: on the planner's base."""
        if floor.first_us is None:
            return
        shift = self._timeline.shift(steady=job.planner.steady)
        first_us = floor.first_us - shift
        if first_us >= before_us:
            return
        gap = job.planner.gap(first_us, before_us - 1, job.policy)
        last_us = max((*gap.run, gap.last_missed or first_us))
        first_us, last_us, count = first_us + shift, last_us + shift, gap.missed + len(gap.run)
        self._missed.miss(job, first_us, last_us, count, RESTED, is_exact=gap.is_exact)
