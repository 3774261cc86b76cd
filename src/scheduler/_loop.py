"""The loop: what happens when a job is due, when its run has room, and when it has ended.

Everything here happens in the thread of the event loop, in callbacks of the timer queue and of the pool, so there are no
locks. The path of a tick is

    tick -> start -> (pool: waits for room) -> run_began -> (the user's code and its subtasks) -> run_ended

and each step leaves the job either with its next start in the heap, or with a run that will put it there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from logging import getLogger
from typing import Final, assert_never

from schedule import Missed
from timerqueue import Alarm, Clock, LifecycleError, LifecycleState, Needs, Random, TaskPool, TimerQueue, Work

from ._after_run import Verdict, after_run
from ._events import ClockJumped, JobChanged, JobFinished, JobParked, RunAbandoned, RunEnded, RunMissed, RunStarted
from ._first_start import FirstStart
from ._job import Job
from ._listeners import Listeners
from ._outcome import MissedReason, Outcome
from ._policy import Overlap
from ._run import Cause, Deadline, Run
from ._state import JobState, Step, TRANSITIONS, advance
from ._timeline import Timeline

logger = getLogger(__name__)

NEVER_EARLY: Final = 20
"""Microseconds by which a calendar start may seem to lie ahead when its timer fires: what floating point costs."""

AT_ONCE: Final = 0.0
"""A due time that is always past: ahead of everything else that is due."""

REPLAN_SLICE: Final = 200
"""Jobs re-planned in one go after the clock was set."""

_START = TRANSITIONS[Step.START]
_BEGIN = TRANSITIONS[Step.BEGIN]
_END = TRANSITIONS[Step.END]


class Retry(Alarm):
    """The next attempt at a failed tick."""

    __slots__ = ("attempt", "due_us", "job", "loop")

    def __init__(self, loop: Loop, job: Job, due_us: int, attempt: int) -> None:
        super().__init__()
        self.loop = loop
        self.job = job
        self.due_us = due_us
        self.attempt = attempt

    def fire(self) -> None:
        self.job.retry = None
        self.loop.start(self.job, self.due, self.due_us, self.attempt)
        self.loop.retire_if_done(self.job)


class Loop:
    """Starts jobs when they are due and decides what follows."""

    def __init__(
        self,
        clock: Clock,
        pool: TaskPool,
        listeners: Listeners,
        random: Random,
        *,
        max_subtasks: int,
        kill_after: float,
    ) -> None:
        self.clock = clock
        self.pool = pool
        self.listeners = listeners
        self.random = random
        self.forget: Callable[[Job], None] = _nobody
        """Called with each job whose schedule has ended."""
        self.max_subtasks = max_subtasks
        self.kill_after = kill_after
        self.queue = TimerQueue(clock=clock, fire=self._fire)
        self.timeline = Timeline(clock)
        self.monotonic = clock.monotonic
        self.active: dict[Run, None] = {}
        """Every run that has not ended, oldest first, those that wait for room included."""
        self.calendar_jobs: dict[Job, None] = {}
        """Jobs whose starts move when the wall clock is set."""
        self.is_stopping = False
        self.only_on_demand = False
        """Schedules are ignored: jobs run when told to."""
        self.when_idle: Callable[[], None] | None = None
        self.runs = 0
        self.missed = 0
        self._now = clock.monotonic()
        self._in_batch = False
        self._starting: list[Work] = []
        self._has_priorities = False

    def begin(self) -> None:
        """The loop is about to run: from now on the clock is followed."""
        self._now = self.monotonic()
        self.look_at_clock(self._now)

    def call(self, func: Callable[..., object], *args: object) -> None:
        """Call it on the loop: now if this is its thread or if it does not run, else as soon as possible."""
        queue = self.queue
        if queue.state is LifecycleState.RUNNING and not queue.is_loop_thread():
            with suppress(LifecycleError):  # it has stopped at this very moment: then do it here
                queue.push(AT_ONCE, func, *args)
                return
        func(*args)

    # -- planning ------------------------------------------------------------------------------------------------------

    def plan(self, job: Job, due_us: int | None) -> None:
        """Let `due_us` be the job's next start; None: there is none."""
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

    def enroll(self, job: Job) -> None:
        """Take notice of a new or changed job."""
        if job.policy.priority:
            self._has_priorities = True
        if not job.planner.steady:
            self.calendar_jobs[job] = None

    def dismiss(self, job: Job) -> None:
        """The job is gone: no further start, and no more runs."""
        self.queue.disarm(job)
        self.calendar_jobs.pop(job, None)
        self._cancel_retry(job)
        job.backlog = None
        job.due_us = None
        for run in job.runs:
            run.terminate(Cause.REMOVED)

    def tick(self, job: Job) -> None:
        """The job is due: plan the start after this one, then start this one."""
        due, due_us, planner = job.due, job.due_us, job.planner
        if self.is_stopping or self.only_on_demand or due_us is None:
            return
        if not planner.steady and self._is_early(job, due_us):
            return
        if job.retry is not None:
            self._regular_start_replaces_retry(job)
        try:
            following = None if planner.waits_for_end else planner.following(due_us)
            if following is not None:
                at = following * 1e-6 - (self.timeline.steady_offset if planner.steady else self.timeline.offset)
                if at <= self._now:
                    self._make_up(job, due_us)
                    return
                self.queue.arm(job, at)
        except Exception as exc:  # noqa: BLE001 - a user's schedule may raise anything
            self.park(job, exc)
            following = None
        job.due_us = following
        policy = job.policy
        if policy.missed is Missed.SKIP and self._now - due > policy.grace:
            reported = self.timeline.reported(due_us, steady=planner.steady)
            self.miss(job, reported, reported, 1, MissedReason.LATE)
            self.retire_if_done(job)
            return
        self.start(job, due, due_us + self.timeline.shift_us if planner.steady else due_us)
        if following is None and not job.runs:
            self.retire_if_done(job)

    def park(self, job: Job, error: Exception) -> None:
        """Its schedule cannot be asked: it starts no more until it is updated. No other job notices."""
        self.queue.disarm(job)
        job.due_us = None
        job.error = f"its schedule failed: {type(error).__name__}: {error}"
        job.is_paused = job.is_parked = True
        logger.error("job %r is parked: %s", job.id, job.error, exc_info=error)
        self.settle_state(job)
        self.listeners.tell(JobParked(job.id, job.error))

    def enable(self, job: Job) -> None:
        """Start it again, from its next slot on."""
        if not job.is_paused or job.is_removed:
            return
        job.is_paused = job.is_parked = False
        job.error = None
        job.counts().consecutive_failures = 0
        self.settle_state(job)
        logger.info("job %r is enabled", job.id)
        now_us = self.timeline.us(self.monotonic(), steady=job.planner.steady)
        try:
            following = job.planner.following(now_us) if job.planner.waits_for_end else job.planner.first(job.id, now_us)
            self.plan(job, following)
        except Exception as exc:  # noqa: BLE001 - a user's schedule may raise anything
            self.park(job, exc)
            return
        self.listeners.tell(JobChanged(job.id, job.state, "resumed"))
        self.retire_if_done(job)

    def replan(self, job: Job, first: FirstStart) -> None:
        """The job has a new schedule. A parked job comes alive with it; a paused one stays paused."""
        self.calendar_jobs.pop(job, None)
        if job.is_parked:
            job.is_paused = job.is_parked = False
            job.error = None
            self.settle_state(job)
        if job.is_paused:
            return
        if first.planner.waits_for_end:
            now_us = self.timeline.us(self.monotonic(), steady=True)
            self.plan(job, first.due_us or first.planner.following(now_us))
        else:
            self.plan(job, first.due_us)

    def settle_state(self, job: Job) -> None:
        """Without a run a job is SCHEDULED, or DISABLED if it is paused."""
        if job.runs:
            return
        if job.is_paused and job.state is JobState.SCHEDULED:
            job.state = advance(job.state, Step.DISABLE)
        elif not job.is_paused and job.state is JobState.DISABLED:
            job.state = advance(job.state, Step.ENABLE)

    def retire_if_done(self, job: Job) -> None:
        """A job without a further start leaves when nothing of it is left to do."""
        if job.due_us is not None or job.runs or job.backlog or job.retry is not None or job.is_removed:
            return
        if job.is_paused or job.planner.waits_for_end:
            return
        self.calendar_jobs.pop(job, None)
        self.forget(job)
        logger.info("job %r has finished: its schedule has no further start", job.id)
        if self.listeners.anybody:
            self.listeners.tell(JobFinished(job.id))

    def _is_early(self, job: Job, due_us: int) -> bool:
        """A calendar start that the clock has not reached, because it was set back or runs slow, is waited for again."""
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
            self.miss(job, first, last, gap.missed, MissedReason.LATE, is_exact=gap.is_exact)
        for us in gap.run:
            due = self.timeline.monotonic(us, steady=planner.steady)
            self.start(job, due, self.timeline.reported(us, steady=planner.steady))
        if gap.following is None:
            self.retire_if_done(job)

    # -- running -------------------------------------------------------------------------------------------------------

    def start(self, job: Job, due: float, due_us: int, attempt: int = 1) -> None:
        """Run the tick `due_us` (as users see it; `due` in monotonic seconds), if the job's overlap rule lets it."""
        if self.is_stopping or job.is_removed:
            return
        if (job.runs or job.threads) and not self._may_overlap(job, due, due_us, attempt):
            return
        if not job.runs:
            job.state = _START[job.state]
        run = Run(self, job, due, due_us, attempt)
        job.runs = (*job.runs, run)
        self.active[run] = None
        if self._in_batch:
            self._starting.append(run)
        else:
            self.pool.submit(run)

    def start_now(self, job: Job) -> None:
        """Run it once, outside its schedule."""
        now = self.monotonic()
        self.start(job, now, self.timeline.us(now, steady=False))

    def run_began(self, run: Run) -> bool:
        now = self.monotonic()
        job = run.job
        policy = job.policy
        lateness = now - run.due
        if policy.missed is Missed.SKIP and lateness > policy.grace and run.attempt == 1:
            self.miss(job, run.due_us, run.due_us, 1, MissedReason.NO_ROOM)
            return False
        run.started = now
        if job.state is JobState.STARTING:
            job.state = _BEGIN[job.state]
        self.runs += 1
        started = now + self.timeline.offset
        (job.tally or job.counts()).begin(started, lateness)
        job.lateness.add(lateness)
        if policy.timeout is not None:
            run.deadline = Deadline(run, policy.timeout)
            self.arm_deadline(run.deadline)
        if self.listeners.anybody:
            self.listeners.tell(RunStarted(job.id, run.due_us * 1e-6, started, run.attempt, lateness))
        return True

    def run_terminates(self, run: Run) -> None:
        if run.job.state is JobState.RUNNING:
            run.job.state = advance(run.job.state, Step.TERMINATE)

    def run_ended(self, run: Run) -> None:
        job = run.job
        del self.active[run]
        if len(job.runs) == 1:
            job.runs = ()
            job.state = _END[job.state]
        else:
            job.runs = tuple(other for other in job.runs if other is not run)
        if run.started is None:
            self._was_dropped(run)
        else:
            self._record(run, run.started)
        if job.backlog or job.planner.waits_for_end or job.is_paused or job.due_us is None:
            self._go_on(job)
        if self.when_idle is not None and not self.active:
            self.when_idle()

    def miss(
        self, job: Job, first_us: int, last_us: int, count: int, reason: MissedReason, *, is_exact: bool = True
    ) -> None:
        """Ticks have no run."""
        job.counts().missed += count
        self.missed += count
        logger.info("job %r missed %d start(s): %s", job.id, count, reason.value)
        if self.listeners.anybody:
            self.listeners.tell(RunMissed(job.id, first_us * 1e-6, last_us * 1e-6, count, reason, is_exact))

    def stop_runs(self, *, only_waiting: bool) -> None:
        """Cancel what runs, or only what still waits for room."""
        for run in list(self.active):
            if run.started is None or not only_waiting:
                run.terminate(Cause.STOPPED)

    def _may_overlap(self, job: Job, due: float, due_us: int, attempt: int) -> bool:
        """Whether a tick may run now although the job has a run; if not, it is queued or missed here."""
        overlap = job.policy.overlap
        if job.threads:
            job.threads = [thread for thread in job.threads if thread.is_running] or None
        if not job.runs and not job.threads:
            return True
        if overlap is Overlap.ALLOW and len(job.runs) < job.policy.max_running:
            return True
        waiting = next((run for run in job.runs if run.started is None), None)
        room = self._backlog_room(job)
        if waiting is not None and room == 0:
            # It has not begun: let it stand for the newer tick, in the place in the queue that it has already.
            self.miss(job, waiting.due_us, waiting.due_us, 1, MissedReason.NO_ROOM)
            waiting.due, waiting.due_us, waiting.attempt = due, due_us, attempt
            return False
        if not job.runs:
            self.miss(job, due_us, due_us, 1, MissedReason.OVERLAP)
            return False
        self._queue_or_miss(job, due_us, attempt, room)
        if overlap is Overlap.REPLACE:
            for run in job.runs:
                run.terminate(Cause.REPLACED)
        return False

    def _backlog_room(self, job: Job) -> int:
        """How many ticks of a job may wait for the end of its run."""
        if job.policy.missed is Missed.ALL:
            return job.policy.catch_up
        match job.policy.overlap:
            case Overlap.SKIP | Overlap.ALLOW:
                return 0
            case Overlap.QUEUE | Overlap.REPLACE:
                return 1
            case _ as never:
                assert_never(never)

    def _queue_or_miss(self, job: Job, due_us: int, attempt: int, room: int) -> None:
        if room == 0:
            self.miss(job, due_us, due_us, 1, MissedReason.OVERLAP)
            return
        if job.backlog is None:
            job.backlog = deque()
        if len(job.backlog) == room:
            oldest, _ = job.backlog.popleft()
            self.miss(job, oldest, oldest, 1, MissedReason.OVERLAP)
        job.backlog.append((due_us, attempt))

    def _was_dropped(self, run: Run) -> None:
        """It ended before it began."""
        if run.cause is Cause.STOPPED:
            self.miss(run.job, run.due_us, run.due_us, 1, MissedReason.STOPPED)
        elif run.cause is Cause.REPLACED:
            self.miss(run.job, run.due_us, run.due_us, 1, MissedReason.OVERLAP)

    def _record(self, run: Run, started: float) -> None:
        """Count a run that has ended, decide what follows, do it, and tell."""
        job = run.job
        now = self.monotonic()
        duration = now - started
        ended = now + self.timeline.offset
        outcome = run.outcome()
        (job.tally or job.counts()).end(outcome, ended, duration, None if outcome is Outcome.SUCCEEDED else run.error_text())
        retry_at: float | None = None
        if outcome is not Outcome.SUCCEEDED:
            retry_in = self._follow(run, self._verdict(run, outcome, now), now)
            retry_at = None if retry_in is None else ended + retry_in
        if self.listeners.anybody:
            self._tell_end(run, started, ended, outcome, retry_at)

    def _verdict(self, run: Run, outcome: Outcome, now: float) -> Verdict:
        job = run.job
        logger.log(*_report(outcome), job.id, outcome.value, run.error_text())
        next_start_in = job.due - now if job.is_waiting else None
        return after_run(outcome, job.counts().consecutive_failures, job.policy, next_start_in, self.random())

    def _follow(self, run: Run, verdict: Verdict, now: float) -> float | None:
        """Do what was decided. Seconds to the retry, if there is one."""
        job = run.job
        if verdict.disable is not None:
            self.disable(job, verdict.disable)
        if verdict.retry_in is None or self.is_stopping or job.is_removed or job.is_paused:
            return None
        self._cancel_retry(job)
        job.retry = Retry(self, job, run.due_us, run.attempt + 1)
        self.queue.arm(job.retry, now + verdict.retry_in)
        return verdict.retry_in

    def _tell_end(self, run: Run, started: float, ended: float, outcome: Outcome, retry_at: float | None) -> None:
        self.listeners.tell(
            RunEnded(
                run.job.id,
                run.due_us * 1e-6,
                started + self.timeline.offset,
                ended,
                run.attempt,
                started - run.due,
                outcome,
                None if outcome is Outcome.SUCCEEDED else run.error_text(),
                run.traceback_text(),
                run.results,
                retry_at,
            )
        )

    def disable(self, job: Job, reason: str | None) -> None:
        """Start it no more by itself. What runs may end."""
        self.queue.disarm(job)
        self._cancel_retry(job)
        job.backlog = None
        job.is_paused = True
        job.error = reason
        job.due_us = None
        self.settle_state(job)
        logger.info("job %r is disabled: %s", job.id, reason)
        self.listeners.tell(JobChanged(job.id, JobState.DISABLED, reason))

    def _go_on(self, job: Job) -> None:
        """After a run: what waited for its end, or the next start that is counted from it."""
        if job.is_removed or self.is_stopping:
            return
        if job.backlog and not job.runs:
            due_us, attempt = job.backlog.popleft()
            self.start(job, due_us * 1e-6 - self.timeline.offset, due_us, attempt)
            return
        if job.planner.waits_for_end and not job.is_paused and not job.runs and job.retry is None:
            now_us = self.timeline.us(self.monotonic(), steady=True)
            self.plan(job, job.planner.following(now_us))
        self.settle_state(job)
        self.retire_if_done(job)

    def _regular_start_replaces_retry(self, job: Job) -> None:
        retry = job.policy.retry
        if retry is None or not retry.past_next_start:
            self._cancel_retry(job)

    def _cancel_retry(self, job: Job) -> None:
        if job.retry is not None:
            self.queue.disarm(job.retry)
            job.retry = None

    # -- what runs ask for ---------------------------------------------------------------------------------------------

    def submit(self, work: Work) -> None:
        self.pool.submit(work)

    def check_needs(self, needs: Needs) -> None:
        self.pool.check(needs)

    def arm_deadline(self, deadline: Deadline) -> None:
        with suppress(LifecycleError):  # the queue has stopped, and with it every wait
            self.queue.arm(deadline, self.monotonic() + deadline.seconds)

    def disarm_deadline(self, deadline: Deadline) -> None:
        self.queue.disarm(deadline)

    def cancel(self, work: Work) -> None:
        if work in self._starting:
            self._starting.remove(work)
            work.drop()
        else:
            self.pool.cancel(work)

    def kill(self, run: Run, works: list[Work]) -> None:
        logger.warning("a run of job %r ignored its cancellation for %g s: it is given up", run.job.id, self.kill_after)
        for work in works:
            self.pool.kill(work)
        self.listeners.tell(RunAbandoned(run.job.id, run.due_us * 1e-6, self.kill_after))

    def wall_us(self, monotonic: float) -> int:
        return self.timeline.us(monotonic, steady=False)

    # -- the queue's turn ----------------------------------------------------------------------------------------------

    def _fire(self, batch: list[Alarm], now: float) -> None:
        """One turn: look at the clock, fire what is due, then start all that this brought, best first."""
        self._now = now
        self.look_at_clock(now)
        self._in_batch = True
        try:
            for alarm in batch:
                try:
                    if type(alarm) is Job:
                        self.tick(alarm)
                    else:
                        alarm.fire()
                except Exception:
                    logger.exception("a timer of the scheduler failed: %r", alarm)
        finally:
            self._in_batch = False
            self._submit_starting()

    def _submit_starting(self) -> None:
        starting, self._starting = self._starting, []
        if self._has_priorities:
            starting.sort(key=lambda work: (work.due, -work.priority))
        if starting:
            self.pool.submit(*starting)

    def look_at_clock(self, now: float) -> None:
        """Notice a step of the wall clock, or a suspend, and plan anew what depends on it."""
        jumped = self.timeline.look(now, self.clock.wall())
        if not jumped:
            return
        logger.warning("the wall clock has jumped by %+.3f s: calendar jobs are planned anew", jumped)
        self.listeners.tell(ClockJumped(now + self.timeline.offset, jumped))
        self._replan(list(self.calendar_jobs), jumped)

    def _replan(self, jobs: list[Job], jumped: float) -> None:
        """Plan calendar jobs after a jump, some at a time so that nothing else waits for it."""
        for job in jobs[:REPLAN_SLICE]:
            if job.due_us is not None and job in self.calendar_jobs:
                self._replan_one(job, jumped)
        if len(jobs) > REPLAN_SLICE:
            self.queue.push(self._now, self._replan, jobs[REPLAN_SLICE:], jumped)

    def _replan_one(self, job: Job, jumped: float) -> None:
        """Forward: a start that was jumped over is due now, like one after downtime. Back: from the new time on, but no fixed time twice."""
        assert job.due_us is not None
        if jumped > 0:
            self.plan(job, job.due_us)
            return
        now_us = self.timeline.us(self._now, steady=False)
        try:
            self.plan(job, job.planner.replanned(job.due_us, now_us))
        except Exception as exc:  # noqa: BLE001 - a user's schedule may raise anything
            self.park(job, exc)


def _report(outcome: Outcome) -> tuple[int, str]:
    level = 20 if outcome is Outcome.CANCELLED else 30
    return level, "a run of job %r %s: %s"


def _nobody(_job: Job) -> None:
    """Nobody has asked to be told."""
