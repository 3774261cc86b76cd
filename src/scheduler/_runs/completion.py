"""The end of a run that was more than a plain success: counted, followed up, told."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from logging import INFO, WARNING, getLogger
from typing import Protocol

from timerqueue import LifecycleError, Random, TimerQueue

from .._jobs import Job, JobAttempt, NextAttempt
from .._journal import Journal, ended_tick, result_text, stays_due
from .._plan import Decision, Timeline, after_run, instant_at, instant_of
from .._starts import MissedTicks, Pausing, answer, attempt_ends, dropped, is_owed_by
from .._values import SUCCEEDED, Cause, Listeners, MissedReason, Outcome, RunEnded, exc_info
from .marks import Marks
from .redelivery import Redelivery
from .run import MarkedRun, Run

logger = getLogger(__name__)


class EndedRunOwner(Protocol):
    queue: TimerQueue
    timeline: Timeline
    missed: MissedTicks
    pausing: Pausing
    marks: Marks
    owing: Redelivery
    listeners: Listeners
    is_stopping: bool
    is_on_demand: bool

    def start_again(self, job: Job, attempt: NextAttempt) -> None: ...


def count_begin(run: JobAttempt) -> None:
    """Count a begun run. A stored job's run was counted when marked."""
    run.is_counted = True
    run.counts_before = run.job.counts().begin(run.started_at, run.lateness, 0 if isinstance(run, MarkedRun) else 1)
    run.job.lateness.add(run.lateness)


def uncount_begin(run: JobAttempt) -> None:
    run.is_counted = False
    runs = 0 if isinstance(run, MarkedRun) else 1
    run.job.counts().take_back(run.started_at, run.lateness, run.counts_before, runs)
    run.job.lateness.take_back(run.lateness)


def count_what_runs(job: Job) -> None:
    """Count begun runs under the job's old definition."""
    for run in job.runs:
        if run.started is not None and not run.is_counted:
            count_begin(run)


def task_of(job: Job) -> str:
    return job.task or str(getattr(job.func, "__qualname__", type(job.func).__qualname__))


class Completion:
    def __init__(self, runs: EndedRunOwner, journal: Journal, random: Random) -> None:
        self._runs = runs
        self._queue = runs.queue
        self._timeline = runs.timeline
        self._journal = journal
        self._missed = runs.missed
        self._pausing = runs.pausing
        self._marks = runs.marks
        self._owing = runs.owing
        self._listeners = runs.listeners
        self._random = random

    def record(self, run: Run, started: float, now: float) -> None:
        job = run.job
        duration = now - started
        ended = now + self._timeline.offset
        outcome = run.outcome()
        if run.cause is Cause.LOST:
            self._listeners.tell(_end_of(run, outcome, ended=ended, duration=duration))
            run.error = None
            return
        is_asked = job.sparse is not None and bool(job.asked)
        if is_asked:
            attempt_ends(job, run.due_us)
        if not run.is_counted:
            count_begin(run)
        job.counts().end(outcome, ended, duration, run.error_text())
        job.lateness.end(outcome, duration)
        retry_at: float | None = None
        if outcome is not SUCCEEDED:
            retry_in = self._follow(run, self._verdict(run, outcome, now), now)
            retry_at = None if retry_in is None else ended + retry_in
        result = result_text(run.results) if run.results else None
        if run.results:
            job.counts().last_result = result
        if job.task is not None:
            self._remember_end(run, outcome, ended, result)
        if is_asked or self._listeners.anybody:
            end = _end_of(run, outcome, ended=ended, duration=duration, retry_at=retry_at)
            self._journal.pending.telling = None if job.task is None else job.id
            self._listeners.tell(end)
            self._journal.pending.telling = None
            if is_asked:
                answer(job, run.due_us, end)
        run.error = None  # its traceback holds frames, and those hold the run

    def _remember_end(self, run: Run, outcome: Outcome, ended: float, result: str | None) -> None:
        if isinstance(run, MarkedRun):
            error = None if outcome is SUCCEEDED else run.error_text()
            is_owed = self._is_owed(run)
            record = ended_tick(run, outcome, ended, error, run.traceback_text(), result, owed=is_owed)
            self._marks.keep_end(run, record)

    def _is_owed(self, run: Run) -> bool:
        return run.cause is Cause.STOPPED and is_owed_by(run.job)

    def _verdict(self, run: Run, outcome: Outcome, now: float) -> Decision:
        job = run.job
        level = INFO if outcome is Outcome.CANCELLED else WARNING
        if logger.isEnabledFor(level):
            logger.log(
                level,
                "a run of job %r %s: %s",
                job.id,
                outcome.value,
                run.error_text(),
                exc_info=exc_info(run.loggable()),
                extra={"job_id": job.id, "due": instant_of(run.due_us), "attempt": run.attempt, "task": task_of(job)},
            )
        next_start_in = job.due - now if job.is_waiting and not self._runs.is_on_demand else None
        failures, interval = job.counts().consecutive_failures, job.planner.interval
        seconds = None if interval is None else interval * 1e-6
        return after_run(outcome, failures, job.policy, next_start_in, self._random(), interval=seconds)

    def _follow(self, run: Run, verdict: Decision, now: float) -> float | None:
        """Return the seconds to the retry, or None."""
        job = run.job
        if verdict.disable is not None:
            logger.warning("job %r does not start until it is resumed: %s", job.id, verdict.disable)
            self._pausing.pause(job, verdict.disable)
        if job.is_due_by_hand:
            verdict = Decision()  # the start set by hand replaces a retry
        if job.task is not None and self._is_owed(run):
            return 0.0  # by the scheduler that starts next
        if verdict.retry_in is None or job.is_removed or job.is_paused or (self._runs.is_stopping and job.task is None):
            return None
        if job.again is not None:  # of another run of the job
            return None
        job.again = NextAttempt(partial(self._runs.start_again, job), run.due_us, run.attempt + 1)
        with suppress(LifecycleError):  # the queue has stopped: it is only remembered
            self._queue.arm(job.again, now + verdict.retry_in)
        return verdict.retry_in

    def answer_success(self, run: Run, now: float) -> None:
        assert run.started is not None
        ended = now + self._timeline.offset
        answer(run.job, run.due_us, _end_of(run, SUCCEEDED, ended=ended, duration=now - run.started))

    # -- runs that never began --------------------------------------------------------------------------------------

    def was_dropped(self, run: Run) -> None:
        reason = dropped(run)
        if reason is not None:
            self.miss_run(run, reason)

    def miss_run(self, run: Run, reason: MissedReason) -> None:
        """Account for a waiting run that will not begin; a retry is no missed tick."""
        if isinstance(run, MarkedRun) and (
            (reason is MissedReason.STOPPED and self._is_left_due(run)) or self._owing.keeps(run, reason)
        ):
            return
        if isinstance(run, MarkedRun) and run.is_held:
            self._journal.unmark(run, reason)
            if run.attempt == 1:
                self._missed.count(run.job, run.due_us, run.due_us, 1, reason, is_exact=True)
        elif run.attempt == 1:
            self._missed.miss(run.job, run.due_us, run.due_us, 1, reason, waited=run.waited)

    def _is_left_due(self, run: MarkedRun) -> bool:
        is_to_come = run.owes is None and stays_due(run.job, run.due_us, run.attempt, self._timeline)
        return is_to_come and self._marks.leave_due(run)


def _end_of(run: Run, outcome: Outcome, *, ended: float, duration: float, retry_at: float | None = None) -> RunEnded:
    return RunEnded(
        run.job.id,
        instant_of(run.due_us),
        instant_at(run.started_at),
        instant_at(ended),
        run.attempt,
        run.lateness,
        duration,
        outcome,
        None if outcome is SUCCEEDED else run.error_text(),
        run.traceback_text(),
        tuple(run.results),
        None if retry_at is None else instant_at(retry_at),
    )
