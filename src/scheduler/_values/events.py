"""Events, which listeners are told. Every instant is an aware datetime in UTC, every length in seconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from attrs import frozen

from .outcome import MissedReason, Outcome
from .state import JobState
from .statistics import Audit


@frozen
class RunStarted:
    """A run has begun, `lateness` after it was due. For a retry, `lateness` counts from when the retry was due."""

    job_id: str
    due: datetime
    started: datetime
    attempt: int
    lateness: float


@frozen
class RunEnded:
    """A run has ended, with all its subtasks.

    `results`: what they returned, without None and without subtasks, in the order in which they ended. `error` and
    `traceback`: those of the first that raised. `retry_at`: when the tick will be tried again, unless a regular start
    or the end of its job comes first.
    """

    job_id: str
    due: datetime
    started: datetime
    ended: datetime
    attempt: int
    lateness: float
    duration: float
    outcome: Outcome
    error: str | None = None
    traceback: str | None = None
    results: tuple[object, ...] = ()
    retry_at: datetime | None = None

    @property
    def result(self) -> object:
        """The last result, or None."""
        return self.results[-1] if self.results else None


@frozen
class RunMissed:
    """`count` ticks will have no run. The first was due at `first_due`, the last at `last_due`.

    `is_exact` False: there were at least `count`; the schedule cannot count them. `why`: the pause that caused it.
    """

    job_id: str
    first_due: datetime
    last_due: datetime
    count: int
    reason: MissedReason
    is_exact: bool = True
    why: str | None = None

    @property
    def outcome(self) -> Outcome:
        """MISSED, like RunEnded.outcome."""
        return Outcome.MISSED

    @property
    def result(self) -> None:
        """None: there was no run."""

    @property
    def error(self) -> str:
        """The reason, in words."""
        return f"missed: {self.reason.value}" + (f" ({self.why})" if self.why else "")


@frozen
class RunAbandoned:
    """A run ignored its cancellation for `seconds`, and is no longer waited for. Its units are free."""

    job_id: str
    due: datetime
    seconds: float


@frozen
class RunNotLaunched:
    """A tick could not be launched `count` times in a row, because there was no thread or no memory.

    It is reported once, when the run has ended or was given up. Ignore each RunStarted of these tries. The tick has
    kept its due time and its attempt.
    """

    job_id: str
    due: datetime
    error: str
    count: int


@frozen
class JobAdded:
    """A job was added. `stands_for`: the slot of its grid that its start at once replaces (start="now"), if any."""

    job_id: str
    stands_for: datetime | None = None


@frozen
class JobRemoved:
    """A job was removed."""

    job_id: str


@frozen
class JobChanged:
    """A job was paused, resumed, updated or disabled, or its next start was set by hand."""

    job_id: str
    state: JobState
    reason: str | None = None


@frozen
class JobFinished:
    """A job has left `jobs()`: its schedule has no further start, and its last run has ended."""

    job_id: str


@frozen
class JobParked:
    """A job is parked: its schedule raised or gave a wrong answer. It does not start until it is updated."""

    job_id: str
    error: str


@frozen
class ScopePaused:
    """All jobs ("*") or the jobs with a tag ("tag:" and the tag) are paused until `until`; None: until resumed."""

    scope: str
    reason: str
    until: datetime | None = None


@frozen
class ScopeResumed:
    """The pause of a scope has ended. A job with a pause of its own is still paused."""

    scope: str


@frozen
class ClockJumped:
    """The wall clock was set. At `at` (the new time) it was `seconds` ahead of its course; negative: behind."""

    at: datetime
    seconds: float


@frozen
class LoopBlocked:
    """The event loop has not moved for `seconds`. `stack` shows where it is.

    `job_id`: the job whose code that is, or whose task or callback. None: the code belongs to no job, as a schedule's
    does. None as well if the job is unknown, as in child tasks on uvloop before Python 3.12.
    """

    job_id: str | None
    seconds: float
    stack: str


@frozen
class StoreDown:
    """The store does not work, as was found at `at`. Stored jobs wait to begin; running ones go on.

    `is_taken_over`: another node has the store now. It will not work again for this scheduler.
    """

    at: datetime
    error: str
    is_taken_over: bool = False


@frozen
class StoreUp:
    """The store works again, after `seconds`. No record of that time is lost."""

    at: datetime
    seconds: float


@frozen
class AgentJoined:
    """A node shares the store from now on. `is_us`: this one does, for the first time or again."""

    at: datetime
    agent: str
    is_us: bool = False


@frozen
class AgentLost:
    """A node shares the store no more. `is_us`: other nodes took this one for dead, and have its jobs.

    Then its runs of those jobs are cancelled, and none starts. `AgentJoined` comes when it has joined again.
    """

    at: datetime
    agent: str
    reason: str
    is_us: bool = False


@frozen
class ShardsMoved:
    """Shards of a shared store came to this node (`taken`) or left it (`given`), with `jobs` jobs, in `seconds`."""

    at: datetime
    taken: int
    given: int
    jobs: int
    seconds: float


@frozen
class SkewTooLarge:
    """This machine's clock is `seconds` ahead of the shared store's (negative: behind), more than `max_skew`.

    No job of the store starts here until `SkewEnded`, and other nodes get this node's jobs.
    """

    at: datetime
    seconds: float
    max_skew: float


@frozen
class SkewEnded:
    """This machine's clock is right again, `seconds` ahead of the shared store's: this node takes part again."""

    at: datetime
    seconds: float


@frozen
class AuditStarted:
    """An audit of all jobs begins. `interval`: seconds to the next audit; None: a user asked for this one."""

    at: datetime
    interval: float | None


@frozen
class AuditEnded:
    """An audit of all jobs is over."""

    audit: Audit


@frozen
class SchedulerStarted:
    """The scheduler runs."""

    at: datetime


@frozen
class SchedulerStopped:
    """The scheduler has stopped, and no run is left. `cut_off`: the jobs whose runs outlasted the grace."""

    at: datetime
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
    | AgentJoined
    | AgentLost
    | ShardsMoved
    | SkewTooLarge
    | SkewEnded
    | AuditStarted
    | AuditEnded
    | SchedulerStarted
    | SchedulerStopped
)

Listener = Callable[[Event], object]
