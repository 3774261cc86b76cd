"""What listeners are told. Every instant is in UTC seconds since 1970, every length in seconds."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from .outcome import MissedReason, Outcome
from .state import JobState


@frozen
class RunStarted:
    """A run has begun, `lateness` after it was due; after its retry was due, if it is one."""

    job_id: str
    due: float
    started: float
    attempt: int
    lateness: float


@frozen
class RunEnded:
    """A run and all its subtasks have ended.

    `results`: what they returned, apart from None and from subtasks, in the order in which they ended. `error` and
    `traceback` are those of the first that raised. `retry_at`: when the tick will be tried again, unless a regular
    start or the end of its job comes first.
    """

    job_id: str
    due: float
    started: float
    ended: float
    attempt: int
    lateness: float
    duration: float
    outcome: Outcome
    error: str | None = None
    traceback: str | None = None
    results: tuple[object, ...] = ()
    retry_at: float | None = None

    @property
    def result(self) -> object:
        """The last result, or None."""
        return self.results[-1] if self.results else None


@frozen
class RunMissed:
    """`count` ticks, the first due at `first_due` and the last at `last_due`, have no run."""

    job_id: str
    first_due: float
    last_due: float
    count: int
    reason: MissedReason
    is_exact: bool = True
    """False: there were more than `count`, of a schedule that cannot count them."""


@frozen
class RunAbandoned:
    """A run ignored its cancellation for `seconds` and is no longer waited for. Its units are free."""

    job_id: str
    due: float
    seconds: float


@frozen
class RunNotLaunched:
    """A tick could not be launched `count` times in a row, for want of a thread or of memory.

    Told once, when that is over: the run that came of it has ended, or it was given up. Each RunStarted of those
    tries is void. The tick has kept its due instant and its attempt.
    """

    job_id: str
    due: float
    error: str
    count: int


@frozen
class JobAdded:
    """`stands_for`: the first slot of its grid, if its start at once stands for that (start="now"), because it lies
    within half an interval; None: no slot is left out.
    """

    job_id: str
    stands_for: float | None = None


@frozen
class JobRemoved:
    job_id: str


@frozen
class JobChanged:
    """It was paused, resumed, updated or disabled, or its next start was set by hand."""

    job_id: str
    state: JobState
    reason: str | None = None


@frozen
class JobFinished:
    """Its schedule has no further start and its last run has ended: it has left `jobs()`."""

    job_id: str


@frozen
class JobParked:
    """Its schedule raised or answered wrongly: it will not start until it is updated."""

    job_id: str
    error: str


@frozen
class ScopePaused:
    """All jobs ("*"), or those of a tag ("tag:" and the tag), are paused, until `until` (UTC seconds) or for good."""

    scope: str
    reason: str
    until: float | None = None


@frozen
class ScopeResumed:
    """They are paused no more, by hand or because the pause is over. A job with a pause of its own still is."""

    scope: str


@frozen
class ClockJumped:
    """At `at` (the new time) the wall clock was found `seconds` ahead of where it should be; negative: behind."""

    at: float
    seconds: float


@frozen
class LoopBlocked:
    """The event loop has not moved for `seconds`; `stack` shows where it stands.

    `job_id` is whose code that is: the job's own, or that of a task or callback that the job has started. None: it
    belongs to no job (a schedule, the rest of the program), or that cannot be seen, as in child tasks on uvloop
    before Python 3.12.
    """

    job_id: str | None
    seconds: float
    stack: str


@frozen
class StoreDown:
    """At `at` the store was found not to work. Runs that need a mark wait; what runs goes on.

    `is_taken_over`: it is another agent's now, and will not work again for this scheduler.
    """

    at: float
    error: str
    is_taken_over: bool = False


@frozen
class StoreUp:
    """The store works again, after `seconds`. Nothing that was noted meanwhile is lost."""

    at: float
    seconds: float


@frozen
class SchedulerStarted:
    at: float


@frozen
class SchedulerStopped:
    """Nothing runs any more. `cut_off`: ids of the jobs whose runs did not end within the grace."""

    at: float
    cut_off: tuple[str, ...]


Event = (
    RunStarted
    | RunEnded
    | RunMissed
    | RunAbandoned
    | RunNotLaunched
    | JobAdded
    | JobRemoved
    | JobChanged
    | JobFinished
    | JobParked
    | ScopePaused
    | ScopeResumed
    | ClockJumped
    | LoopBlocked
    | StoreDown
    | StoreUp
    | SchedulerStarted
    | SchedulerStopped
)

Listener = Callable[[Event], object]
