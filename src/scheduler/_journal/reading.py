"""What a row of a store says, or why it cannot be read. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from attrs import field, frozen

from schedule import Schedule

from .._jobs.call import call_of, on_the_loop
from .._jobs.options import DEFAULT
from .._jobs.thread_call import Call
from .._values.errors import InvalidJob, MalformedJob, UnknownTask
from .._values.policy import Policy
from .definition import definition_of

if TYPE_CHECKING:
    from .._jobs.tasks import Tasks
    from ..stores._rows import StoredJob


SHORTEST: Final = 1_000
"""Microseconds: the shortest interval that a row may ask for."""


@frozen
class Unreadable(Schedule):
    """What stands where the row's schedule cannot be read: it never comes."""

    text: str

    def __str__(self) -> str:
        return self.text

    def next(self, after: datetime) -> datetime | None:  # noqa: ARG002 - whatever it is asked
        return None


@frozen
class Reading:
    """What a row says. `error`: why its job cannot start."""

    func: Callable[..., Any]
    call: Call
    schedule: Schedule
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(factory=dict)
    policy: Policy = DEFAULT
    tags: frozenset[str] = frozenset()
    name: str | None = None
    error: str | None = None


def read(row: StoredJob, tasks: Tasks) -> Reading:
    """What the row says. One that cannot be read, or whose task nobody has registered, has an error."""
    try:
        definition = definition_of(row)
    except MalformedJob as exc:
        return unreadable(row, exc)
    error: str | None = None
    try:
        func = tasks.get(row.task)
        call = call_of(func, inline=definition.inline)
    except (UnknownTask, InvalidJob) as exc:
        func, error = _missing(str(exc)), str(exc)
        call = call_of(func, inline=definition.inline)
    return Reading(
        func,
        call,
        definition.schedule,
        definition.args,
        definition.kwargs,
        definition.policy,
        definition.tags,
        definition.name,
        error,
    )


def check_interval(id: str, interval: int | None) -> None:
    """Raise MalformedJob for an interval, in microseconds, at which a row could keep the loop busy for ever."""
    if interval is not None and interval < SHORTEST:
        msg = (
            f"stored job {id!r}: its interval of {interval} us is shorter than the {SHORTEST} us that a row may ask for"
        )
        raise MalformedJob(msg)


def unreadable(row: StoredJob, error: Exception) -> Reading:
    """The reading of a row that no job can be made of."""
    return Reading(_never, on_the_loop, Unreadable(str(row.schedule)), error=str(error))


def _never() -> None:
    msg = "the row of this job cannot be read"
    raise InvalidJob(msg)


def _missing(error: str) -> Callable[..., Any]:
    def missing(*_args: Any, **_kwargs: Any) -> None:
        raise UnknownTask(error)

    return missing
