"""The plain values that pass between the scheduler and a store.

Fields that end in `_us` are microseconds since 1970, UTC; lengths are seconds. They are tuples, because a driver takes
10,000 per second as they are.
"""

from __future__ import annotations

import enum
import re
from datetime import timedelta
from typing import Final, NamedTuple

from attrs import Factory, define, field, frozen

from schedule import ScheduleError, duration

from .._values import job_of_scope

RUNNING: Final = "running"
"""The outcome of a marked tick without an end. After a restart it is a crash."""

PENDING: Final = "pending"
SCHEDULED: Final = "scheduled"
TAKEN: Final = "taken"
DONE: Final = "done"
SKIPPED: Final = "skipped"
SUPERSEDED: Final = "superseded"
"""Statuses of an execution: see `Executions`."""

LONGEST_RESULT: Final = 2_048

AT_LEAST: Final = "at least"
"""The error of a missed record whose count is a lower bound."""


class StoredJob(NamedTuple):
    """A job's definition. People may write such rows by hand.

    `options`: of Scheduler.add, except defaults. `paused`: the reason, if paused.
    """

    id: str
    task: str
    schedule: str
    args: str = "[]"
    """JSON array."""
    kwargs: str = "{}"
    """JSON object."""
    options: str = "{}"
    """JSON object."""
    tags: str = "[]"
    """JSON array of texts."""
    name: str | None = None
    paused: str | None = None
    paused_until_us: int | None = None


class JobPause(NamedTuple):
    """Columns that the scheduler itself changes."""

    paused: str | None = None
    paused_until_us: int | None = None


class StoredState(NamedTuple):
    """A job's state and counts. Only the scheduler writes it, always the whole row.

    runs = successes + failures + crashes, a run in progress included as a crash. `next_us`: the next regular start;
    None: not planned, or counted from the present run's end. `next_by_hand`: `next_us` need not be a slot of the
    schedule. `next_of`: the schedule that gave it, if known. `retry_*`: the failed tick to try again; an owed tick has
    its own record. `not_before_us`: no earlier start, after a crash. `missed_is_exact` False: `missed` is a lower
    bound.
    """

    job_id: str
    next_us: int | None = None
    next_by_hand: bool = False
    retry_due_us: int | None = None
    retry_attempt: int | None = None
    retry_at_us: int | None = None
    not_before_us: int | None = None
    runs: int = 0
    successes: int = 0
    failures: int = 0
    timeouts: int = 0
    cancellations: int = 0
    missed: int = 0
    consecutive_failures: int = 0
    consecutive_crashes: int = 0
    total_duration: float = 0.0
    total_duration_failures: float = 0.0
    lateness_sum: float = 0.0
    lateness_max: float = 0.0
    last_start_us: int | None = None
    last_finish_us: int | None = None
    last_success_us: int | None = None
    last_outcome: str | None = None
    last_error: str | None = None
    next_of: str | None = None
    missed_is_exact: bool = True


class StoredTick(NamedTuple):
    """The one record of a tick `(job_id, due_us)`.

    `outcome`: RUNNING or the value of an Outcome. `fence` rises with every mark in this store. `reason` and `count`: of
    ticks missed in a row, until `last_due_us`. With the `error` AT_LEAST there may be more.
    """

    job_id: str
    due_us: int
    attempt: int
    fence: int
    outcome: str
    started_us: int | None = None
    """While RUNNING: when it was marked."""
    ended_us: int | None = None
    """When the run ended, or a missed tick was recorded."""
    lateness: float | None = None
    error: str | None = None
    trace: str | None = None
    reason: str | None = None
    count: int = 1  # type: ignore[assignment] # hides the method of tuples
    last_due_us: int | None = None
    result: str | None = None
    """JSON of at most LONGEST_RESULT characters."""
    owed: bool = False
    """Cut off by a death or a stop; will be tried again."""
    waited: str | None = None
    """JSON: which full limit it waited for, and what held its units. Of late and missed ticks only."""


SIZE_OF_TICK: Final = 200
"""Bytes of a record without texts, indexes included, roughly."""


def size_of(tick: StoredTick) -> int:
    size = SIZE_OF_TICK + len(tick.job_id)
    if tick.error or tick.trace or tick.result or tick.waited:
        size += sum(len(text or "") for text in (tick.error, tick.trace, tick.result, tick.waited))
    return size


class StoredPause(NamedTuple):
    """A pause of a scope: EVERYTHING, or "tag:" and a tag."""

    scope: str
    reason: str
    since_us: int
    until_us: int | None = None


class Stood(NamedTuple):
    """A job's row and state, and all pauses of scopes. `job` None: there is no such job."""

    job: StoredJob | None
    state: StoredState | None
    pauses: list[StoredPause]


class Execution(NamedTuple):
    """A job's start in an external queue: see `Executions`.

    `schedule`: the text that gave it. `next_due_us`: the expected next start. `instance`, `number`: its position:
    server and number there. `epoch`: of the node that took it; None with TAKEN: that node has gone.
    """

    job_id: str
    due_us: int
    status: str
    schedule: str
    made_us: int
    next_due_us: int | None = None
    instance: str | None = None
    number: int | None = None
    put_us: int | None = None
    epoch: int | None = None


class Planned(NamedTuple):
    """The execution that becomes a job's live one; `due_us` None: none.

    Another live execution becomes done if its tick has a record, else superseded, or with `skips` skipped.
    """

    job_id: str
    due_us: int | None
    schedule: str
    made_us: int
    next_due_us: int | None = None
    skips: bool = False


class Placed(NamedTuple):
    """An execution's position in a queue: server instance and number."""

    job_id: str
    due_us: int
    instance: str
    number: int
    put_us: int


class Act(enum.Enum):
    """An act that a job's node can be asked for; all else changes the job's row."""

    RUN = "run"
    """Run it once, now."""
    BEGIN = "begin"
    """Run an added job once, now, unless paused or already run."""
    START_AT = "start at"
    SKIP = "skip"
    SUPERSEDE = "supersede"
    """Replace its next start by the schedule's."""
    RESUME = "resume"
    """End its pause, and its rest after a crash."""
    ANEW = "anew"
    """Forget its state: it was replaced."""
    AUDIT = "audit"
    """Check it against its rows; with `at_us`, whether that tick runs."""


MOST_REQUESTS: Final = 1_000
"""Per call of `Store.changes`."""


class StoredRequest(NamedTuple):
    """A request for an Act, done once by whichever node has the job. `number`: unique."""

    number: int
    job_id: str
    act: str
    at_us: int | None = None


class StoredChange(NamedTuple):
    """A change by a user: see `scheduler.Change`. `number`: unique; 0: not given yet.

    `scope`: "job:" and an id, EVERYTHING, "tag:" and a tag, "set:" and an owner, or "limits".
    """

    number: int
    at_us: int
    act: str
    scope: str
    actor: str | None = None
    reason: str | None = None
    before: str | None = None
    """JSON object."""
    after: str | None = None
    """JSON object."""

    @property
    def job_id(self) -> str | None:
        """The changed job, if it is one job."""
        return job_of_scope(self.scope)


class RequestDone(NamedTuple):
    """The end of a request. `due_us`: its tick, if any. `reason`: why the tick has no run."""

    number: int
    job_id: str
    due_us: int | None = None
    reason: str | None = None


class Answer(NamedTuple):
    """An answer to a request. `is_gone`: its job is gone. `comes_again`: its tick will be retried."""

    number: int
    is_done: bool = False
    is_gone: bool = False
    due_us: int | None = None
    reason: str | None = None
    tick: StoredTick | None = None
    comes_again: bool = False


@define
class Batch:
    """Changes that are committed together: see `Store.commit`. None removes.

    `finished`: jobs whose schedule has ended, with its text. `released`: jobs that other nodes may take now, with our
    execution, if taken. `placed`, `lost`: executions that their server has, or has no longer.

    `changed`: which of `jobs` to write only if they have a row: another may have removed them.

    For shared stores: `added`: which of `jobs` to put only if new, and what to do otherwise. `begun`: their first
    states, not written, like their `requests`, if the row is not put. `done`: requests carried out. `is_news`: tell the
    other nodes. `made`: who changed what, for stores with `made_changes`; a change whose number is known is left out.
    """

    jobs: dict[str, StoredJob | None] = Factory(dict)
    states: dict[str, StoredState] = Factory(dict)
    pauses: dict[str, StoredPause | None] = Factory(dict)
    ended: list[StoredTick] = Factory(list)
    missed: list[StoredTick] = Factory(list)
    marks: list[StoredTick] = Factory(list)
    paused: dict[str, JobPause] = Factory(dict)
    finished: dict[str, str] = Factory(dict)
    placed: list[Placed] = Factory(list)
    lost: list[Placed] = Factory(list)
    released: dict[str, int | None] = Factory(dict)
    planned: dict[str, Planned] = Factory(dict)
    added: dict[str, str] = Factory(dict)
    changed: set[str] = Factory(set)
    begun: dict[str, StoredState] = Factory(dict)
    requests: list[StoredRequest] = Factory(list)
    done: list[RequestDone] = Factory(list)
    made: list[StoredChange] = Factory(list)
    is_news: bool = False


@frozen
class Receipt:
    """The parts of a batch that were not carried out. `refused`: marks of ticks that have a record.

    `stale`: ends of runs whose tick has a newer mark. `gone`: live executions that gave way; a repeated batch omits
    them.
    """

    refused: tuple[StoredTick, ...] = ()
    stale: tuple[StoredTick, ...] = ()
    gone: tuple[Execution, ...] = ()
    standing: tuple[StoredJob, ...] = ()
    """Different rows in place of added jobs."""


@frozen
class Changes:
    """The present rows that others changed; None: removed.

    In a shared store also these jobs' `states`, and at most MOST_REQUESTS `requests` for our jobs. `is_behind`: the
    store forgot changes; read it all again. `is_more`: call again.
    """

    jobs: dict[str, StoredJob | None] = Factory(dict)
    pauses: dict[str, StoredPause | None] = Factory(dict)
    states: dict[str, StoredState] = Factory(dict)
    requests: tuple[StoredRequest, ...] = ()
    is_behind: bool = False
    is_more: bool = False

    def __bool__(self) -> bool:
        return bool(self.jobs or self.pauses or self.requests or self.is_behind or self.is_more)


def _seconds(age: timedelta | float | str | None) -> float | None:
    if not isinstance(age, (str, timedelta)):
        return age
    try:
        return duration(age).total_seconds()
    except ScheduleError as exc:
        msg = f"age: {exc}"
        raise ValueError(msg) from None


def _bytes(size: int | str | None) -> int | None:
    if not isinstance(size, str):
        return size
    found = _SIZE.fullmatch(size.strip())
    if found is None:
        msg = f'total_bytes must be a number of bytes, or such as "256 MiB" or "1 GB", not {size!r}'
        raise ValueError(msg)
    number, prefix, binary = found.groups()
    power = " kmgt".index((prefix or " ").lower())
    return int(number) * int((1_024 if binary else 1_000) ** power)


_SIZE: Final = re.compile(r"(\d{1,15})\s*(?:([kmgt])(i?))?b?", re.IGNORECASE)


@frozen(kw_only=True)
class Retention:
    """How much history to keep. Records over any bound are deleted, oldest first. None: no bound.

    `per_job`: ended ticks of one job. `age`: seconds since the end, or "30d". `total_bytes`: of all ticks, roughly, or
    "256 MiB". Ticks that run or are owed always stay. `changes`: who changed what, by number; `age` holds for them too.
    Raises ValueError if a bound is not above 0 or cannot be read.
    """

    per_job: int | None = 1_000
    age: float | None = field(default=30 * 86_400.0, converter=_seconds)
    total_bytes: int | None = field(default=256 * 1024 * 1024, converter=_bytes)
    changes: int | None = 10_000

    def __attrs_post_init__(self) -> None:
        for name in ("per_job", "age", "total_bytes", "changes"):
            bound = getattr(self, name)
            is_number = isinstance(bound, (int, float)) and not isinstance(bound, bool)
            if bound is not None and not (is_number and bound > 0):
                msg = f"{name} must be a number above 0, or None for no bound, not {bound!r}"
                raise ValueError(msg)
