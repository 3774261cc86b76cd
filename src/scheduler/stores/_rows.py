"""The values that cross the seam between the scheduler and a store: plain ones, nothing of which is ever imported or
executed.

Instants are whole microseconds since 1970, UTC, in fields that end in `_us`; lengths are seconds. Texts that hold JSON
say so. Tuples, because 10,000 of them a second are made and handed to a driver as they are.
"""

from __future__ import annotations

import enum
import re
from datetime import timedelta
from typing import Final, NamedTuple

from attrs import Factory, define, field, frozen

from schedule import ScheduleError, duration

RUNNING: Final = "running"
"""The outcome of a tick that has been marked and has not ended: whoever finds it after a restart has found a crash."""

PENDING: Final = "pending"
SCHEDULED: Final = "scheduled"
TAKEN: Final = "taken"
DONE: Final = "done"
SKIPPED: Final = "skipped"
SUPERSEDED: Final = "superseded"
"""The statuses of an execution: see `Executions`."""

LONGEST_RESULT: Final = 2_048

AT_LEAST: Final = "at least"
"""The error of a record of missed ticks of which there were as many as it counts, or more."""


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
    start; None: not planned, or counted from the end of a run that goes on. `next_by_hand`: somebody has set `next_us`,
    so it need not be a slot of the schedule. `next_of`: the text of the schedule that gave it; None: not known.
    `retry_*`: the tick that has failed and is tried again, with which attempt, and when. (A tick that a death or a stop
    has cut off says so in its own record.) `not_before_us`: nothing starts earlier, because of a crash.
    `missed_is_exact`: False, if at least `missed` ticks were missed.
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
    for missed ticks: `count` in a row, from `due_us` to `last_due_us`. If there may have been more, `error` is
    AT_LEAST.
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
    count: int = 1  # type: ignore[assignment] # hides the method of tuples of which nobody thinks here
    last_due_us: int | None = None
    result: str | None = None
    """The last result of the run as JSON, if it fits into LONGEST_RESULT characters."""
    owed: bool = False
    """A death or a stop has cut the tick off, and it will be tried again: delivery is at least once."""


SIZE_OF_TICK: Final = 200
"""Bytes of a record without its texts, roughly, its place in the indexes included."""


def size_of(tick: StoredTick) -> int:
    """Bytes of a record, roughly, as Retention.total_bytes counts them."""
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
    """A start of a job that stands in a queue outside of every agent, or has stood there: see `Executions`.

    `status`: one of PENDING, SCHEDULED, TAKEN, DONE, SKIPPED, SUPERSEDED. `schedule`: the text that it followed from.
    `next_due_us`: the start after it, as it was foreseen. `instance` and `number`: which server has it, and under which
    number. `epoch`: of the agent that has taken it; None for one that is taken: that agent has gone.
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
    """The execution that is to be a job's live one from now on. `due_us` None: there is to be none.

    One that is live already at another instant gives way: it is done if its tick has a record, else superseded, or with
    `skips` skipped. One that is live at this instant stays where it stands.
    """

    job_id: str
    due_us: int | None
    schedule: str
    made_us: int
    next_due_us: int | None = None
    skips: bool = False


class Placed(NamedTuple):
    """Where an execution stands in a queue: in which instance of a server, under which number, put when."""

    job_id: str
    due_us: int
    instance: str
    number: int
    put_us: int


class Act(enum.Enum):
    """The acts that are asked of the agent that has a job. All others are changes of the job's row."""

    RUN = "run"
    """Run it once, now."""
    BEGIN = "begin"
    """Run it once, now, as it was added to start now: not if it is paused, or has begun to run since."""
    START_AT = "start at"
    """Let that be its next start."""
    SKIP = "skip"
    """Leave out its next start."""
    SUPERSEDE = "supersede"
    """Let its schedule say again when it starts next."""
    RESUME = "resume"
    """End its rest too, with its pause."""
    ANEW = "anew"
    """It has been replaced: forget where it stood."""
    AUDIT = "audit"
    """See whether it stands as its rows say, or, if `at_us` says which, whether that tick runs. Asked by visitors."""


MOST_REQUESTS: Final = 1_000
"""Requests that `Store.changes` tells at once. After so many the next call tells more."""


class StoredRequest(NamedTuple):
    """An act that an agent asks of the one that has a job: `act` is the value of an Act. It stands until it is done, by
    whoever has the job then, and is done once. `number`: of the epoch of who asks and a count, so no other has it.
    """

    number: int
    job_id: str
    act: str
    at_us: int | None = None


class RequestDone(NamedTuple):
    """The end of a request. `due_us`: the tick that it has become; None: none. `reason`: why that has no run."""

    number: int
    job_id: str
    due_us: int | None = None
    reason: str | None = None


class Answer(NamedTuple):
    """An answer to who has made a request. `is_done`: it has become what it asks for. `is_gone`: its job is gone.
    `comes_again`: its tick will be tried again.
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

    `paused`: two columns of rows that exist, whoever has changed them. `finished`: jobs whose schedule is over, with
    its text; each row is removed unless somebody has given it another schedule since. Four are only for stores with
    executions. `released`: jobs that others may take now, and the execution of each that we have taken; None: it was
    never taken. `lost`: executions that their server does not have any more. `planned`: by job.

    The last five are only for stores that agents share. `added`: which of `jobs` are put only where there is no row,
    and what follows where there is one, which is no business of a store's. `begun`: their first states; nothing of
    these, and of `requests` with their ids, where the row is not put. `done`: requests that this batch carries out.
    `is_news`: the other agents are told to look.
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
    """The parts of a batch that a commit did not carry out. `refused`: marks of ticks that have a record already.
    `stale`: ends of runs whose tick has a newer mark. And `gone`: executions that were live and have given way to what
    was planned; when the batch is repeated, they are not told again.
    """

    refused: tuple[StoredTick, ...] = ()
    stale: tuple[StoredTick, ...] = ()
    gone: tuple[Execution, ...] = ()
    standing: tuple[StoredJob, ...] = ()
    """Rows that stand in the places of others that were to be added, and are not like them."""


@frozen
class Changes:
    """The changes of others since the last call: rows as they are now, None for a row that is gone.

    Of a store that agents share also `states`, of these jobs, and `requests`: those for our jobs that are not done, at
    most MOST_REQUESTS. `is_behind`: the store has forgotten changes that were told of already. All its rows are to be
    read anew. `is_more`: these are some of many, and the next call tells of others.
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
    """Read a length of time, in seconds. Raises ValueError for a text that is none."""
    if not isinstance(age, (str, timedelta)):
        return age
    try:
        return duration(age).total_seconds()
    except ScheduleError as exc:
        msg = f"age: {exc}"
        raise ValueError(msg) from None


def _bytes(size: int | str | None) -> int | None:
    """Read a number of bytes. Raises ValueError for a text that is none."""
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
    """How much history to keep. What is over any of the three bounds is deleted, oldest first.

    `per_job`: ended ticks of one job. `age`: seconds since the end, or "30d". `total_bytes`: bytes of all ticks
    together, roughly, or "256 MiB". None: no such bound. Ticks that run or are owed stay in any case. Raises ValueError
    for a bound that makes no sense.
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
