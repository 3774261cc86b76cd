"""Jobs whose starts move when the wall clock is set."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from .._jobs import Job
from .parking import Parking
from .slices import in_slices
from .starts import Starts


class CalendarJobs:
    def __init__(self, starts: Starts, parking: Parking) -> None:
        self._starts = starts
        self._parking = parking

    def replan(self, jobs: Iterable[Job], jumped: float, now: float) -> None:
        """Plan calendar jobs again after the wall clock jumped by `jumped` seconds. `now`: monotonic seconds."""
        follows = [job for job in jobs if not job.planner.steady]
        in_slices(self._starts.queue, iter(follows), partial(self._replan, jumped=jumped, now=now))

    def _replan(self, job: Job, jumped: float, now: float) -> None:
        """Plan a start again. Jumped over, it is due now, as after downtime. Back: see Planner.replanned."""
        if job.due_us is None or job.is_removed or job.planner.steady:
            return
        if jumped > 0 or job.is_due_by_hand:
            self._starts.plan(job, job.due_us)
            return
        try:
            now_us = self._starts.timeline.us(now, steady=False)
            self._starts.plan(job, job.planner.replanned(job.due_us, now_us))
        except Exception as exc:  # noqa: BLE001 - a user's schedule may raise anything
            self._parking.park(job, exc)
