"""Which start of a job stands in the queue: regular, set by hand, counted from an end, or none.

After a start, the job has its next start in the queue, or a run whose end plans it (`after_end`), or is gone
(`retire_if_done`). All on the loop, except `plan_first` and `plan_all_first`: any thread may plan new jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from logging import getLogger
from typing import Final

from timerqueue import LifecycleError, LifecycleState, TimerQueue

from .._jobs import Job, JobList
from .._journal import Journal, starting_at
from .._plan import FirstStart, Timeline
from .._values import Delivery, JobChanged, JobFinished, Listeners, Overlap
from ..stores import StoredTick
from .crash_floors import CrashFloors
from .left_out import LeftOut
from .parking import Parking
from .upcoming import after_last_run, beside_ticks, has_just_started

logger = getLogger(__name__)

REMOVED: Final = "its job has been removed"
AT_MOST_ONCE: Final = "its job's delivery is at most once now"


class Starts:
    def __init__(
        self,
        queue: TimerQueue,
        timeline: Timeline,
        *,
        jobs: JobList,
        journal: Journal,
        floors: CrashFloors,
        left_out: LeftOut,
        parking: Parking,
        listeners: Listeners,
    ) -> None:
        self.queue = queue
        self.timeline = timeline
        self.monotonic: Callable[[], float] = queue.clock.monotonic
        self.floors = floors
        self.left_out = left_out
        self.parking = parking
        self.is_stopping = False
        self._jobs = jobs
        self._journal = journal
        self._listeners = listeners

    def stop(self) -> None:
        self.is_stopping = True

    def plan(self, job: Job, due_us: int | None) -> None:
        """Let `due_us` be the next start, or a start after a crash's rest. None: there is none."""
        if job.task is not None:
            self._journal.touch(job)
            due_us = self.floors.not_before(job, due_us)
        job.due_us = due_us
        if self.is_stopping:  # a start that became due now would be missed: the next owner of the job plans it
            self.queue.disarm(job)
            return
        if due_us is None or self.queue.state is LifecycleState.STOPPED:
            return
        at = self.timeline.monotonic(due_us, steady=job.planner.steady)
        if not self.queue.rearm(job, at):
            self.queue.arm(job, at)

    def plan_first(self, job: Job, due_us: int) -> None:
        """Plan a new job. The journal need not note it."""
        job.due_us = due_us
        timeline = self.timeline
        self.queue.arm(job, due_us * 1e-6 - (timeline.steady_offset if job.planner.steady else timeline.offset))

    def plan_all_first(self, jobs: Sequence[Job], dues: Sequence[int | None]) -> None:
        """Plan new jobs. None: no regular start. Raises LifecycleError after `stop`."""
        timeline, planned, at = self.timeline, [], []
        for job, due_us in zip(jobs, dues, strict=True):
            if due_us is not None:
                job.due_us = due_us
                planned.append(job)
                at.append(due_us * 1e-6 - (timeline.steady_offset if job.planner.steady else timeline.offset))
        if planned:
            self.queue.arm_all(planned, at)
        if self.queue.state is LifecycleState.STOPPED:
            msg = "the scheduler stopped while these jobs were planned"
            raise LifecycleError(msg)

    def set_next_start(self, job: Job, at_us: int) -> None:
        """Let `at_us`, in UTC microseconds, replace the next regular start and any retry."""
        if job.is_removed:
            return
        steady = job.planner.steady
        shift = self.timeline.shift(steady=job.planner.steady)
        now_us = self.timeline.us(self.monotonic(), steady=steady)
        if at_us - shift <= now_us and has_just_started(job, now_us + shift):
            at_us = beside_ticks(job, now_us + shift, self.timeline)
        self.left_out.settle_now(job)
        job.dated_us = max(now_us, at_us - shift)
        job.is_due_by_hand = True
        self.floors.forgive(job)
        self.parking.cancel_retry(job)
        self.try_owed(job)
        if job.stood is not None:
            job.stood = starting_at(job.stood, at_us, job.schedule_text)
        if not job.is_paused:
            self.plan(job, job.dated_us)
        else:
            self.left_out.begin(job, job.dated_us)
            if job.task is not None:
                self._journal.touch(job)
        self._listeners.tell(JobChanged(job.id, job.state, "next start set"))

    def skip(self, job: Job) -> int | None:
        """Skip the next start and return it, in UTC microseconds; None: there was none. Raises what a user's schedule
        raises.
        """
        due_us = job.due_us
        if job.is_removed or due_us is None:
            return None
        back = job.planner.back(job.key, due_us) if job.is_due_by_hand else job.planner.following(due_us)
        self.floors.settle_ahead(job)
        self._instead(job, back, is_by_hand=back is not None)  # else a restart would find it too far ahead
        return self.timeline.reported(due_us, steady=job.planner.steady)

    def supersede(self, job: Job) -> None:
        """Return to the schedule's next start. Raises what a user's schedule raises."""
        if job.is_removed or not job.is_due_by_hand or job.due_us is None:
            return
        self._instead(job, self.from_now(job), is_by_hand=False)
        self._listeners.tell(JobChanged(job.id, job.state, "superseded"))

    def from_now(self, job: Job, now_us: int | None = None) -> int | None:
        """Return the regular start after now, or after `now_us` on the planner's base. Raises what a user's schedule
        raises.
        """
        now_us = self.timeline.us(self.monotonic(), steady=job.planner.steady) if now_us is None else now_us
        if not job.planner.waits_for_end:
            return job.planner.first(job.key, now_us)
        return None if job.runs else job.planner.following(now_us)  # while the job runs, the end of the run plans it

    def _instead(self, job: Job, due_us: int | None, *, is_by_hand: bool) -> None:
        self.queue.disarm(job)
        job.is_due_by_hand, job.dated_us = is_by_hand, due_us if is_by_hand else None
        self.plan(job, due_us)

    def keep(self, job: Job, at_us: int) -> int:
        """Keep a start that others planned, though the schedule has none then.

        A tick soon after it is taken instead, so that intervals keep their lengths. Return the start. Instants are in
        UTC microseconds. Raises what a user's schedule raises.
        """
        planner, shift = job.planner, self.timeline.shift(steady=job.planner.steady)
        due_us = at_us - shift
        slot = planner.slot(job.key, due_us)
        is_slot = slot is not None and (slot == due_us or slot - due_us < (planner.interval or 0) // 2)
        due_us = slot if slot is not None and is_slot else due_us
        self._instead(job, due_us, is_by_hand=not is_slot)
        return due_us + shift

    def replan(self, job: Job, first: FirstStart) -> None:
        """Give the job a new schedule. A parked job comes alive; a paused one stays paused."""
        job.stood = None
        self.floors.settle(job)
        self.left_out.settle_now(job)
        job.schedule, job.planner = first.schedule, first.planner
        self.queue.disarm(job)
        job.due_us = None
        job.dated_us = first.due_us if first.is_dated else None
        job.is_due_by_hand = False
        if job.is_parked:
            job.is_parked = False
            job.settle_pause()
            job.settle_state()
        if job.is_paused:
            self.left_out.begin(job, first.due_us)
            return
        due_us = first.due_us
        if due_us is None and first.planner.waits_for_end and not job.runs:  # else the end of the run plans it
            due_us = after_last_run(job, self.timeline.us(self.monotonic(), steady=True), self.timeline.shift_us)
        self.plan(job, due_us)

    def after_end(self, job: Job) -> None:
        if job.is_removed or self.is_stopping:
            if job.is_removed:
                job.leave()
            return
        if job.sparse is None and not job.planner.waits_for_end:
            if job.due_us is None and not job.runs:
                self._retire(job)
            return
        if job.is_due_by_hand:
            self._plan_by_hand(job)
        elif job.planner.waits_for_end and not job.is_paused and not job.runs and job.again is None:
            now_us = self.timeline.us(self.monotonic(), steady=True)
            self.plan(job, job.planner.following(now_us))
        job.settle_state()
        self.retire_if_done(job)

    def must_wait(self, job: Job) -> bool:
        """Return whether a start set by hand must wait for a run's end, when `after_end` plans it."""
        if job.runs and job.policy.overlap in {Overlap.SKIP, Overlap.QUEUE}:
            return True
        job.is_due_by_hand = False
        return False

    def retire_if_done(self, job: Job) -> None:
        if job.due_us is not None or job.runs or job.backlog or job.again is not None or job.is_removed:
            return
        if job.owed is not None or job.is_paused or job.planner.waits_for_end:
            return
        self._retire(job)

    def _retire(self, job: Job) -> None:
        """Take out a finished job. History stays; the row goes, unless another job has its id."""
        self._jobs.discard(job)
        job.leave()
        if job.task is not None and self._jobs.find(job.id) is None:
            self._journal.delete_row(job, is_finished=True)
        logger.info("job %r has finished: its schedule has no further start", job.id)
        if self._listeners.anybody:
            self._listeners.tell(JobFinished(job.id))

    def _plan_by_hand(self, job: Job) -> None:
        if not job.runs and not job.is_paused and not job.is_waiting and job.due_us is not None:
            self.plan(job, self.timeline.us(self.monotonic(), steady=job.planner.steady))

    # -- owed ticks ----------------------------------------------------------------------------------------------------

    def try_owed(self, job: Job) -> None:
        if job.owed is not None:
            self.arm_owed(job, self.floors.end(job))

    def arm_owed(self, job: Job, at: float) -> None:
        """Start owed ticks at `at` (monotonic seconds), or later when there is room."""
        owed = job.owed
        if owed is None:
            return
        due = max(at, self.monotonic())
        with suppress(LifecycleError):  # the queue has stopped: the next scheduler finds the ticks owed
            if not self.queue.rearm(owed, due):
                self.queue.arm(owed, due)

    def look_at_owed(self, job: Job) -> bool:
        """Give up owed ticks if delivery is now at most once. Return whether there were any.

        A tick that never began stays owed.
        """
        if job.owed is None or is_owed_by(job):
            return False
        never_began = [tick for tick in job.owed.ticks if not tick.attempt]
        is_some_given_up = len(never_began) < len(job.owed.ticks)
        self.give_up_owed(job, AT_MOST_ONCE, but=never_began)
        return is_some_given_up

    def give_up_owed(self, job: Job, why: str, *, but: Sequence[StoredTick] = ()) -> None:
        """Give up owed ticks that the user no longer wants, except `but`. Their records say so."""
        owed = job.owed
        if owed is None:
            return
        given_up = [tick for tick in owed.ticks if tick not in but]
        owed.ticks = [*but]
        if not but:
            self.queue.disarm(owed)
            job.owed = None
        for tick in given_up:
            logger.info("job %r: its tick %d is given up: %s", job.id, tick.due_us, why)
            self._journal.give_up(tick, why)


def is_owed_by(job: Job) -> bool:
    return job.policy.delivery is Delivery.AT_LEAST_ONCE and not job.is_removed
