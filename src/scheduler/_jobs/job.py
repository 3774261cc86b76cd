from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol, Unpack

from schedule import Schedule
from timerqueue import OUT, Alarm, Work

from .._plan import CrashFloor, Planner
from .._shape import JobInfo, JobSpec, SomeSchedule, Waited
from .._values import (
    GONE,
    SCHEDULED,
    TRANSITIONS,
    Cause,
    Delivery,
    JobState,
    JobStatistics,
    KindCounts,
    LifeStep,
    MissedReason,
    Pause,
    Policy,
    RunTally,
    Sparse,
    Success,
    at_rest,
    counted,
)
from ..stores import StoredState, StoredTick
from .asked import AskedRun
from .definition import Call, Definition, Lasting, UnfitRow
from .handle import Job as Handle, JobChanges
from .next_attempt import NextAttempt, Owed


class Control(Protocol):
    """Verbs that a handle calls. Any thread."""

    def tick(self, job: Job) -> None: ...
    def remove(self, job: Job) -> None: ...
    def pause(self, job: Job, reason: str | None, until: datetime | None) -> None: ...
    def resume(self, job: Job) -> None: ...
    def run_now(self, job: Job) -> AskedRun: ...
    def set_next_start(self, job: Job, at: datetime) -> None: ...
    def skip(self, job: Job) -> None: ...
    def supersede(self, job: Job) -> None: ...
    def update(self, job: Job, schedule: SomeSchedule | None, changes: Mapping[str, Any]) -> None: ...
    def spec(self, job: Job) -> JobSpec: ...
    def info(self, job: Job) -> JobInfo: ...
    def pauses(self, job: Job) -> tuple[Pause, ...]: ...
    def agent(self, job: Job) -> str | None: ...
    def why_with_nobody(self, job: Job) -> str | None: ...
    def next_start(self, job: Job) -> datetime | None: ...
    def next_starts(self, job: Job, count: int) -> list[datetime]: ...


class Job(Alarm, Handle):
    """An entry in the timer heap, and the users' handle.

    Attributes that few jobs have are made when needed (Sparse): 100,000 jobs must fit.
    """

    __slots__ = (
        "args",
        "audited",
        "call",
        "control",
        "dated_us",
        "due_us",
        "func",
        "id",
        "is_plain",
        "is_removed",
        "kwargs",
        "lateness",
        "name",
        "planner",
        "policy",
        "runs",
        "schedule",
        "schedule_text",
        "sparse",
        "state",
        "tags",
        "tally",
        "task",
    )

    id: str
    name: str | None
    tags: frozenset[str]
    schedule: Schedule
    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    state: JobState
    audited: float  # when the watchdog last checked the job, in UTC seconds; absent before

    asked: Sparse[tuple[AskedRun, ...]] = Sparse(())
    backlog: Sparse[deque[tuple[int, int]] | None] = Sparse(None)
    """(due in UTC microseconds, attempt) of ticks that wait for a run's end."""
    fault: Sparse[str | None] = Sparse(None)
    """Why the job does not start by itself, on any node."""
    floor: Sparse[CrashFloor | None] = Sparse(None)
    held_by: Sparse[Pause | None] = Sparse(None)
    left_out_us: Sparse[int | None] = Sparse(None)
    """On the planner's base: the first start that a pause leaves out."""
    is_due_by_hand = Sparse(False)  # noqa: FBT003 - its usual value
    is_elsewhere = Sparse(False)  # noqa: FBT003
    is_parked = Sparse(False)  # noqa: FBT003
    is_paused = Sparse(False)  # noqa: FBT003
    owed: Sparse[Owed | None] = Sparse(None)
    paused_by: Sparse[Pause | None] = Sparse(None)
    again: Sparse[NextAttempt | None] = Sparse(None)  # the retry of a failed tick
    stood: Sparse[StoredState | None] = Sparse(None)
    threads: Sparse[list[Lasting] | None] = Sparse(None)
    unfit: Sparse[UnfitRow | None] = Sparse(None)

    def __init__(  # noqa: PLR0917 - keywords would cost a fifth of adding a job
        self,
        control: Control,
        id: str,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        call: Call,
        schedule: Schedule,
        planner: Planner,
        policy: Policy,
        lateness: KindCounts,
        name: str | None,
        tags: frozenset[str],
    ) -> None:
        self.due = 0.0  # not through super(), because adding jobs must be fast
        self.slot = OUT
        self.control = control
        self.id = id
        self.func = func
        self.args = args
        self.kwargs = kwargs
        self.call = call
        self.schedule = schedule
        self.planner = planner
        self.policy = policy
        self.lateness = lateness
        self.name = name
        self.tags = tags
        self.task: str | None = None
        """None: the job is not stored."""
        self.schedule_text: str | None = None
        self.is_plain = False
        """Whether runs need no checks, and leave nothing to remember."""
        self.state = SCHEDULED
        self.due_us: int | None = None
        """The next regular start, on the planner's base."""
        self.dated_us: int | None = None
        """A start by hand, or the first: no regular start comes before it."""
        self.runs: tuple[JobAttempt, ...] = ()
        self.sparse: dict[str, Any] | None = None
        self.is_removed = False
        self.tally: RunTally | Success | None = None
        """A first success stands here itself: many jobs run once."""

    def __dir__(self) -> Iterable[str]:
        return dir(Handle)

    def __repr__(self) -> str:
        return f"<Job {self.id!r} {self.schedule} {self.state.value}{f', node {self.agent}' if self.agent else ''}>"

    @property
    def spec(self) -> JobSpec:
        return self.control.spec(self)

    def info(self) -> JobInfo:
        return self.control.info(self)

    @property
    def pauses(self) -> tuple[Pause, ...]:
        return self.control.pauses(self)

    @property
    def agent(self) -> str | None:
        return self.control.agent(self)

    @property
    def is_ours(self) -> bool:
        return not self.is_elsewhere

    @property
    def error(self) -> str | None:
        return self.fault or self.control.why_with_nobody(self)

    @property
    def next_start(self) -> datetime | None:
        return self.control.next_start(self)

    def next_starts(self, count: int) -> list[datetime]:
        return self.control.next_starts(self, count)

    def statistics(self) -> JobStatistics:
        runs, tally = self.runs, counted(self.tally)
        while runs is not self.runs:  # the loop, in another thread, has begun or ended a run between the two reads
            runs, tally = self.runs, counted(self.tally)
        running = 0
        for run in runs:
            started = run.started
            if not run.is_a_run and started is not None:
                tally.begin(run.utc(started), started - run.due)  # `started_at` would be cached
            running += started is not None or run.is_a_run
        return tally.snapshot(running, getattr(self, "audited", None))

    def remove(self) -> None:
        self.control.remove(self)

    def pause(self, reason: str | None = None, *, until: datetime | None = None) -> None:
        self.control.pause(self, reason, until)

    def resume(self) -> None:
        self.control.resume(self)

    def set_next_start(self, at: datetime) -> None:
        self.control.set_next_start(self, at)

    def skip(self) -> None:
        self.control.skip(self)

    def supersede(self) -> None:
        self.control.supersede(self)

    def run_now(self) -> AskedRun:
        return self.control.run_now(self)

    def update(self, *, schedule: SomeSchedule | None = None, **changes: Unpack[JobChanges]) -> None:
        self.control.update(self, schedule, changes)

    def fire(self) -> None:
        self.control.tick(self)

    @property
    def key(self) -> str:
        """Its hash decides the job's place in an interval."""
        return self.policy.key_of(self.id)

    @property
    def definition(self) -> Definition:
        return Definition(self.func, self.call, self.args, self.kwargs, self.policy, self.tags, self.name)

    def become(self, definition: Definition, lateness: KindCounts) -> None:
        self.func, self.call = definition.func, definition.call
        self.args, self.kwargs = definition.args, definition.kwargs
        self.policy, self.tags, self.name = definition.policy, definition.tags, definition.name
        self.lateness = lateness

    def settle_pause(self) -> None:
        pause = self.paused_by or self.held_by
        self.is_paused = self.is_parked or self.is_elsewhere or pause is not None
        if not self.is_parked:  # else `fault` says what is wrong with the schedule
            self.fault = None if pause is None else pause.text

    def settle_state(self) -> None:
        if not self.runs:
            is_disabled = self.is_paused and (self.fault is not None or not self.is_elsewhere)
            self.state = at_rest(self.state, is_disabled=is_disabled)

    def leave(self) -> None:
        if not self.runs and self.state is not GONE:
            self.state = TRANSITIONS[LifeStep.LEAVE][self.state]

    def counts(self) -> RunTally:
        tally = self.tally
        if type(tally) is not RunTally:
            self.tally = tally = counted(tally)
        return tally


class JobAttempt(Work):
    """One try at a tick. `scheduler._runs` has the kinds that run it.

    `due_us`: UTC microseconds, as users see it. `started`: monotonic seconds; None until it has room.
    """

    __slots__ = ("attempt", "due_us", "job", "sparse", "started")

    attempt: int
    due_us: int
    job: Job
    sparse: dict[str, Any] | None
    started: float | None

    cause: Sparse[Cause | None] = Sparse(None)
    is_counted = Sparse(False)  # noqa: FBT003 - its usual value
    """Whether its beginning is counted already; else all of it at its end."""
    counts_before: Sparse[tuple[float | None, float]] = Sparse((None, 0.0))
    time_allowed = Sparse(0.0)
    results: Sparse[list[object] | tuple[()]] = Sparse(())
    owes: Sparse[StoredTick | None] = Sparse(None)

    fence_number: int
    """The mark's fence, of a stored job.

    The mark `is_held` (requested), `is_sent` (perhaps durable) or `is_marked` (durable), or the attempt `goes_without`.
    """
    is_held = is_sent = is_marked = goes_without = False
    dropped_for: MissedReason | None = None
    waited: Waited | None = None
    """What it found when it had no room."""

    @property
    def func(self) -> Callable[..., Any]:  # type: ignore[override] # read from the job
        return self.job.func

    @property
    def name(self) -> str:
        return f"job {self.job.id}"

    @property
    def is_over(self) -> bool:
        return self not in self.job.runs

    @property
    def is_owed(self) -> bool:
        """Whether its tick must not be lost, because it is owed or tried again: no other takes its place."""
        return self.owes is not None or (self.attempt > 1 and self.job.policy.delivery is Delivery.AT_LEAST_ONCE)

    def keep_note(self, waited: Waited | None) -> None:
        """Keep what another run found, whose tick it takes over."""

    def note_anew(self) -> None:
        """Note what a run finds that stands for a newer tick."""

    @property
    def is_a_run(self) -> bool:
        return self.is_counted

    @property
    def lateness(self) -> float:
        """Seconds; 0.0 before it begins."""
        return 0.0 if self.started is None else self.started - self.due

    @property
    def started_at(self) -> float:
        """UTC seconds; 0.0 before it begins."""
        raise NotImplementedError

    @property
    def deadline_us(self) -> int | None:
        """In UTC microseconds."""
        raise NotImplementedError

    @property
    def fence(self) -> int:
        """A number that rises with every attempt."""
        return self.attempt

    @property
    def open_tasks(self) -> int:
        raise NotImplementedError

    def ask_as_job(self) -> None:
        """Take the job's present needs. Only while it holds nothing."""
        self.needs, self.priority = self.job.policy.needs, self.job.policy.priority

    def utc(self, monotonic: float) -> float:
        raise NotImplementedError

    def terminate(self, cause: Cause) -> None:
        raise NotImplementedError

    def stand_for(self, due: float, due_us: int, attempt: int) -> None:
        """Keep the queue position."""
        raise NotImplementedError

    def wait_for_mark(self, fence: int) -> None:
        raise NotImplementedError

    def mark_is_sent(self) -> None:
        """Note that no other tick can replace this one now."""
        raise NotImplementedError

    def mark_is_durable(self) -> None:
        raise NotImplementedError

    def mark_is_refused(self, reason: MissedReason) -> None:
        raise NotImplementedError

    def give_up(self) -> None:
        """End it now, whatever its code is doing."""
        raise NotImplementedError
