from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from typing import Any, Protocol, assert_never

from timerqueue import HELD, Bundle, Held, Needs, Work

from .._jobs import RUN, Job, JobAttempt, NotLaunched
from .._shape import NO_KWARGS, Waited, copied
from .._values import (
    LONGEST_ERROR,
    RUNNING,
    STARTING,
    SUCCEEDED,
    Cause,
    JobState,
    Listeners,
    MissedReason,
    Outcome,
    Sparse,
    TooManySubtasks,
    cut,
    error_text,
    trace_of,
)
from .deadline import Deadline, GiveUp
from .subtask import Subtask, subtasks_in


class RunPlace(Bundle):
    __slots__ = ()

    def keep_place(self, run: Run) -> None:
        raise NotImplementedError

    def take_out(self, run: Run) -> bool:
        raise NotImplementedError


class RunOwner(Protocol):
    max_subtasks: int
    kill_after: float
    is_stopping: bool
    listeners: Listeners
    note_waiting: Callable[[Run], object]
    """Note what a stored run finds that waits for room."""

    def mark(self, run: MarkedRun, now: float) -> bool:
        """Mark a run with room. True: it begins once the mark is durable. False: at once."""

    def is_in_doubt(self, run: JobAttempt) -> bool: ...

    def run_began(self, run: Run) -> bool: ...

    def run_terminates(self, run: Run) -> None: ...

    def run_ended(self, run: Run, now: float) -> None: ...

    def not_launched(self, run: Run, work: Work, error: NotLaunched) -> None: ...

    def submit_subtasks(self, run: Run, subtasks: list[Subtask], context: Context | None) -> None: ...

    def check_needs(self, needs: Needs) -> None: ...

    def arm_deadline(self, deadline: Deadline) -> None: ...

    def disarm_deadline(self, deadline: Deadline) -> None: ...

    def cancel(self, work: Work) -> None: ...

    def is_cancellation(self, error: BaseException) -> bool: ...

    def kill(self, run: Run, works: Sequence[Work]) -> None: ...

    def monotonic(self) -> float: ...

    def utc(self, monotonic: float) -> float: ...

    def wall_us(self, monotonic: float) -> int: ...


class Run(JobAttempt):
    """A run: its entry task, which calls the job's function, and its subtasks.

    `due_us`: UTC microseconds as users see them. `started`: monotonic seconds, None until it has room.
    """

    __slots__ = ("bundle", "owner", "subtasks")

    deadline: Sparse[Deadline | None] = Sparse(None)
    error: Sparse[BaseException | None] = Sparse(None)
    failed_in: Sparse[Subtask | None] = Sparse(None)
    """The subtask that raised the error. None: the task itself."""
    is_missed = Sparse(False)  # noqa: FBT003 - its usual value
    """The run had room but must not begin: its tick is missed."""
    _error_text: Sparse[str | None] = Sparse(None)
    _started_at: Sparse[float | None] = Sparse(None)
    _is_loggable = Sparse(False)  # noqa: FBT003 - as above
    _trace_text: Sparse[str | None] = Sparse(None)

    def __init__(  # noqa: PLR0917 - keywords would cost as for Job
        self, owner: RunOwner, job: Job, due: float, due_us: int, attempt: int, bundle: RunPlace | None = None
    ) -> None:
        # Written out, without super(), to save time: a scheduler makes many runs.
        policy = job.policy
        self.needs = policy.needs
        self.priority = policy.priority
        self.due = due
        self.context = None
        self.is_waiting = False
        self.worker = None
        self.owner = owner
        self.job = job
        self.due_us = due_us
        self.attempt = attempt
        self.bundle = bundle
        self.started: float | None = None
        self.sparse: dict[str, Any] | None = None
        """Values that few runs have. None: this run has none."""
        self.subtasks: Subtasks | None = None

    @property
    def open_tasks(self) -> int:
        """Tasks that have not ended. The entry task ends before subtasks begin."""
        if self.is_over:
            return 0
        return 1 if self.subtasks is None else sum(task.size for task in self.subtasks)

    @property
    def started_at(self) -> float:
        """UTC seconds when the run began; 0.0 if it has not begun."""
        if self._started_at is None:
            if self.started is None:
                return 0.0
            self._started_at = self.owner.utc(self.started)
        return self._started_at

    @property
    def deadline_us(self) -> int | None:
        """UTC microseconds when the timeout ends the run. None: no timeout, or not begun."""
        if not self.time_allowed or self.started is None:
            return None
        return self.owner.wall_us(self.started + self.time_allowed)

    def utc(self, monotonic: float) -> float:
        return self.owner.utc(monotonic)

    def open(self, now: float) -> Coroutine[Any, Any, Any] | Held | None:
        job, owner = self.job, self.owner
        self.started = now if now > self.due else self.due  # noqa: FURB136 - `max` costs more than the rest of the line
        if not job.is_plain or owner.is_stopping or owner.listeners.anybody:
            if not owner.run_began(self):
                self.started = None
                return None
        elif job.state is STARTING:
            job.state = RUNNING
        RUN.set(self)
        return job.call(job.func, job.args, job.kwargs)

    def close(self, value: Any, error: BaseException | None, now: float) -> None:
        if value is None and error is None and self.sparse is None:
            self.owner.run_ended(self, now)
        elif type(error) is NotLaunched and self.may_wait:
            self.owner.not_launched(self, self, error)
        else:
            self.task_ended(value, error, self.context)

    @property
    def may_wait(self) -> bool:
        return self.cause is None and not self.is_over

    def drop(self) -> None:
        self.finish()

    def task_ended(self, value: Any, error: BaseException | None, context: Context | None) -> None:
        if error is not None:
            self._fail(error)
        elif value is not None:
            self._take(value, context)
        if not self.subtasks:
            self.finish()

    def hold(self, task: Work) -> None:
        if self.subtasks is not None:  # else the run was given up
            self.subtasks.add(task)

    def let_go(self, task: Work) -> None:
        if self.subtasks is not None:
            self.subtasks.discard(task)

    def stand_for(self, due: float, due_us: int, attempt: int) -> None:
        if self.bundle is not None:
            self.bundle.keep_place(self)
        self.due, self.due_us, self.attempt = due, due_us, attempt

    def forget_deadline(self) -> None:
        deadline = self.deadline
        if deadline is not None:
            self.owner.disarm_deadline(deadline)
            self.deadline = None

    def take_back_start(self) -> None:
        self.started = self._started_at = None

    def terminate(self, cause: Cause) -> None:
        if self.cause is not None or self.is_over or self.is_missed:
            return
        self.cause = cause
        self.owner.run_terminates(self)
        for work in self._works():
            self.owner.cancel(work)
        if self.is_over:
            return
        self.forget_deadline()
        self.deadline = GiveUp(self, self.owner.kill_after)
        self.owner.arm_deadline(self.deadline)

    def give_up(self) -> None:
        if self.is_over:
            return
        self.owner.kill(self, self._works())
        self.subtasks = None
        self.finish()

    def outcome(self) -> Outcome:
        """Decide how the run ended. Nothing else decides it."""
        if self.cause is None:
            return SUCCEEDED if self.error is None else Outcome.FAILED
        match self.cause:
            case Cause.TIMEOUT:
                return Outcome.TIMED_OUT
            case Cause.LEASE:
                return Outcome.FAILED
            case Cause.REMOVED | Cause.REPLACED | Cause.PAUSED | Cause.STOPPED | Cause.LOST:
                return Outcome.CANCELLED
            case _ as never:
                assert_never(never)

    def error_text(self) -> str | None:
        if self.cause is Cause.TIMEOUT:
            return f"took longer than its timeout of {self.time_allowed:g} s"
        if self.cause is Cause.LEASE:
            return "this node has lost touch with the store, and may no longer use units of the fleet's limits"
        if self.cause is not None:
            return f"cancelled: {self.cause.value}"
        if self.error is not None and self._error_text is None:
            text = error_text(self.error)
            self._error_text = text if self.failed_in is None else cut(f"{self.failed_in.text}: {text}", LONGEST_ERROR)
        return self._error_text

    def traceback_text(self) -> str | None:
        if self.error is not None and self._trace_text is None:
            self._trace_text, self._is_loggable = trace_of(self.error)
        return self._trace_text

    def loggable(self) -> BaseException | None:
        """Return the error, unless formatting it would break the log."""
        return self.error if self.cause is None and self.traceback_text() and self._is_loggable else None

    def all_needs(self) -> list[Needs]:
        return [work.needs for work in self.subtasks or (self,)]

    def _works(self) -> list[Work]:
        return [self, *(self.subtasks or ())]

    def _fail(self, error: BaseException) -> None:
        if self.cause is None and self.owner.is_cancellation(error):
            self.cause = Cause.STOPPED  # not by us: the scheduler itself is being cancelled from outside
        if self.error is None:
            self.error = error

    def _take(self, value: Any, context: Context | None) -> None:
        try:
            subtasks = subtasks_in(value)
            if subtasks is None:
                self.results = self.results or []
                self.results.append(value)
            elif self.cause is None and not self.is_over:
                self._start_subtasks(subtasks, context)
        except BaseException as exc:  # noqa: BLE001 - bad subtasks are the run's failure, whatever is wrong with them
            self._fail(exc)

    def _start_subtasks(self, subtasks: list[Subtask], context: Context | None) -> None:
        if self.subtasks is None:
            self.subtasks = Subtasks()
        self.subtasks.so_far += len(subtasks)
        if self.subtasks.so_far > self.owner.max_subtasks:
            msg = (
                f"job {self.job.id!r} asked for more than {self.owner.max_subtasks} subtasks in one run: does it recurse "  # noqa: E501
                f"without end? If not, raise Scheduler(max_subtasks=...)"
            )
            raise TooManySubtasks(msg)
        for subtask in subtasks:
            if subtask.needs:
                self.owner.check_needs(subtask.needs)
        self.owner.submit_subtasks(self, subtasks, context)

    def finish(self) -> None:
        if self.is_over:
            return
        self.forget_deadline()
        self.owner.run_ended(self, self.owner.monotonic())


class MarkedRun(Run):
    """A run of a stored job: it begins once its mark is durable.

    `is_held`: the run waits for its mark. `is_sent`: the mark may be durable, so no newer tick replaces the run's tick.
    `is_marked`: the mark is durable.
    """

    __slots__ = ("dropped_for", "fence_number", "goes_without", "is_held", "is_marked", "is_sent", "waited")

    def __init__(self, owner: RunOwner, job: Job, due: float, due_us: int, attempt: int) -> None:
        super().__init__(owner, job, due, due_us, attempt)
        self.fence_number = 0
        self.is_held = self.is_sent = self.is_marked = self.goes_without = False
        self.dropped_for = self.waited = None

    def keep_note(self, waited: Waited | None) -> None:
        self.waited = waited

    def note_anew(self) -> None:
        self.waited = None
        self.owner.note_waiting(self)

    @property
    def is_a_run(self) -> bool:
        return self.is_held or self.is_counted

    @property
    def fence(self) -> int:
        return self.fence_number

    def wait_for_mark(self, fence: int) -> None:
        self.fence_number = fence
        self.is_held = True
        self.is_sent = False

    def mark_is_sent(self) -> None:
        self.is_sent = True

    def mark_is_durable(self) -> None:
        self.is_marked = True

    def mark_is_refused(self, reason: MissedReason) -> None:
        self.dropped_for = reason
        self.owner.cancel(self)

    def open(self, now: float) -> Coroutine[Any, Any, Any] | Held | None:
        job = self.job
        has_mark = self.is_marked or self.goes_without
        if (not has_mark and self.owner.mark(self, now)) or self.owner.is_in_doubt(self):
            return HELD
        self.started = max(now, self.due)
        if not self.owner.run_began(self):
            self.started = None
            return None
        RUN.set(self)
        # Copies: a task that changes its arguments must not change the stored ones, nor those of the next run.
        return job.call(job.func, copied(job.args) if job.args else (), copied(job.kwargs) if job.kwargs else NO_KWARGS)


def state_of_runs(runs: tuple[JobAttempt, ...]) -> JobState:
    begun = [run for run in runs if run.started is not None]
    if not begun:
        return JobState.STARTING
    return JobState.RUNNING if any(run.cause is None for run in begun) else JobState.TERMINATING


class Subtasks(set[Work]):
    """Subtasks that have not ended, perhaps bundled. `so_far`: how many the run has asked for."""

    __slots__ = ("so_far",)

    def __init__(self) -> None:
        self.so_far = 0
