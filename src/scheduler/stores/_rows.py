"""The values that pass between the scheduler and a store. They are plain, and nothing of them is imported or executed.

Instants are whole microseconds since 1970, UTC, in fields that end in `_us`; lengths are seconds. Texts that hold JSON
say so. They are tuples, because 10,000 of them a second are made and handed to a driver as they are.
"""

from __future__ import annotations

import enum
import re
from datetime import timedelta
from typing import Final, NamedTuple

from attrs import Factory, define, field, frozen

from schedule import ScheduleError, duration

RUNNING: Final = "running"
"""The outcome of a tick that has been marked and has not ended. Found after a restart, it is a crash."""

PENDING: Final = "pending"
SCHEDULED: Final = "scheduled"
TAKEN: Final = "taken"
DONE: Final = "done"
SKIPPED: Final = "skipped"
SUPERSEDED: Final = "superseded"
"""The statuses of an execution: see `Executions`."""

LONGEST_RESULT: Final = 2_048

AT_LEAST: Final = "at least"
"""The error of a record of missed ticks whose count is a lower bound."""


class StoredJob(NamedTuple):
    """A job's definition. People may write such rows into the table of jobs.

    `options`: the options of Scheduler.add that differ from its defaults. `paused`: why it is paused; None: it is not.
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
    """The two columns of a job's row that the scheduler changes by itself: `paused` and `paused_until_us`."""

    paused: str | None = None
    paused_until_us: int | None = None


class StoredState(NamedTuple):
    """A job's state and its counts. Only the scheduler writes it, and always the whole row.

    runs = successes + failures + crashes, where a run that goes on counts as a crash. `next_us`: the next regular
    start; None: not planned, or counted from the end of a run that goes on. `next_by_hand`: `next_us` was set by hand
    and need not be a slot of the schedule. `next_of`: the text of the schedule that gave it; None: unknown. `retry_*`:
    the failed tick that is tried again, with which attempt, and when. (A tick that a death or a stop cut off says so in
    its own record.) `not_before_us`: no start is earlier, because of a crash. `missed_is_exact` False: `missed` is a
    lower bound.
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
    """The record of a tick: that it runs, or how it ended. A tick is `(job_id, due_us)`, and has one record.

    `outcome`: RUNNING or the value of an Outcome. `fence` rises with every mark in this store. `reason` and `count` are
    for missed ticks: `count` in a row, from `due_us` to `last_due_us`. If there may be more, `error` is AT_LEAST.
    """

    job_id: str
    due_us: int
    attempt: int
    fence: int
    outcome: str
    started_us: int | None = None
    """When the run began. While the tick is RUNNING: when it was marked."""
    ended_us: int | None = None
    """When the run ended. For a missed tick: when that was recorded."""
    lateness: float | None = None
    error: str | None = None
    trace: str | None = None
    reason: str | None = None
    count: int = 1  # type: ignore[assignment] # hides the method of tuples
    last_due_us: int | None = None
    result: str | None = None
    """The last result of the run as JSON, if it fits into LONGEST_RESULT characters."""
    owed: bool = False
    """A death or a stop has cut the tick off. It will be tried again: delivery is at least once."""


SIZE_OF_TICK: Final = 200
"""Bytes of a record without its texts, roughly, with its share of the indexes."""


def size_of(tick: StoredTick) -> int:
    """Return the bytes of a record, roughly, as Retention.total_bytes counts them."""
    size = SIZE_OF_TICK + len(tick.job_id)
    if tick.error or tick.trace or tick.result:
        size += len(tick.error or "") + len(tick.trace or "") + len(tick.result or "")
    return size


class StoredPause(NamedTuple):
    """A pause of all jobs in a scope: EVERYTHING, or "tag:" and a tag."""

    scope: str
    reason: str
    since_us: int
    until_us: int | None = None


class Execution(NamedTuple):
    """A start of a job that is or was in a queue outside of the nodes: see `Executions`.

    `status`: one of PENDING, SCHEDULED, TAKEN, DONE, SKIPPED, SUPERSEDED. `schedule`: the text that gave it.
    `next_due_us`: the expected start after it. `instance` and `number`: its position, which server has it under which
    number. `epoch`: of the node that has taken it; None with TAKEN: that node has gone.
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
    """The execution that becomes a job's live one. `due_us` None: the job gets none.

    A live execution at another instant gives way. It is done if its tick has a record, else superseded, or with `skips`
    skipped. A live execution at this instant stays where it is.
    """

    job_id: str
    due_us: int | None
    schedule: str
    made_us: int
    next_due_us: int | None = None
    skips: bool = False


class Placed(NamedTuple):
    """An execution's position in a queue: in which instance of a server, under which number, put when."""

    job_id: str
    due_us: int
    instance: str
    number: int
    put_us: int


class Act(enum.Enum):
    """The acts that the node of a job is asked for. All other verbs change the job's row."""

    RUN = "run"
    """Run it once, now."""
    BEGIN = "begin"
    """Run it once, now, as it was added to start now. Not if it is paused, or has begun to run since."""
    START_AT = "start at"
    """Set its next start."""
    SKIP = "skip"
    """Leave out its next start."""
    SUPERSEDE = "supersede"
    """Replace its next start by the schedule's."""
    RESUME = "resume"
    """End its rest too, with its pause."""
    ANEW = "anew"
    """It has been replaced: forget its state."""
    AUDIT = "audit"
    """Check it against its rows; with `at_us`, whether that tick runs. Asked by visitors."""


MOST_REQUESTS: Final = 1_000
"""The most requests that one call of `Store.changes` returns."""


class StoredRequest(NamedTuple):
    """An act that a node asks of the node of a job. `act` is the value of an Act.

    It waits until the job's present node does it, and is done once. `number`: of the asking node's epoch and a count,
    so it is unique.
    """

    number: int
    job_id: str
    act: str
    at_us: int | None = None


class RequestDone(NamedTuple):
    """The end of a request. `due_us`: the tick that came of it; None: none. `reason`: why the tick has no run."""

    number: int
    job_id: str
    due_us: int | None = None
    reason: str | None = None


class Answer(NamedTuple):
    """An answer to a request. `is_done`: it was carried out. `is_gone`: its job is gone. `comes_again`: its tick will
    be retried.
    """

    number: int
    is_done: bool = False
    is_gone: bool = False
    due_us: int | None = None
    reason: str | None = None
    tick: StoredTick | None = None
    comes_again: bool = False


@define
class Batch:
    """Changes that are committed together. None in place of a value removes it.

    `paused`: two columns of rows that exist, even if another process has changed the rest. `finished`: jobs whose
    schedule has ended, with its text; each row is removed unless it has another schedule since.

    Four fields are only for stores with executions. `released`: jobs that other nodes may take now, and the execution
    of each that we took; None: it was never taken. `placed` and `lost`: executions that their server has, or has no
    longer. `planned`: by job.

    Five are only for stores that nodes share. `added`: which of `jobs` are put only where there is no row, and what the
    scheduler does where there is one. `begun`: the first states of `added` jobs. Neither these nor `requests` for their
    ids are written where the row is not put. `done`: requests that this batch carries out. `is_news`: tell the other
    nodes to look.
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
    begun: dict[str, StoredState] = Factory(dict)
    requests: list[StoredRequest] = Factory(list)
    done: list[RequestDone] = Factory(list)
    is_news: bool = False


@frozen
class Receipt:
    """The parts of a batch that a commit did not carry out. `refused`: marks of ticks that already have a record.

    `stale`: ends of runs whose tick has a newer mark. Also `gone`: live executions that gave way to planned ones. A
    repeated batch does not return them again.
    """

    refused: tuple[StoredTick, ...] = ()
    stale: tuple[StoredTick, ...] = ()
    gone: tuple[Execution, ...] = ()
    standing: tuple[StoredJob, ...] = ()
    """Rows found in place of jobs to be added, and different from them."""


@frozen
class Changes:
    """The changes of others since the last call: rows as they are now, None for a row that is gone.

    Of a store that nodes share also `states` of these jobs, and `requests` for our jobs that are not done, at most
    MOST_REQUESTS. `is_behind`: the store has forgotten changes that it told of already: read all its rows again.
    `is_more`: the next call returns further changes.
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
    """Convert a length of time to seconds. Raises ValueError for a text that is none."""
    if not isinstance(age, (str, timedelta)):
        return age
    try:
        return duration(age).total_seconds()
    except ScheduleError as exc:
        msg = f"age: {exc}"
        raise ValueError(msg) from None


def _bytes(size: int | str | None) -> int | None:
    """Convert to a number of bytes. Raises ValueError for a text that is none."""
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
    """How much history to keep. Records over any of the three bounds are deleted, oldest first.

    `per_job`: ended ticks of one job. `age`: seconds since the end, or "30d". `total_bytes`: bytes of all ticks
    together, roughly, or "256 MiB". None: no such bound. Ticks that run or are owed always stay. Raises ValueError for
    a bound that makes no sense.
    """

    per_job: int | None = 1_000
    age: float | None = field(default=30 * 86_400.0, converter=_seconds)
    total_bytes: int | None = field(default=256 * 1024 * 1024, converter=_bytes)

    def __attrs_post_init__(self) -> None:
        for name in ("per_job", "age", "total_bytes"):
            bound = getattr(self, name)
            is_number = isinstance(bound, (int, float)) and not isinstance(bound, bool)
            if bound is not None and not (is_number and bound > 0):
                msg = f"{name} must be a number above 0, or None for no bound, not {bound!r}"
                raise ValueError(msg)
