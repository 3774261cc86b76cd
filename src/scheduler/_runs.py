"""Runs: whether a tick may start, what it counts for when it has ended, and what follows.

The path of a tick is

    start -> (pool: waits for room) -> run_began -> (the user's code and its subtasks) -> run_ended -> record -> follow

and with a store, between room and run_began: mark -> (the ledger commits) -> marks_committed.

All of it happens in the thread of the event loop, in callbacks of the timer queue and of the pool, so there are no
locks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from logging import INFO, WARNING, getLogger
from typing import TYPE_CHECKING, Final, Protocol

from schedule import Missed
from timerqueue import Clock, LifecycleError, Needs, Random, TaskPool, TimerQueue, Work

from ._after_run import Verdict, after_run
from ._call import NotLaunched
from ._deadline import Cause, Deadline, Timeout
from ._events import RunAbandoned, RunEnded, RunStarted
from ._job import Job
from ._launch import Launches
from ._listeners import Listeners
from ._marking import Marks
from ._misses import Misses
from ._next_attempt import NextAttempt
from ._outcome import SUCCEEDED, MissedReason, Outcome
from ._overlap import may_start
from ._policy import Delivery, Overlap
from ._run import MarkedRun, Run, SubtaskWork, state_of_runs
from ._state import STARTING, TRANSITIONS, JobState, Step, advance
from ._timeline import AT_ONCE, Timeline
from ._volley import in_places

if TYPE_CHECKING:
    from ._ledger import Ledger

logger = getLogger(__name__)

_START = TRANSITIONS[Step.START]
_BEGIN = TRANSITIONS[Step.BEGIN]
_END = TRANSITIONS[Step.END]
_SKIP = Missed.SKIP

OWED_AGAIN: Final = 1.0
"""Seconds for which another attempt that must not be lost waits for a thread of its job to end."""


class Plans(Protocol):
    """What the runs ask of those who plan the starts."""

    only_on_demand: bool

    def go_on(self, job: Job) -> None:
        """A run has ended, and the job may have something to do next."""

    def disable(self, job: Job, reason: str | None) -> None:
        """The job must not start by itself any more."""


class Runs:
    """Every run of a scheduler. `plans` is told what follows from their ends."""

    def __init__(
        self,
        plans: Plans,
        *,
        clock: Clock,
        pool: TaskPool,
        queue: TimerQueue,
        timeline: Timeline,
        listeners: Listeners,
        random: Random,
        max_subtasks: int,
        kill_after: float,
    ) -> None:
        self.plans = plans
        self.pool = pool
        self.queue = queue
        self.timeline = timeline
        self.listeners = listeners
        self.random = random
        self.max_subtasks = max_subtasks
        self.kill_after = kill_after
        self.monotonic = clock.monotonic
        self.active: dict[Run, None] = {}
        """Every run that has not ended, oldest first, those that wait for room included."""
        self.is_stopping = False
        self.when_idle: Callable[[], None] | None = None
        self.launches = Launches(queue, pool.submit, listeners)
        self.has_priorities = False
        self.marks = Marks(pool, timeline, partial(queue.push, AT_ONCE))
        self.misses = Misses(self.marks, timeline, listeners)
        self._last_now_us = 0
        self._held: list[Run] | None = None
        """While many jobs start at the same moment: their runs, which begin in order of priority."""

    def uncounted(self) -> list[Run]:
        """What runs and will be counted when it has ended. Any thread."""
        return [run for run in list(self.active) if not run.is_counted and run.started is not None]

    @property
    def ledger(self) -> Ledger | None:
        """What remembers the runs of stored jobs, if anything does."""
        return self.marks.ledger

    def hold(self) -> None:
        """Collect what starts until `let_go`."""
        self._held = []

    def let_go(self) -> None:
        """Let what was collected begin, best first."""
        held, self._held = self._held, None
        if held and self.has_priorities:
            held.sort(key=lambda run: (run.due, -run.priority))
            self.pool.submit(*held)
        elif held:
            self.pool.submit(*in_places(held))

    def start(self, job: Job, due: float, due_us: int, attempt: int = 1) -> None:
        """Run the tick `due_us` (as users see it; `due` in monotonic seconds), if the job's overlap rule lets it."""
        if self.is_stopping or job.is_removed:
            return
        if (job.runs or job.threads) and not may_start(self.misses, job, due, due_us, attempt):
            return
        self.start_surely(job, due, due_us, attempt)

    def start_surely(self, job: Job, due: float, due_us: int, attempt: int = 1) -> None:
        """The same for a job that may start, as is known already."""
        run = (Run if job.task is None else MarkedRun)(self, job, due, due_us, attempt)
        if job.runs:
            job.runs = (*job.runs, run)
        else:
            job.runs = (run,)
            job.state = _START[job.state]
        self.active[run] = None
        if self._held is None:
            self.pool.submit(run)
        else:
            self._held.append(run)

    def start_now(self, job: Job) -> None:
        """Run it once, outside its schedule. No two such ticks have the same due instant."""
        now = self.monotonic()
        self._last_now_us = max(self.timeline.us(now, steady=False), self._last_now_us + 1)
        self.start(job, now, self._last_now_us)

    def start_again(self, attempt: NextAttempt) -> None:
        job = attempt.job
        if self.is_stopping:  # it stays the job's retry, and is remembered as that
            return
        if attempt.is_owed and job.threads and not job.runs:
            self.queue.arm(attempt, self.monotonic() + OWED_AGAIN)
            return
        job.retry = None
        if attempt.is_owed and job.runs:
            job.backlog = deque([(attempt.due_us, attempt.attempt), *(job.backlog or ())])
            return
        self.start(job, attempt.due, attempt.due_us, attempt.attempt)
        if not job.runs:
            self.plans.go_on(job)

    def mark(self, run: MarkedRun) -> bool:
        return not self.is_stopping and self.marks.mark(run)

    def run_began(self, run: Run) -> bool:
        job = run.job
        if not self._is_in_time(run):
            return False
        if job.state is STARTING:
            job.state = _BEGIN[job.state]
        if job.task is not None or job.policy.overlap is Overlap.ALLOW:
            self._count_begin(run)
        if (timeout := job.policy.timeout) is not None:
            run.is_plain = False
            run.time_allowed = timeout
            run.deadline = Timeout(run, timeout)
            self.arm_deadline(run.deadline)
        if self.listeners.anybody:
            self.listeners.tell(RunStarted(job.id, run.due_us * 1e-6, run.started_at, run.attempt, run.lateness))
        return True

    def count_what_runs(self, job: Job) -> None:
        """The job is about to change: what has begun counts as what it is now."""
        for run in job.runs:
            if run.started is not None and not run.is_counted:
                self._count_begin(run)

    def _count_begin(self, run: Run) -> None:
        """What a store remembers has been counted as a run when it was marked."""
        run.is_counted = True
        run.job.counts().begin(run.started_at, run.lateness, 0 if isinstance(run, MarkedRun) else 1)
        run.job.lateness.add(run.lateness)

    def _is_in_time(self, run: Run) -> bool:
        """Whether it may begin now that it has room; if not, its tick is missed."""
        policy, lateness = run.job.policy, run.lateness
        reason = None
        if self.is_stopping and not (isinstance(run, MarkedRun) and run.is_marked):
            reason = MissedReason.STOPPED
        elif policy.missed is _SKIP and lateness > policy.grace and run.attempt == 1 and not self.plans.only_on_demand:
            reason = MissedReason.NO_ROOM
        if reason is not None:
            run.take_back_start()
            self.misses.miss_run(run, reason)
        return reason is None

    def run_terminates(self, run: Run) -> None:
        if run.job.state is JobState.RUNNING:
            run.job.state = advance(run.job.state, Step.TERMINATE)

    def not_launched(self, run: Run, work: Work, error: NotLaunched) -> None:
        job = run.job
        job.counts().launch_failures += 1
        if work is run and run.started is not None:
            if run.is_counted:
                job.counts().take_back(run.lateness, 0 if isinstance(run, MarkedRun) else 1)
                job.lateness.take_back(run.lateness)
                run.is_counted = False
            run.take_back_start()
            if run.deadline is not None:
                self.disarm_deadline(run.deadline)
            job.state = state_of_runs(job.runs)
        self.launches.failed(run, work, error)

    def run_ended(self, run: Run, now: float) -> None:
        job = run.job
        if self.launches.stretches:
            self.launches.run_ended(run)
        del self.active[run]
        if len(job.runs) == 1:
            job.runs = ()
            job.state = _END[job.state]
        else:
            job.runs = tuple(other for other in job.runs if other is not run)
            job.state = state_of_runs(job.runs)
        started = run.started
        if started is None:
            self.misses.was_dropped(run)
        elif run.is_plain and not run.is_counted and not self.listeners.anybody:
            lateness, offset = started - run.due, self.timeline.offset
            (job.tally or job.counts()).succeed(started + offset, now + offset, lateness, now - started)
            job.lateness.add(lateness)
        else:
            self._record(run, started, now)
        if job.backlog or job.due_us is None or job.planner.waits_for_end or job.is_paused or job.is_due_by_hand:
            self._take_from_backlog(job)
            self.plans.go_on(job)
        if self.when_idle is not None and not self.active:
            self.when_idle()

    def stop(self, *, only_waiting: bool) -> None:
        """Cancel what runs, or only what still waits for room. What waited for the end of a run is missed."""
        for job in {run.job: None for run in self.active}:
            if job.task is None:
                self.misses.drop_backlog(job, MissedReason.STOPPED)
        for run in list(self.active):
            if not only_waiting or (run.started is None and not self.marks.is_about_to_begin(run)):
                run.terminate(Cause.STOPPED)

    def cancel_retry(self, job: Job) -> None:
        """Forget the next attempt at a failed tick."""
        if job.retry is not None:
            self.queue.disarm(job.retry)
            job.retry = None

    def _record(self, run: Run, started: float, now: float) -> None:
        """Count a run that has ended, decide what follows, do it, and tell."""
        job = run.job
        duration = now - started
        ended = now + self.timeline.offset
        outcome = run.outcome()
        if not run.is_counted:
            self._count_begin(run)
        job.counts().end(outcome, ended, duration, run.error_text())
        retry_at: float | None = None
        if outcome is not SUCCEEDED:
            retry_in = self._follow(run, self._verdict(run, outcome, now), now)
            retry_at = None if retry_in is None else ended + retry_in
        if job.task is not None:
            self._remember_end(run, outcome, ended)
        if self.listeners.anybody:
            self._tell_end(run, outcome, ended=ended, duration=duration, retry_at=retry_at)
        run.error = None  # its traceback holds frames, and those hold the run

    def _remember_end(self, run: Run, outcome: Outcome, ended: float) -> None:
        if isinstance(run, MarkedRun) and self.ledger is not None:
            error = None if outcome is SUCCEEDED else run.error_text()
            self.ledger.ended(run, outcome, ended, error, run.traceback_text())

    def _verdict(self, run: Run, outcome: Outcome, now: float) -> Verdict:
        job = run.job
        level = INFO if outcome is Outcome.CANCELLED else WARNING
        logger.log(level, "a run of job %r %s: %s", job.id, outcome.value, run.error_text())
        next_start_in = job.due - now if job.is_waiting and not self.plans.only_on_demand else None
        failures, interval = job.counts().consecutive_failures, job.planner.interval
        seconds = None if interval is None else interval * 1e-6
        return after_run(outcome, failures, job.policy, next_start_in, self.random(), interval=seconds)

    def _follow(self, run: Run, verdict: Verdict, now: float) -> float | None:
        """Do what was decided. Seconds to the retry, if there is one."""
        job = run.job
        if verdict.disable is not None:
            self.plans.disable(job, verdict.disable)
        if job.is_due_by_hand:
            verdict = Verdict()  # that start stands in for a retry
        if run.cause is Cause.STOPPED and job.policy.delivery is Delivery.AT_LEAST_ONCE:
            verdict = Verdict(retry_in=0.0)  # by whoever starts next
        if verdict.retry_in is None or job.is_removed or job.is_paused or (self.is_stopping and job.task is None):
            return None
        if job.retry is not None:  # of a run beside this one
            return None
        is_owed = run.cause is Cause.STOPPED
        job.retry = NextAttempt(self, job, run.due_us, run.attempt + 1, is_owed=is_owed)
        with suppress(LifecycleError):  # the queue has stopped: it is only remembered
            self.queue.arm(job.retry, now + verdict.retry_in)
        return verdict.retry_in

    def _tell_end(self, run: Run, outcome: Outcome, *, ended: float, duration: float, retry_at: float | None) -> None:
        self.listeners.tell(
            RunEnded(
                run.job.id,
                run.due_us * 1e-6,
                run.started_at,
                ended,
                run.attempt,
                run.lateness,
                duration,
                outcome,
                None if outcome is SUCCEEDED else run.error_text(),
                run.traceback_text(),
                tuple(run.results),
                retry_at,
            )
        )

    def _take_from_backlog(self, job: Job) -> None:
        """Start the tick that waited for the end of a run."""
        if job.backlog and not job.runs and not job.is_removed and not self.is_stopping:
            due_us, attempt = job.backlog.popleft()
            self.start(job, due_us * 1e-6 - self.timeline.offset, due_us, attempt)

    # -- what a run asks for -------------------------------------------------------------------------------------------

    def submit_subtasks(self, works: list[SubtaskWork]) -> None:
        self.pool.submit(*in_places(works))

    def check_needs(self, needs: Needs) -> None:
        self.pool.check(needs)

    def arm_deadline(self, deadline: Deadline) -> None:
        with suppress(LifecycleError):  # the queue has stopped, and with it every wait
            self.queue.arm(deadline, self.monotonic() + deadline.seconds)

    def disarm_deadline(self, deadline: Deadline) -> None:
        self.queue.disarm(deadline)

    def cancel(self, work: Run | SubtaskWork) -> None:
        if work.volley is not None:
            volley = work.volley
            volley.take_out(work)
            self.pool.has_shrunk(volley)
            work.drop()
        elif self._held and work in self._held:
            self._held.remove(work)
            work.drop()
        elif self.marks.withdraw(work) or self.launches.withdraw(work):
            work.drop()
        else:
            self.pool.cancel(work)

    def kill(self, run: Run, works: Sequence[Work]) -> None:
        logger.warning("a run of job %r ignored its cancellation for %g s: it is given up", run.job.id, self.kill_after)
        for work in works:
            self.pool.kill(work)
        self.listeners.tell(RunAbandoned(run.job.id, run.due_us * 1e-6, self.kill_after))

    def utc(self, monotonic: float) -> float:
        return monotonic + self.timeline.offset

    def wall_us(self, monotonic: float) -> int:
        return self.timeline.us(monotonic, steady=False)
