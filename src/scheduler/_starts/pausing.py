"""Pausing and resuming. On the loop, except `admits`.

A job starts by itself only if neither the job, nor a tag of it, nor the set of all jobs is paused. These pauses end
separately.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from logging import getLogger
from typing import Final

from timerqueue import Alarm, LifecycleError

from .._jobs import Job, JobList
from .._journal import Journal
from .._plan import instant_of, us_of
from .._values import (
    NO_REASON,
    Cause,
    JobChanged,
    JobState,
    Listeners,
    Pause,
    Pauses,
    ScopePaused,
    ScopeResumed,
    scope_of_job,
)
from .missed import MissedTicks
from .parking import Parking
from .slices import in_slices
from .starts import Starts

logger = getLogger(__name__)

NEVER_EARLY: Final = 20
"""Microseconds by which rounding may let an instant seem ahead when its timer fires."""


class PauseEnd(Alarm):
    __slots__ = ("due_now", "resume", "until_us")

    def __init__(self, until_us: int, resume: Callable[[], None], due_now: Callable[[PauseEnd], None]) -> None:
        super().__init__()
        self.until_us = until_us
        self.resume = resume
        self.due_now = due_now

    def fire(self) -> None:
        self.due_now(self)


class Pausing:
    def __init__(
        self,
        *,
        starts: Starts,
        parking: Parking,
        missed: MissedTicks,
        jobs: JobList,
        journal: Journal,
        listeners: Listeners,
    ) -> None:
        self._starts = starts
        self._parking = parking
        self._missed = missed
        self._jobs = jobs
        self._journal = journal
        self._listeners = listeners
        self.pauses = Pauses()
        self._ends: dict[Job | str, PauseEnd] = {}

    # -- a job's own pause ---------------------------------------------------------------------------------------------

    def pause(self, job: Job, reason: str | None, until: datetime | None = None, *, is_stored: bool = False) -> None:
        """Pause a job; runs may end. `is_stored`: the store has the pause already."""
        if job.is_removed:
            return
        was_paused = _has_pause(job)
        job.paused_by = pause = Pause(scope_of_job(job.id), reason or NO_REASON, self._now(), until)
        self._end_later(job, until, partial(self._over, job))
        self._halt(job)
        if not was_paused:  # else waiting runs were started by hand under the earlier pause
            hold_back(job)
        logger.info("job %r is disabled: %s", job.id, pause.reason)
        self._listeners.tell(JobChanged(job.id, JobState.DISABLED, pause.reason))
        if not is_stored:
            self._journal.remember_pause(job)

    def resume(self, job: Job, *, is_stored: bool = False) -> None:
        if job.is_removed or (job.paused_by is None and not job.is_parked):
            return
        pause, job.paused_by = job.paused_by, None
        if job.unfit is None:
            job.is_parked = False
        self.cancel_end(job)
        if not job.is_elsewhere:  # the node that has the job has its counts
            counts = job.counts()
            counts.consecutive_failures = counts.consecutive_crashes = 0
        if not is_stored:
            self._journal.remember_pause(job)
        if self._come_back(job, pause):
            logger.info("job %r is enabled", job.id)
            self._listeners.tell(JobChanged(job.id, job.state, "resumed"))
            self._starts.retire_if_done(job)
        elif job.held_by is not None:
            self._listeners.tell(JobChanged(job.id, job.state, f"resumed, but {job.held_by.text}"))

    def _over(self, job: Job) -> None:
        if not job.is_elsewhere:
            self.resume(job)

    def enable(self, job: Job) -> None:
        """End the job's own pause and rest: the user mended what made it crash."""
        starts = self._starts
        rested = job.floor is not None
        starts.floors.forgive(job)
        self.resume(job)
        starts.try_owed(job)
        if not rested or job.planner.waits_for_end:
            return
        first_us = job.planner.first(job.key, starts.left_out.now_us(job))
        if not job.is_paused:
            starts.plan(job, first_us)
        elif not job.is_due_by_hand:
            self._halt(job)  # a pause of many may not have come to it yet
            starts.left_out.begin_earlier(job, first_us)

    def cancel_end(self, key: Job | str) -> None:
        end = self._ends.pop(key, None)
        if end is not None:
            self._starts.queue.disarm(end)

    # -- pauses of tags and of all jobs --------------------------------------------------------------------------------

    def pause_scope(self, scope: str, reason: str | None, until: datetime | None = None) -> None:
        self.hold(Pause(scope, reason or NO_REASON, self._now(), until))

    def hold(self, pause: Pause, *, is_stored: bool = False) -> None:
        self.pauses.put(pause)
        self._end_later(pause.scope, pause.until, partial(self.resume_scope, pause.scope))
        logger.info("%s", pause.text)
        self._listeners.tell(ScopePaused(pause.scope, pause.reason, pause.until))
        if not is_stored:
            self._journal.remember_scope(pause.scope, pause)
        self._scopes_changed()

    def resume_scope(self, scope: str, *, is_stored: bool = False) -> None:
        pause = self.pauses.take(scope)
        if pause is None:
            return
        self.cancel_end(scope)
        logger.info("no longer: %s", pause.text)
        self._listeners.tell(ScopeResumed(scope))
        if not is_stored:
            self._journal.remember_scope(scope, None)
        self._scopes_changed()

    def admits(self, job: Job) -> bool:
        """Return whether a new job may be planned, or else hold it. Any thread."""
        job.held_by = self.pauses.covering(job.tags)
        if job.held_by is None:
            return True
        job.settle_pause()
        job.settle_state()
        return False

    def reconsider(self, job: Job) -> None:
        held_by = self.pauses.covering(job.tags)
        if held_by is job.held_by or job.is_removed:
            return
        had_pause, was_paused, pause, job.held_by = _has_pause(job), job.is_paused, job.held_by, held_by
        if not was_paused:
            self._halt(job)
        elif self._come_back(job, pause):
            self._starts.retire_if_done(job)
        if not had_pause:
            hold_back(job)

    def _scopes_changed(self) -> None:
        """Stop starts of covered jobs at once, and do the rest in slices: other work must not wait."""
        covering, jobs = self.pauses.covering, self._jobs.jobs()
        for job in jobs:
            held_by = covering(job.tags)
            if held_by is not None and held_by is not job.held_by:
                had_pause, job.held_by = _has_pause(job), held_by
                job.settle_pause()
                if job.backlog:
                    self._missed.drop_backlog(job, Cause.PAUSED)
                if job.runs and not had_pause:
                    hold_back(job)
        in_slices(self._starts.queue, iter(jobs), self._settle)

    def _settle(self, job: Job) -> None:
        if job.is_removed or job.held_by is None:
            return
        if self.pauses.covering(job.tags) is None:
            self.reconsider(job)
        elif job.paused_by is None and not job.is_parked:
            self._halt(job)

    # -- what both have in common --------------------------------------------------------------------------------------

    def look_at_clock(self) -> None:
        for end in self._ends.values():
            self._starts.queue.rearm(end, self._starts.timeline.monotonic(end.until_us, steady=False))

    def _halt(self, job: Job) -> None:
        self._starts.queue.disarm(job)
        self._parking.cancel_retry(job)
        self._missed.drop_backlog(job, Cause.PAUSED)
        self._starts.left_out.begin(job, job.due_us)
        job.due_us = None
        if job.task is not None:
            self._journal.touch(job)
        job.settle_pause()
        job.settle_state()

    def _come_back(self, job: Job, pause: Pause | None) -> bool:
        job.settle_pause()
        job.settle_state()
        if job.is_paused:
            return False
        try:
            now_us = self._starts.left_out.now_us(job)
            self._starts.floors.forgive_if_over(job)
            self._starts.left_out.settle(job, pause, now_us)
            self._starts.plan(job, self._next_start(job, now_us))
            self._starts.try_owed(job)
        except Exception as exc:  # noqa: BLE001 - a user's schedule may raise anything
            self._parking.park(job, exc)
            return False
        return True

    def _next_start(self, job: Job, now_us: int) -> int | None:
        if job.dated_us is not None and job.dated_us > now_us:
            return job.dated_us
        job.is_due_by_hand = False
        return self._starts.from_now(job, now_us)

    def _now(self) -> datetime:
        return instant_of(self._starts.timeline.us(self._starts.monotonic(), steady=False))

    def _end_later(self, key: Job | str, until: datetime | None, resume: Callable[[], None]) -> None:
        self.cancel_end(key)
        if until is not None:
            self._ends[key] = end = PauseEnd(us_of(until), resume, self._fire)
            self._arm(end)

    def _arm(self, end: PauseEnd) -> None:
        with suppress(LifecycleError):  # the scheduler has stopped
            self._starts.queue.arm(end, self._starts.timeline.monotonic(end.until_us, steady=False))

    def _fire(self, end: PauseEnd) -> None:
        """End the pause, or wait again if the clock was set back."""
        if end not in self._ends.values():  # an earlier timer of the same batch has ended it
            return
        now_us = self._starts.timeline.us(self._starts.monotonic(), steady=False)
        if end.until_us - now_us > NEVER_EARLY:
            self._arm(end)
        else:
            end.resume()


def _has_pause(job: Job) -> bool:
    """Return whether a user's pause holds the job; parking does not count. Runs that wait during a pause were started
    by hand.
    """
    return job.paused_by is not None or job.held_by is not None


def hold_back(job: Job) -> None:
    """Cancel runs of a paused job that have not begun. Owed ticks wait for the pause's end."""
    for run in job.runs:
        if run.started is None:
            run.terminate(Cause.PAUSED)
