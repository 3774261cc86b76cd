"""New jobs, many in one call: each is read and checked before any is added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from attrs import Factory, define

from schedule import Every, Schedule

from .._jobs import Job
from .._journal import new_row
from .._plan import Plan
from .._shape import NO_KWARGS, NO_TAGS, SomeSchedule, args_of, id_of, kwargs_of, schedule_of, tags_of, text_of
from .._values import DuplicateJob, InvalidJob, shown
from ..stores import StoredJob


class NewJob(NamedTuple):
    """A job for `Scheduler.add_many`, with its own options of `Scheduler.add`.

    A plain tuple in this order works too. Values left out at its end have the defaults here.
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
"""A NewJob, or a plain tuple of its first fields."""


def listed(jobs: Iterable[SomeJob]) -> list[SomeJob]:
    """Raises InvalidJob unless they are a list."""
    if isinstance(jobs, (str, bytes, Mapping)) or not isinstance(jobs, Iterable):
        msg = f'jobs must be a list of jobs, such as [("a", "@every 10s"), ("b", "@every 1m", (1,))], not {shown(jobs)}'
        raise InvalidJob(msg)
    return list(jobs)


class NewJobReader:
    def __init__(self, tags: Iterable[str]) -> None:
        self._tags = tags_of(tags) if tags else NO_TAGS
        self._schedules: dict[str, Schedule] = {}

    def read(
        self, job: SomeJob
    ) -> tuple[str | None, Schedule, tuple[Any, ...], Mapping[str, Any], str | None, frozenset[str]]:
        """Raises InvalidJob or ScheduleError."""
        if not isinstance(job, (tuple, list)) or not _LEAST <= len(job) <= len(NewJob._fields):
            msg = f"it must be a NewJob, or a tuple such as (id, schedule) or (id, schedule, args), not {shown(job)}"
            raise InvalidJob(msg)
        values: list[Any] = [*job, *_LEFT_OUT[len(job)]]  # a NewJob of it would cost three times as much
        id, given, args, kwargs, name, tags = values
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
    error.args = (f"jobs[{index}]: {error}",)
    raise error


def twice(id: str, index: int) -> DuplicateJob:
    msg = f"its id {id!r} is that of jobs[{index}] too"
    return DuplicateJob(msg)


_LEAST: Final = 2
_LEFT_OUT: Final[tuple[tuple[Any, ...], ...]] = tuple(
    NewJob("", "")[count:] for count in range(len(NewJob._fields) + 1)
)
"""The values that a tuple leaves out, by its length."""


@define
class Drafts:
    by_id: dict[str, Job] = Factory(dict)
    dues: list[int | None] = Factory(list)
    """On each planner's base. None: only at once."""
    rows: list[StoredJob] = Factory(list)
    at_once: dict[str, None] = Factory(dict)
    unchanged: dict[str, Job] = Factory(dict)
    ids: dict[str, None] = Factory(dict)

    def in_order(self, answer: list[Job]) -> list[Job]:
        if not self.unchanged:
            return answer
        found = {**self.unchanged, **dict(zip(self.by_id, answer, strict=True))}
        return [found[id] for id in self.ids]

    def plan(self, index: int, job: Job) -> Plan:
        return job.schedule, job.planner, job.id in self.at_once, self.dues[index], job.dated_us is not None


def row_of_new(job: Job) -> StoredJob:
    """Raises InvalidJob if the job cannot be stored."""
    row = new_row(job)
    job.schedule_text = row.schedule
    return row


def refuse_without_id(task: str | None) -> None:
    """Raise InvalidJob if the job is stored: the next process could not find it without an id."""
    if task is not None:
        msg = "a stored job needs an id: it is how the next run of this program finds it again"
        raise InvalidJob(msg)
