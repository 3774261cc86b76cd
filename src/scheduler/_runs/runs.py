"""Runs: whether a tick may start, and what follows its end.

The path of a tick, all on the event loop's thread, so without locks:

    start -> (pool: waits for room) -> run_began -> (the user's code and its subtasks) -> run_ended -> Completion.record

With a store, between room and run_began: mark -> (the journal's next batch is committed) -> Marks.committed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from logging import getLogger

from schedule import Missed
from timerqueue import Random, TaskPool, Work

from .._jobs import AskedRun, Job, NextAttempt, NotLaunched, awaited
from .._journal import Journal
from .._plan import instant_at, instant_of
from .._starts import (
    MissedTicks,
    Pausing,
    Starts,
    answer_given_up,
    ask_for,
    beside_ticks,
    with_room,
)
from .._values import (
    BUCKET_OF,
    SCHEDULED,
    STARTING,
    SUCCEEDED,
    TRANSITIONS,
    Cause,
    LifeStep,
    Listeners,
    Overlap,
    RunStarted,
    RunTally,
)
from ..stores import StoredTick
from .bundles import RunBundle, SubtaskBundle, on_their_own, places_of
from .completion import Completion, count_begin, uncount_begin
from .deadline import Timeout
from .marks import Marks
from .overlap import has_place, may_start
from .redelivery import Redelivery
from .relaunch import Relaunches
from .run import MarkedRun, Run, state_of_runs
from .services import Services
from .subtask import Subtask

logger = getLogger(__name__)
_START = TRANSITIONS[LifeStep.START]
_BEGIN = TRANSITIONS[LifeStep.BEGIN]
_END = TRANSITIONS[LifeStep.END]
_SKIP = Missed.SKIP


class Runs(Services):
    def __init__(
        self,
        *,
        pool: TaskPool,
        starts: Starts,
        pausing: Pausing,
        missed: MissedTicks,
        journal: Journal,
        listeners: Listeners,
        random: Random,
        max_subtasks: int,
        kill_after: float,
    ) -> None:
        self.pool = pool
        self.starts = starts
        self.pausing = pausing
        self.missed = missed
        self.queue, self.timeline = queue, timeline = starts.queue, starts.timeline
        self.listeners = listeners
        self.random = random
        self.max_subtasks = max_subtasks
        self.kill_after = kill_after
        self.monotonic = starts.monotonic
        self.active: dict[Run | RunBundle, None] = {}
        """Runs that have not ended, waiting ones included, alone or in bundles."""
        self.is_stopping = False
        self.is_on_demand = False
        """Jobs run when told to, not by schedule."""
        self.note_waiting: Callable[[Run], object] = _unnoted
        self._when_idle: Callable[[], None] | None = None
        self.relaunches = Relaunches(queue, pool.submit, listeners)
        self.has_priorities = False
        self.marks = Marks(pool, timeline, journal, queue)
        self.is_in_doubt = self.marks.is_in_doubt
        self.owing = Redelivery(self, starts, journal)
        self.completion = Completion(self, journal, random)
        self._last_now_us = 0
        self._held: list[Run | RunBundle] | None = None
        """Runs of jobs that start together, to begin by priority."""
        self._bundle: RunBundle | None = None

    def all(self) -> list[Run]:
        """Return the runs that have not ended, in no order. Any thread."""
        current = self.pool.workers.current
        runs: dict[Run, None] = {}
        if isinstance(current, Run) and not current.is_over:
            runs[current] = None
        for each in [*self.active, *(self._held or ())]:
            runs.update(dict.fromkeys(each.left.copy()) if isinstance(each, RunBundle) else {each: None})
        return list(runs)

    def stop_starting(self) -> None:
        self.is_stopping = True
        self.starts.stop()

    def run_on_demand(self) -> None:
        self.is_on_demand = True

    def call_when_idle(self, func: Callable[[], None]) -> None:
        self._when_idle = func

    def enroll(self, job: Job) -> None:
        """Note a new or changed job. Any thread, while a job is added."""
        job.is_plain = job.task is None and job.policy.is_plain and job.call is awaited and not job.kwargs
        if job.policy.priority:
            self.has_priorities = True
        if job.runs:
            self.ask_anew(job)

    def start_at_once(self, job: Job) -> None:
        """Start a job added with start="now" for the first time."""
        if not self.is_on_demand and not self.starts.left_out.takes(job):
            self.start_now(job)

    def oldest_first(self) -> list[Run]:
        return sorted(self.all(), key=lambda run: run.due)

    def uncounted(self) -> list[Run]:
        """Return runs that go on and are counted at their end. Any thread."""
        return [run for run in self.all() if not run.is_counted and run.started is not None]

    def collect(self) -> None:
        self._held = []

    def release(self) -> None:
        held, self._held, self._bundle = self._held or [], None, None
        if self.has_priorities:  # perhaps only since a moment ago
            held = sorted(on_their_own(held), key=lambda run: (run.due, -run.priority))
        begin = [each for each in held if isinstance(each, Run) or each.stand()]
        self.active.update(dict.fromkeys(begin))
        if begin:
            self.pool.submit(*begin)

    def tell_waits(self, note: Callable[[Run], object]) -> None:
        """Call `note` for each run that waits for an earlier run of its job. Called once."""
        self.note_waiting = note

    def start(self, job: Job, due: float, due_us: int, attempt: int = 1) -> None:
        """Run tick `due_us` (as users see it; `due`: monotonic seconds), if the overlap rule allows."""
        if self.is_stopping or job.is_removed:
            return
        if (job.runs or job.threads) and not may_start(self.missed, job, due, due_us, attempt):
            answer_given_up(job)
            return
        self.start_unchecked(job, due, due_us, attempt)

    def start_unchecked(
        self, job: Job, due: float, due_us: int, attempt: int = 1, owes: StoredTick | None = None
    ) -> None:
        """Run a tick of a job that may start. `owes`: the record of an owed attempt."""
        run = (Run if job.task is None else MarkedRun)(self, job, due, due_us, attempt)
        if owes is not None and isinstance(run, MarkedRun):
            run.owes = owes
        if job.runs:
            job.runs = (*job.runs, run)
        else:
            job.runs = (run,)
            job.state = _START[job.state]
        if self._held is None:
            self.active[run] = None
            self.pool.submit(run)
        elif run.needs or job.task is not None or self.has_priorities:
            self._bundle = None
            self._held.append(run)
        else:
            self._take_in(self._held, due).put(run)

    def ask_anew(self, job: Job) -> None:
        """Give runs that wait for room the job's present needs and priority."""
        needs, priority = job.policy.needs, job.policy.priority
        for run in job.runs:
            if run.started is not None or (run.needs == needs and run.priority == priority):
                continue
            if self._held and run in self._held:
                run.ask_as_job()
            elif isinstance(run, Run) and (bundle := run.bundle) is not None and not run.is_missed:
                run.ask_as_job()
                self.active[run] = None  # before it leaves the bundle: `active` must not become empty
                self.pool.submit(run)
                bundle.take_out(run)
                self.pool.has_shrunk(bundle)
            else:
                self.pool.ask_anew(run, needs, priority)

    def bundle_from(self, due: float) -> RunBundle | None:
        return None if self._held is None or self.has_priorities else self._take_in(self._held, due)

    def _take_in(self, held: list[Run | RunBundle], due: float) -> RunBundle:
        if self._bundle is None:
            self._bundle = RunBundle(self, 0, due)
            held.append(self._bundle)
        return self._bundle

    def begun(self, run: Run) -> None:
        self.active[run] = None

    def emptied(self, bundle: RunBundle) -> None:
        self.active.pop(bundle, None)  # else it has not been submitted yet
        self._look_if_idle()

    def start_now(self, job: Job, asked: AskedRun | None = None) -> None:
        """Run the job at an instant of its own; if `asked`, no slot has it either."""
        now = self.monotonic()
        us = max(self.timeline.us(now, steady=False), self._last_now_us + 1)
        self._last_now_us = us if asked is None else beside_ticks(job, us, self.timeline)
        if asked is not None:
            ask_for(job, asked, self._last_now_us)
        if self.is_stopping and not job.is_removed:  # asked for just before the stop
            self.missed.leave(job, self._last_now_us)
        self.start(job, now, self._last_now_us)

    def start_again(self, job: Job, attempt: NextAttempt) -> None:
        if job.again is not attempt or job.is_paused or self.is_stopping:  # taken back in this batch, or remembered
            return
        job.again = None
        self.start(job, attempt.due, attempt.due_us, attempt.attempt)
        if not job.runs:
            self.starts.after_end(job)
        answer_given_up(job)

    def mark(self, run: MarkedRun, now: float) -> bool:
        if self.is_stopping or self._is_too_late(run, now - run.due):
            return False
        return self.marks.mark(run)

    def run_began(self, run: Run) -> bool:
        job = run.job
        if not self._is_in_time(run):
            return False
        if job.state is STARTING:
            job.state = _BEGIN[job.state]
        if job.task is not None or job.policy.overlap is Overlap.ALLOW:
            count_begin(run)
        if (timeout := job.policy.timeout) is not None:
            run.time_allowed = timeout
            run.deadline = Timeout(run, timeout)
            self.arm_deadline(run.deadline)
        if self.listeners.anybody:
            started = instant_at(run.started_at)
            self.listeners.tell(RunStarted(job.id, instant_of(run.due_us), started, run.attempt, run.lateness))
        return True

    def _is_in_time(self, run: Run) -> bool:
        is_too_late = self._is_too_late(run, run.lateness)
        reason = with_room(run, is_stopping=self.is_stopping, is_too_late=is_too_late)
        if reason is not None:
            run.take_back_start()
            run.is_missed = True
            self.completion.miss_run(run, reason)
        return reason is None

    def _is_too_late(self, run: Run, lateness: float) -> bool:
        policy, is_first = run.job.policy, run.attempt == 1 and not self.is_on_demand
        return is_first and policy.missed is _SKIP and lateness > policy.grace

    def not_launched(self, run: Run, work: Work, error: NotLaunched) -> None:
        job = run.job
        job.counts().launch_failures += 1
        if work is run and run.started is not None:
            if run.is_counted:
                uncount_begin(run)
            run.take_back_start()
            run.forget_deadline()
            job.state = state_of_runs(job.runs)
        self.relaunches.failed(run, work, error)

    def run_succeeded(self, run: Run, now: float) -> None:
        job = run.job
        started: float = run.started  # type: ignore[assignment] # it has begun
        if len(job.runs) != 1 or self.listeners.anybody or not job.is_plain:
            self._work_off(run, now)
            return
        job.runs = ()
        job.state = SCHEDULED
        offset, lateness, duration, tally = self.timeline.offset, started - run.due, now - started, job.tally
        if tally is None:
            job.tally = started + offset, now + offset, lateness, duration
        else:
            own = tally if type(tally) is RunTally else job.counts()
            own.succeed(started + offset, now + offset, lateness, duration)
        counts = job.lateness
        try:
            counts.counts[BUCKET_OF[int(lateness * 250_000)]] += 1  # as KindCounts.add does
        except IndexError:
            counts.add(lateness)
        try:
            counts.durations[BUCKET_OF[int(duration * 250_000)]] += 1  # as KindCounts.end does
        except IndexError:
            counts.end(SUCCEEDED, duration)
        if job.sparse is not None or job.due_us is None or job.planner.waits_for_end:
            self._follow_end(job, run, now)

    def run_ended(self, run: Run, now: float) -> None:
        self.active.pop(run, None)
        if run.started is not None and run.sparse is None and not self.relaunches.waiting:
            self.run_succeeded(run, now)
        else:
            self._work_off(run, now)
        self._look_if_idle()

    def _work_off(self, run: Run, now: float) -> None:
        job = run.job
        if len(job.runs) == 1:
            job.runs = ()
            job.state = _END[job.state]
        else:
            job.runs = tuple(other for other in job.runs if other is not run)
            job.state = state_of_runs(job.runs)
        if self.relaunches.waiting:
            self.relaunches.run_ended(run)
        if run.started is None:
            self.completion.was_dropped(run)
        else:
            self.completion.record(run, run.started, now)
        if job.sparse is not None or job.due_us is None or job.planner.waits_for_end:
            self._follow_end(job)

    def _follow_end(self, job: Job, succeeded: Run | None = None, now: float = 0.0) -> None:
        if job.sparse is not None:
            if succeeded is not None and job.asked:
                self.completion.answer_success(succeeded, now)
            if job.owed is not None:
                self.owing.start(job)
            self._take_from_backlog(job)
            answer_given_up(job)
        self.starts.after_end(job)

    def _look_if_idle(self) -> None:
        if self._when_idle is not None and not self.active:
            self._when_idle()

    def stop(self, *, only_waiting: bool) -> None:
        """Cancel all runs, or only waiting runs. Ticks in the backlog do not run."""
        for job in {run.job: None for run in self.all() if run.job.backlog}:
            self.missed.leave_backlog(job)
        for run in self.oldest_first():
            if not only_waiting or run.started is None:
                run.terminate(Cause.STOPPED)

    def _take_from_backlog(self, job: Job) -> None:
        if self.is_stopping:  # `stop` does not see a backlog without a run
            self.missed.leave_backlog(job)
        while job.backlog and has_place(job) and not job.is_removed and not self.is_stopping:
            due_us, attempt = job.backlog.popleft()
            job.backlog = job.backlog or None
            start = self.start if job.threads else self.start_unchecked
            start(job, due_us * 1e-6 - self.timeline.offset, due_us, attempt)

    # -- what a run asks for -------------------------------------------------------------------------------------------

    def submit_subtasks(self, run: Run, subtasks: list[Subtask], context: Context | None) -> None:
        places = places_of(run, subtasks, context)
        for place in places:
            run.hold(place)
        self.pool.submit(*places)

    def cancel(self, work: Work) -> None:
        if isinstance(work, SubtaskBundle):
            work.left.clear()  # the running subtask is cancelled with its worker
            self.pool.cancel(work)
        elif isinstance(work, Run) and (bundle := work.bundle) is not None and bundle.take_out(work):
            self.pool.has_shrunk(bundle)
            work.drop()
        elif self._held and work in self._held:
            self._held.remove(work)
            work.drop()
        elif self.marks.withdraw(work) or self.relaunches.withdraw(work):
            work.drop()
        else:
            self.pool.cancel(work)


def _unnoted(_run: Run) -> None: ...
