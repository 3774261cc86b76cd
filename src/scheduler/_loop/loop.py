"""The loop: what is due, and when each job starts next.

Everything here happens in the thread of the event loop, in callbacks of the timer queue, so there are no locks. A
turn is

    look at the clock -> fire what is due (`tick` for a job) -> let the runs that this brought begin

and `tick` leaves its job either with its next start in the heap, or with a run whose end will put it there
(`go_on`), or out of the scheduler (`retire_if_done`, `park`). What becomes of a started run is in _runs.py, and of
pauses in _pausing.py.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from logging import getLogger
from threading import get_ident
from typing import Final

from schedule import Missed
from timerqueue import Clock, LifecycleError, LifecycleState, Random, TaskPool, TimerQueue

from .._jobs.call import awaited
from .._jobs.job import Job
from .._jobs.job_list import JobList
from .._journal.journal import Journal
from .._journal.rows import starting_at
from .._plan.first_start import FirstStart
from .._plan.timeline import AT_ONCE, JUMP, Timeline
from .._runs.overlap import drop_waiting
from .._runs.owing import AT_MOST_ONCE, is_owed_by
from .._runs.runs import Runs
from .._starts.calendar_jobs import CalendarJobs
from .._starts.crash_floors import CrashFloors
from .._starts.pausing import NEVER_EARLY, Pausing
from .._starts.upcoming import after_last_run, beside_ticks, has_just_started
from .._values.events import ClockJumped, JobChanged, JobFinished
from .._values.listeners import Listeners
from .._values.outcome import MissedReason
from .._values.policy import Overlap
from .turn import Turns

logger = getLogger(__name__)

_SKIP: Final = Missed.SKIP


class Loop:
    """Starts jobs when they are due and plans what comes next."""

    def __init__(
        self,
        clock: Clock,
        pool: TaskPool,
        listeners: Listeners,
        random: Random,
        *,
        max_subtasks: int,
        kill_after: float,
        jobs: JobList,
    ) -> None:
        self.jobs = jobs
        self.clock = clock
        self.monotonic = clock.monotonic
        self.listeners = listeners
        self.queue = TimerQueue(clock=clock, fire=Turns(self).fire)
        self.timeline = Timeline(clock)
        self.journal = Journal(self.timeline, clock.monotonic)
        self.runs = Runs(
            self,
            clock=clock,
            pool=pool,
            queue=self.queue,
            timeline=self.timeline,
            journal=self.journal,
            listeners=listeners,
            random=random,
            max_subtasks=max_subtasks,
            kill_after=kill_after,
        )
        self.floors = CrashFloors(self.timeline, clock.monotonic, self.runs.misses.miss)
        self.pausing = Pausing(self, jobs)
        self.only_on_demand = False
        """Schedules are ignored: jobs run when told to."""
        self.calendar_jobs = CalendarJobs(self, self.pausing.park)
        self._now = clock.monotonic()
        self._thread: int | None = None

    def begin(self) -> None:
        """The loop is about to run: from now on the clock is followed."""
        self.adopt_thread()
        self._now = self.monotonic()
        self.look_at_clock(self._now)

    def adopt_thread(self) -> None:
        """From now on the loop belongs to this thread, and the others have to ask it."""
        self._thread = get_ident()

    def call(self, func: Callable[..., object], *args: object) -> None:
        """Call it on the loop: now if this is its thread or if it does not run, else as soon as possible."""
        if self._thread is not None and self._thread != get_ident():
            with suppress(LifecycleError):  # it has stopped: then do it here
                self.queue.push(AT_ONCE, func, *args)
                return
        func(*args)

    def call_soon(self, func: Callable[..., object], *args: object) -> None:
        """Call it on the loop, in its next turn; any thread. After the end of the loop it is not called."""
        with suppress(LifecycleError):
            self.queue.push(AT_ONCE, func, *args)

    def plan(self, job: Job, due_us: int | None) -> None:
        """Let `due_us` be the job's next start, or what comes once a crash is far enough back; None: there is none."""
        if job.task is not None:
            self.journal.touch(job)
            due_us = self.floors.not_before(job, due_us)
        job.due_us = due_us
        if due_us is None or self.queue.state is LifecycleState.STOPPED:
            return
        at = self.timeline.monotonic(due_us, steady=job.planner.steady)
        if not self.queue.rearm(job, at):
            self.queue.arm(job, at)

    def plan_first(self, job: Job, due_us: int) -> None:
        """The same for a job that has never been planned."""
        job.due_us = due_us
        timeline = self.timeline
        self.queue.arm(job, due_us * 1e-6 - (timeline.steady_offset if job.planner.steady else timeline.offset))

    def try_owed(self, job: Job) -> None:
        """Let what the job owes come as soon as its rest is over."""
        if job.owed is not None:
            self.runs.owing.arm(job, self.floors.end(job))

    def look_at_owed(self, job: Job) -> bool:
        """Give up what the job owes if its delivery has become at most once. Whether there was anything."""
        if job.owed is None or is_owed_by(job):
            return False
        self.runs.owing.give_up(job, AT_MOST_ONCE)
        return True

    def start_at_once(self, job: Job) -> None:
        """The first start of a job that was added with start="now"."""
        if not self.only_on_demand and not job.is_paused:
            self.runs.start_now(job)

    def enroll(self, job: Job) -> None:
        """Take notice of a new or changed job."""
        job.is_plain = job.task is None and job.policy.is_plain and job.call is awaited and not job.kwargs
        if job.policy.priority:
            self.runs.has_priorities = True
        if job.runs:
            self.runs.ask_anew(job)

    def tick(self, job: Job) -> None:  # noqa: C901 - a list of exceptions, one after another
        """The job is due: plan the start after this one, then start this one."""
        due, due_us, planner = job.due, job.due_us, job.planner
        if due_us is None or job.is_paused or self.only_on_demand or self.runs.is_stopping:
            return
        steady = planner.steady
        if not steady and self._is_early(job, due_us):
            return
        if job.special is not None or job.task is not None:
            self._regular_start_comes(job)
        by_hand = job.is_due_by_hand
        if by_hand and self._must_wait(job):
            return
        timeline = self.timeline
        try:
            following = None
            if not planner.waits_for_end:
                following = planner.back(job.id, due_us) if by_hand else planner.following(due_us)
            if following is not None:
                at = following * 1e-6 - (timeline.steady_offset if steady else timeline.offset)
                if at <= self._now and not by_hand:
                    self._make_up(job, due_us)
                    return
                self.queue.arm(job, at)
        except Exception as exc:  # noqa: BLE001 - a user's schedule may raise anything
            self.pausing.park(job, exc)
            following = None
        job.due_us = following
        if job.policy.missed is _SKIP and self._now - due > job.policy.grace:
            self._too_late(job, due_us)
            return
        self.runs.start(job, due, due_us + timeline.shift_us if steady else due_us)
        if following is None and not job.runs:
            self.go_on(job)

    def _too_late(self, job: Job, due_us: int) -> None:
        """The tick is missed. What of a stored job waits for room is older, and so too late as well."""
        if job.task is not None:
            drop_waiting(job)
        reported = self.timeline.reported(due_us, steady=job.planner.steady)
        self.runs.misses.miss(job, reported, reported, 1, MissedReason.LATE)
        self.go_on(job)

    def set_next_start(self, job: Job, at_us: int) -> None:
        """Let `at_us`, in UTC microseconds, take the place of its next regular start and of any retry."""
        if job.is_removed:
            return
        steady = job.planner.steady
        shift = self.timeline.shift_us if steady else 0
        now_us = self.timeline.us(self.monotonic(), steady=steady)
        if at_us - shift <= now_us and has_just_started(job, now_us + shift):
            at_us = beside_ticks(job, now_us + shift, self.timeline)
        job.dated_us = max(now_us, at_us - shift)
        job.is_due_by_hand = True
        self.floors.forgive(job)
        self.runs.cancel_retry(job)
        self.try_owed(job)
        if job.stood is not None:
            job.stood = starting_at(job.stood, at_us, job.schedule_text)
        if not job.is_paused:
            self.plan(job, job.dated_us)
        elif job.task is not None:
            self.journal.touch(job)
        self.listeners.tell(JobChanged(job.id, job.state, "next start set"))

    def replan(self, job: Job, first: FirstStart) -> None:
        """Give the job a new schedule. A parked job comes alive with it; a paused one stays paused."""
        job.stood = None
        self.floors.settle(job)
        job.schedule, job.planner = first.schedule, first.planner
        self.queue.disarm(job)
        job.due_us = None
        job.dated_us = first.due_us if first.is_dated else None
        job.is_due_by_hand = False
        if job.is_parked:
            job.is_parked = False
            job.settle_pause()
            self.pausing.settle_state(job)
        if job.is_paused:
            return
        due_us = first.due_us
        if due_us is None and first.planner.waits_for_end and not job.runs:  # else the end of the run will plan it
            due_us = after_last_run(job, self.timeline.us(self.monotonic(), steady=True), self.timeline.shift_us)
        self.plan(job, due_us)

    def disable(self, job: Job, reason: str | None) -> None:
        """Start it no more by itself. What runs may end."""
        self.pausing.pause(job, reason)

    def enable(self, job: Job) -> None:
        """End the job's own pause. Whoever does that has seen to what made it crash."""
        rested = job.floor is not None
        self.floors.forgive(job)
        self.pausing.resume(job)
        self.try_owed(job)
        if rested and not job.is_paused and not job.planner.waits_for_end:
            now_us = self.timeline.us(self.monotonic(), steady=job.planner.steady)
            self.plan(job, job.planner.first(job.id, now_us))

    def retire_if_done(self, job: Job) -> None:
        """A job without a further start leaves when nothing of it is left to do."""
        if job.due_us is not None or job.runs or job.backlog or job.retry is not None or job.is_removed:
            return
        if job.owed is not None or job.is_paused or job.planner.waits_for_end:
            return
        self._retire(job)

    def _retire(self, job: Job) -> None:
        """Take out a job whose schedule has ended. Its history stays; its row goes, if no other has its id by now."""
        self.jobs.discard(job)
        if job.task is not None and self.jobs.find(job.id) is None:
            self.journal.delete_row(job, is_finished=True)
        logger.info("job %r has finished: its schedule has no further start", job.id)
        if self.listeners.anybody:
            self.listeners.tell(JobFinished(job.id))

    def _is_early(self, job: Job, due_us: int) -> bool:
        """A calendar start that the clock has not reached, because it was set back or runs slow, is waited for
        again.
        """
        ahead = due_us - self.timeline.us(self._now, steady=False)
        if ahead <= NEVER_EARLY:
            return False
        self.plan(job, due_us)
        return True

    def _make_up(self, job: Job, due_us: int) -> None:
        """More than one start has passed: run what the job's policy says, and report the rest."""
        planner = job.planner
        now_us = self.timeline.us(self._now, steady=planner.steady)
        gap = planner.gap(due_us, now_us, job.policy)
        self.plan(job, gap.following)
        if gap.first_missed is not None and gap.last_missed is not None:
            first = self.timeline.reported(gap.first_missed, steady=planner.steady)
            last = self.timeline.reported(gap.last_missed, steady=planner.steady)
            self.runs.misses.miss(job, first, last, gap.missed, MissedReason.LATE, is_exact=gap.is_exact)
        for us in gap.run:
            due = self.timeline.monotonic(us, steady=planner.steady)
            self.runs.start(job, due, self.timeline.reported(us, steady=planner.steady))
        if gap.following is None:
            self.retire_if_done(job)

    def go_on(self, job: Job) -> None:
        """A run has ended: plan the start that is counted from that, and let go of a job that is done."""
        if job.is_removed or self.runs.is_stopping:
            return
        if job.special is None and not job.planner.waits_for_end:
            if job.due_us is None and not job.runs:
                self._retire(job)
            return
        if job.is_due_by_hand:
            self._plan_by_hand(job)
        elif job.planner.waits_for_end and not job.is_paused and not job.runs and job.retry is None:
            now_us = self.timeline.us(self.monotonic(), steady=True)
            self.plan(job, job.planner.following(now_us))
        self.pausing.settle_state(job)
        self.retire_if_done(job)

    def _must_wait(self, job: Job) -> bool:
        """Whether a start that was set by hand has to wait for the end of a run: `go_on` plans it then.

        If not, the job is back on its schedule.
        """
        if job.runs and job.policy.overlap in {Overlap.SKIP, Overlap.QUEUE}:
            return True
        job.is_due_by_hand = False
        return False

    def _plan_by_hand(self, job: Job) -> None:
        """The run is over that a start set by hand had to wait for: now it comes."""
        if not job.runs and not job.is_paused and not job.is_waiting and job.due_us is not None:
            self.plan(job, self.timeline.us(self.monotonic(), steady=job.planner.steady))

    def _regular_start_comes(self, job: Job) -> None:
        """A floor has been passed, what is owed goes first, and a retry has its place taken."""
        if job.floor is not None:
            self.floors.forgive(job)
        if job.owed is not None:
            self.runs.owing.start(job)
        if job.retry is None:
            return
        retry = job.policy.retry
        if retry is None or not retry.past_next_start:
            self.runs.cancel_retry(job)

    def begin_turn(self, now: float) -> None:
        """The timer queue has woken up, at `now` in monotonic seconds."""
        self._now = now
        self.look_at_clock(now)

    def look_at_clock(self, now: float) -> None:
        """Notice a step of the wall clock, or a suspend, and plan anew what depends on it."""
        jumped = self.timeline.look(now)
        if not jumped:
            return
        logger.info("the wall clock is %+.3f s off its course: calendar jobs are planned anew", jumped)
        if abs(self.timeline.step) > JUMP:
            logger.warning("the wall clock has jumped by %+.3f s", self.timeline.step)
            self.listeners.tell(ClockJumped(now + self.timeline.offset, self.timeline.step))
        self.pausing.look_at_clock()
        for job in self.floors.moved(round(jumped * 1e6), self.jobs.jobs()):
            self.journal.touch(job)
        self.calendar_jobs.replan(self.jobs.jobs(), jumped, now)
