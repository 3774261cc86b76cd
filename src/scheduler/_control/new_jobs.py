"""New jobs, many in one call: each is read and checked before any of them is added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from attrs import Factory, define

from schedule import Every, Schedule

from .._jobs import NO_KWARGS, NO_TAGS, Job, SomeSchedule, args_of, id_of, kwargs_of, schedule_of, tags_of, text_of
from .._journal import new_row
from .._plan import Plan
from .._values import DuplicateJob, InvalidJob, shown
from ..stores import StoredJob


class NewJob(NamedTuple):
    """A job for `Scheduler.add_many`: the options of `Scheduler.add` that are its own.

    A plain tuple in this order works too. It may leave out values at its end; then the defaults here count.
    """

    id: str | None
    schedule: SomeSchedule
    args: Iterable[Any] = ()
    kwargs: Mapping[str, Any] | None = None
    name: str | None = None
    tags: Iterable[str] = ()


SomeJob = (
    NewJob
    | tuple[str | None, SomeSchedule]
    | tuple[str | None, SomeSchedule, Iterable[Any]]
    | tuple[str | None, SomeSchedule, Iterable[Any], Mapping[str, Any] | None]
    | tuple[str | None, SomeSchedule, Iterable[Any], Mapping[str, Any] | None, str | None]
)
"""A new job as users write it: a NewJob, or a plain tuple of its first fields."""


def listed(jobs: Iterable[SomeJob]) -> list[SomeJob]:
    """List the jobs. Raises InvalidJob for what is no list of jobs."""
    if isinstance(jobs, (str, bytes, Mapping)) or not isinstance(jobs, Iterable):
        msg = f'jobs must be a list of jobs, such as [("a", "@every 10s"), ("b", "@every 1m", (1,))], not {shown(jobs)}'
        raise InvalidJob(msg)
    return list(jobs)


class Reader:
    """Reads the new jobs of one call. `tags` are those of all."""

    def __init__(self, tags: Iterable[str]) -> None:
        self._tags = tags_of(tags) if tags else NO_TAGS
        self._schedules: dict[str, Schedule] = {}
        """Schedules by text: many jobs have the same."""

    def read(
        self, job: SomeJob
    ) -> tuple[str | None, Schedule, tuple[Any, ...], Mapping[str, Any], str | None, frozenset[str]]:
        """Return the fields of a NewJob as a Job takes them. Raises InvalidJob or ScheduleError."""
        if not isinstance(job, (tuple, list)) or not _LEAST <= len(job) <= len(NewJob._fields):
            msg = f"it must be a NewJob, or a tuple such as (id, schedule) or (id, schedule, args), not {shown(job)}"
            raise InvalidJob(msg)
        id, given, args, kwargs, name, tags = NewJob(*job)
        if id is not None and (type(id) is not str or not id):
            id_of(id)
        return (
            id,
            given if type(given) is Every else self._schedule(given),
            args if type(args) is tuple else args_of(args),
            NO_KWARGS if kwargs is None else kwargs_of(kwargs),
            name if name is None else text_of("name", name),
            self._tags | tags_of(tags) if tags else self._tags,
        )

    def _schedule(self, given: SomeSchedule) -> Schedule:
        if type(given) is not str:
            return schedule_of(given)
        schedule = self._schedules.get(given)
        if schedule is None:
            schedule = self._schedules[given] = schedule_of(given)
        return schedule


def refuse(index: int, error: Exception) -> NoReturn:
    """Raise the error of the job at that index, with the index in its text."""
    error.args = (f"jobs[{index}]: {error}",)
    raise error


def twice(id: str, index: int) -> DuplicateJob:
    """Return the error of an id that comes twice in one call."""
    msg = f"its id {id!r} is that of jobs[{index}] too"
    return DuplicateJob(msg)


_LEAST: Final = 2
"""The least that a tuple has: an id and a schedule."""


@define
class Drafts:
    """Jobs that are checked and planned, and not added yet, in their order."""

    by_id: dict[str, Job] = Factory(dict)
    dues: list[int | None] = Factory(list)
    """When each job starts first, on its planner's base. None: only at once."""
    rows: list[StoredJob] = Factory(list)
    """The rows of the jobs, if they will be stored."""
    at_once: dict[str, None] = Factory(dict)
    """Ids of jobs that start at once."""
    unchanged: dict[str, Job] = Factory(dict)
    """Jobs that stay, because they are as they should be."""
    ids: dict[str, None] = Factory(dict)
    """Ids of all jobs, in the order in which they were given."""

    def in_order(self, answer: list[Job]) -> list[Job]:
        """Return the added jobs and the jobs that stay, in the order in which they were given."""
        if not self.unchanged:
            return answer
        found = {**self.unchanged, **dict(zip(self.by_id, answer, strict=True))}
        return [found[id] for id in self.ids]

    def plan(self, index: int, job: Job) -> Plan:
        """Return how the job at that index starts."""
        return job.schedule, job.planner, job.id in self.at_once, self.dues[index], job.dated_us is not None


def row_of_new(job: Job) -> StoredJob:
    """Return the row of a new stored job. Raises InvalidJob for a job that cannot be stored."""
    row = new_row(job)
    job.schedule_text = row.schedule
    return row


def refuse_without_id(task: str | None) -> None:
    """Raise InvalidJob for a stored job without an id: the next process could not find it again."""
    if task is not None:
        msg = "a stored job needs an id: it is how the next run of this program finds it again"
        raise InvalidJob(msg)
