from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

from attrs import frozen

from schedule import Schedule

from .._jobs import Definition, Tasks, call_of, on_the_loop
from .._values import InvalidJob, MalformedJob, UnknownTask
from ..stores import StoredJob
from .definition import columns_of

SHORTEST: Final = 1_000
"""Microseconds: the shortest interval of a row."""


@frozen
class Unreadable(Schedule):
    text: str

    def __str__(self) -> str:
        return self.text

    def next(self, after: datetime) -> datetime | None:  # noqa: ARG002 - the answer is always None
        return None


class Reading(NamedTuple):
    """A row as read. `error`: why its job cannot start."""

    schedule: Schedule
    definition: Definition
    error: str | None = None

    @property
    def is_readable(self) -> bool:
        """If so, an error means that the task is missing."""
        return type(self.schedule) is not Unreadable


def read(row: StoredJob, tasks: Tasks) -> Reading:
    """An unreadable row or an unregistered task is an `error`."""
    try:
        columns = columns_of(row)
    except MalformedJob as exc:
        return unreadable(row, exc)
    error: str | None = None
    try:
        func = tasks.get(row.task)
        call = call_of(func, inline=columns.inline)
    except (UnknownTask, InvalidJob) as exc:
        func, error = _missing(str(exc)), str(exc)
        call = call_of(func, inline=columns.inline)
    definition = Definition(func, call, columns.args, columns.kwargs, columns.policy, columns.tags, columns.name)
    return Reading(columns.schedule, definition, error)


def check_interval(id: str, interval: int | None) -> None:
    """Raise MalformedJob if microseconds are so few that the loop would never rest."""
    if interval is not None and interval < SHORTEST:
        msg = (
            f"stored job {id!r}: its interval of {interval} us is shorter than the {SHORTEST} us that a row may ask for"
        )
        raise MalformedJob(msg)


def unreadable(row: StoredJob, error: Exception) -> Reading:
    return Reading(Unreadable(str(row.schedule)), Definition(_never, on_the_loop), str(error))


def _never() -> None:
    msg = "the row of this job cannot be read"
    raise InvalidJob(msg)


def _missing(error: str) -> Callable[..., Any]:
    def missing(*_args: Any, **_kwargs: Any) -> None:
        raise UnknownTask(error)

    return missing
