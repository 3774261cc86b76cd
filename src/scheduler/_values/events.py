"""Events, which listeners are told. Instants are aware datetimes in UTC, lengths in seconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from attrs import frozen

from .outcome import MissedReason, Outcome
from .state import JobState
from .statistics import Audit


@frozen
class RunStarted:
    """A run has begun, `lateness` after it was due, or after its retry was due."""

    job_id: str
    due: datetime
    started: datetime
    attempt: int
    lateness: float


@frozen
class RunEnded:
    """A run has ended, with all its subtasks.

    `results`: returned values in order of ending, without None and subtasks. `error`, `traceback`: of the first that
    raised. `retry_at`: when the tick is tried again, unless a regular start or its job's end comes first.
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
    """`count` ticks will have no run, due from `first_due` to `last_due`.

    `is_exact` False: `count` is a lower bound. `why`: the pause that caused it.
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
    """A run ignored its cancellation for `seconds` and is given up. Its units are free."""

    job_id: str
    due: datetime
    seconds: float


@frozen
class RunNotLaunched:
    """A tick could not be launched `count` times in a row, for lack of threads or memory.

    Told once, when the run is over. Ignore the RunStarted of each try. The tick kept its due time and attempt.
    """

    job_id: str
    due: datetime
    error: str
    count: int


@frozen
class JobAdded:
    """A job was added. `stands_for`: the slot that its start at once replaces (start="now")."""

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
    """A job has left `jobs()`: no further start, and its last run has ended."""

    job_id: str


@frozen
class JobParked:
    """A job's schedule raised or answered wrongly. It does not start until updated."""

    job_id: str
    error: str


@frozen
class ScopePaused:
    """The jobs in a scope, "*" for all or "tag:" and a tag, are paused until `until`; None: until resumed."""

    scope: str
    reason: str
    until: datetime | None = None


@frozen
class ScopeResumed:
    """A scope's pause has ended. Jobs paused themselves stay paused."""

    scope: str


@frozen
class ClockJumped:
    """The wall clock was set: at `at` (the new time), `seconds` ahead of its course; negative: behind."""

    at: datetime
    seconds: float


@frozen
class LoopBlocked:
    """The event loop has not moved for `seconds`. `stack` shows where it is.

    `job_id`: the job whose code, task or callback runs. None: no job's code, or unknown, as in child tasks on uvloop
    before Python 3.12.
    """

    job_id: str | None
    seconds: float
    stack: str


@frozen
class StoreDown:
    """The store failed, found at `at`. Stored jobs wait to begin; running ones go on.

    `is_taken_over`: another node has the store now, and this scheduler will not get it back.
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
    """A node now shares the store. `is_us`: this one, for the first time or again."""

    at: datetime
    agent: str
    is_us: bool = False


@frozen
class AgentLost:
    """A node no longer shares the store. `is_us`: other nodes took this one for dead, and have its jobs.

    Then its runs of those jobs are cancelled and none starts, until `AgentJoined`.
    """

    at: datetime
    agent: str
    reason: str
    is_us: bool = False


@frozen
class ShardsMoved:
    """Shards came to this node (`taken`) or left it (`given`), with `jobs` jobs, in `seconds`."""

    at: datetime
    taken: int
    given: int
    jobs: int
    seconds: float


@frozen
class SkewTooLarge:
    """This clock is `seconds` ahead of the shared store's (negative: behind), beyond `max_skew`.

    No stored job starts here until `SkewEnded`; other nodes get this node's jobs.
    """

    at: datetime
    seconds: float
    max_skew: float


@frozen
class SkewEnded:
    """This clock is right again, `seconds` ahead of the shared store's. The node takes part again."""

    at: datetime
    seconds: float


@frozen
class AuditStarted:
    """An audit of all jobs begins. `interval`: seconds to the next; None: a user asked."""

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
    """The scheduler has stopped, with no run left. `cut_off`: jobs whose runs outlasted the grace."""

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
