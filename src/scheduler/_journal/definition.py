"""Definitions as rows: strict on the way in, faithful or refused on the way out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from attrs import frozen

from schedule import Schedule, ScheduleError, parse, text_of

from .._jobs import Definition, on_the_loop
from .._shape import LARGEST, NO_KWARGS, NO_TAGS, check_text, json_text, kept, options_text, read_json, read_options
from .._values import InvalidJob, MalformedJob, Policy
from ..stores import JobPause, StoredJob

LONGEST_ID: Final = 512
NOT_PAUSED: Final = JobPause()
_END_OF_TIME: Final = 253_402_300_800_000_000
_SHOWN: Final = 200


@frozen
class Columns:
    """A row's columns, read. Tasks checks the task's name."""

    schedule: Schedule
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    policy: Policy
    inline: bool
    tags: frozenset[str]
    name: str | None


def stored_job(
    id: str, task: str, schedule: Schedule, definition: Definition, pause: JobPause = NOT_PAUSED
) -> StoredJob:
    """Return the row that reads back as the same job: equal definitions have equal rows.

    Only tuples among the arguments become lists. Raises InvalidJob, which names the argument.
    """
    _check_id(id)
    args, kwargs, tags, name = definition.args, definition.kwargs, definition.tags, definition.name
    row = StoredJob(
        id,
        task,
        _schedule_text(schedule, definition.policy.key_of(id)),
        json_text(args, "args") if args else "[]",
        json_text(dict(kwargs), "kwargs") if kwargs else "{}",
        options_text(definition.policy, definition.call is on_the_loop),
        _tags_text(tags) if tags else "[]",
        name,
        *pause,
    )
    for column, text in (("name", name), ("paused", pause.paused)):
        if text is not None:
            check_text(text, column)
    check_size(row)
    return row


def columns_of(row: StoredJob) -> Columns:
    """Raises MalformedJob, which names id, column and value."""
    column = "id"
    try:
        _check_types(row)
        _check_id(row.id)
        check_size(row)
        column = "schedule"
        schedule = _read_schedule(row.schedule)
        column = "args"
        args = () if row.args == "[]" else _read_args(row.args)
        column = "kwargs"
        kwargs = NO_KWARGS if row.kwargs == "{}" else _read_kwargs(row.kwargs)
        column = "options"
        policy, inline = read_options(row.options)
        column = "tags"
        tags = NO_TAGS if row.tags == "[]" else _read_tags(row.tags)
        column = "name"
        if row.name is not None:
            check_text(row.name, "name")
    except _Mistyped as exc:
        raise _malformed(row, exc.column, exc) from None
    except (InvalidJob, ScheduleError) as exc:
        raise _malformed(row, column, exc) from None
    return Columns(schedule, args, kwargs, policy, inline, tags, row.name)


class _Mistyped(InvalidJob):
    def __init__(self, column: str, wanted: str) -> None:
        super().__init__(f"it must be {wanted}")
        self.column = column


def _malformed(row: StoredJob, column: str, reason: Exception) -> MalformedJob:
    why = str(reason)
    if len(why) > 2 * _SHOWN:  # the fault stands at the start, the advice at the end
        why = f"{why[:_SHOWN]}...{why[-_SHOWN:]}"
    msg = f"stored job {_shown(row.id)}: {column} {_shown(getattr(row, column))}: {why}"
    return MalformedJob(msg)


def _shown(value: object) -> str:
    try:
        text = repr(value[: _SHOWN + 1] if isinstance(value, str | bytes) else value)
    except ValueError:  # a number may have thousands of digits
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _check_types(row: StoredJob) -> None:
    if {*map(type, row[:7])} != _TEXT:
        raise next(
            _Mistyped(name, "text") for name, value in zip(row._fields, row, strict=True) if type(value) is not str
        )
    if row.name is not None and type(row.name) is not str:
        raise _Mistyped("name", "text or null")
    if row.paused is not None and type(row.paused) is not str:
        raise _Mistyped("paused", "text or null")
    until = row.paused_until_us
    if until is not None and (type(until) is not int or not 0 <= until < _END_OF_TIME):
        raise _Mistyped("paused_until_us", "null or whole microseconds from 1970 on, before the year 10000")


def _check_id(id: str) -> None:
    if not isinstance(id, str) or not 1 <= len(id) <= LONGEST_ID or not id.isprintable():
        msg = f"id must be 1 to {LONGEST_ID} printable characters, not {_shown(id)}"
        raise InvalidJob(msg)


def check_size(row: StoredJob) -> None:
    """Raise InvalidJob for too much text."""
    size = sum(map(len, row[:7])) + len(row.name or "") + len(row.paused or "")
    if size > LARGEST:
        msg = f"its texts are {size} characters together: at most {LARGEST} can be stored"
        raise InvalidJob(msg)


@lru_cache(maxsize=1024)  # as with options, few sets serve many jobs
def _tags_text(tags: frozenset[str]) -> str:
    return json_text(sorted(tags), "tags")


def _schedule_text(schedule: Schedule, id: str) -> str:
    try:
        return text_of(schedule, id)
    except ScheduleError as exc:
        msg = f"schedule: {exc}"
        raise InvalidJob(msg) from None


@kept(4096)
def _read_schedule(text: str) -> Schedule:
    return parse(text)


def _read_args(text: str) -> tuple[Any, ...]:
    found = read_json(text)
    if not isinstance(found, list):
        msg = "it must be a JSON array of arguments"
        raise InvalidJob(msg)
    return tuple(found)


def _read_kwargs(text: str) -> Mapping[str, Any]:
    found = read_json(text)
    if not isinstance(found, dict):
        msg = "it must be a JSON object from names to arguments"
        raise InvalidJob(msg)
    return found or NO_KWARGS


@kept(1024)
def _read_tags(text: str) -> frozenset[str]:
    found = read_json(text)
    if not isinstance(found, list) or not all(isinstance(tag, str) for tag in found):
        msg = "it must be a JSON array of texts"
        raise InvalidJob(msg)
    return frozenset(found)


_TEXT: Final = {str}
