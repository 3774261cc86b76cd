"""Schedules, and how they combine. Combinators need only `next`, so they work for your own schedules too."""

from __future__ import annotations

import abc
import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from threading import local
from typing import Final

from attrs import field, frozen
from attrs.converters import optional

from .duration import duration_text, positive
from .errors import ScheduleError, shown
from .instant import EPOCH, FIRST_INSTANT, LAST_INSTANT, MICROSECOND, utc

LONGEST_CLOSURE: Final = 10_000
"""Questions to its parts for one slot, after which a schedule counts as closed for good."""


class _Patience(local):
    """The rest of LONGEST_CLOSURE for one question: counted together, nested windows do not multiply the work."""

    left: int = 0
    is_counting: bool = False


_patience: Final = _Patience()


class Schedule(abc.ABC):
    """When something recurs. A plain value that reads no clock.

    To make your own, subclass it and write `next`. Make it frozen, with equality and hash.
    """

    __slots__ = ()

    @abc.abstractmethod
    def next(self, after: datetime) -> datetime | None:
        """Return the first slot strictly later than `after`, in UTC, or None.

        A later `after` must not get an earlier answer. Raises ScheduleError if `after` has no zone.
        """

    def bind(self, key: str) -> Schedule:  # noqa: ARG002 - most schedules are the same for every job
        """Return the schedule of job `key`: hashes of `key` give phase and jitter. Repeating changes nothing."""
        return self

    def __or__(self, other: Schedule) -> Schedule:
        if not isinstance(other, Schedule):
            return NotImplemented
        return AnyOf((self, other))

    def between(self, start: datetime | None = None, end: datetime | None = None) -> Schedule:
        """Keep slots from `start` and before `end`. Raises ScheduleError if there are none."""
        return Between(self, start, end)

    def except_(self, *windows: Window) -> Schedule:
        """Keep slots outside all `windows`. Raises ScheduleError if none are left, or for a value that is no Window."""
        return Except(self, windows)


def answer(schedule: Schedule, after: datetime) -> datetime | None:
    """Return `schedule.next(after)` in UTC. Raises ScheduleError unless that is aware and later than `after`."""
    found = schedule.next(after)
    if found is None:
        return None
    found = utc(found)
    if found <= after:
        raise ScheduleError(
            f"{schedule!r} says that {found.isoformat()} comes after {after.isoformat()}: "
            "next() must answer what is strictly later, or None for never again"
        )
    return found


def _starts(value: Schedule) -> Schedule:
    if not isinstance(value, Schedule):
        raise ScheduleError(
            f'the starts of a Window must be a Schedule, such as Cron("0 2 * * sun"), not {shown(value)}'
        )
    return value


@frozen
class Window:
    """Times in which a schedule has no slots: one opens at each slot of `starts`, for `length`.

    A window's start belongs to it, its end does not. `reason` is a note for people.
    """

    starts: Schedule = field(converter=_starts)
    length: timedelta = field(converter=positive)
    reason: str = field(default="", kw_only=True)

    def __str__(self) -> str:
        # Escapes only for what would not show: umlauts are text, a line break or half a surrogate pair is not.
        reason = json.dumps(self.reason, ensure_ascii=not self.reason.isprintable())
        return (
            f"({_operand(self.starts)} for {duration_text(self.length)}{f' because {reason}' if self.reason else ''})"
        )

    def end(self, instant: datetime) -> datetime | None:
        """Return when the window around `instant` ends, in UTC, or None outside windows."""
        instant = utc(instant)
        start = answer(self.starts, instant - self.length if instant - FIRST_INSTANT > self.length else FIRST_INSTANT)
        if start is None or start > instant:
            return None
        return start + self.length if LAST_INSTANT - start > self.length else LAST_INSTANT


def _flat(parts: Iterable[Schedule]) -> tuple[Schedule, ...]:
    found: list[Schedule] = []
    for part in parts:
        found.extend(part.parts if isinstance(part, AnyOf) else (part,))
    return tuple(found)


@frozen
class AnyOf(Schedule):
    """The slots of all its parts, each once."""

    parts: tuple[Schedule, ...] = field(converter=_flat)

    def __str__(self) -> str:
        return " | ".join(map(str, self.parts))

    def next(self, after: datetime) -> datetime | None:
        _patience.left -= len(self.parts)
        return min((found for part in self.parts if (found := answer(part, after)) is not None), default=None)

    def bind(self, key: str) -> Schedule:
        return AnyOf(part.bind(key) for part in self.parts)


@frozen
class Between(Schedule):
    """The slots of `schedule` from `start`, and before `end`."""

    schedule: Schedule
    start: datetime | None = field(converter=optional(utc))
    end: datetime | None = field(converter=optional(utc))

    def __attrs_post_init__(self) -> None:
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise ScheduleError(
                f"the end {self.end.isoformat()} is not later than the start {self.start.isoformat()}: swap them?"
            )
        # Asked from the epoch on: a schedule without a slot since then has none in the future.
        if self.next(EPOCH) is None:
            raise ScheduleError(f"{str(self)!r} never comes: {self.schedule} has no slot between its start and its end")

    def __str__(self) -> str:
        start = "" if self.start is None else f" from {self.start.isoformat()}"
        end = "" if self.end is None else f" until {self.end.isoformat()}"
        return f"{_operand(self.schedule)}{start}{end}" if start or end else f"{_operand(self.schedule)} until never"

    def next(self, after: datetime) -> datetime | None:
        after = utc(after)
        if self.start is not None and after < self.start:
            after = self.start - MICROSECOND
        found = answer(self.schedule, after)
        return None if found is None or (self.end is not None and found >= self.end) else found

    def bind(self, key: str) -> Schedule:
        return Between(self.schedule.bind(key), self.start, self.end)


def _check_window(window: object) -> None:
    if isinstance(window, Schedule):
        raise ScheduleError(
            f'except_ takes windows, and {str(window)!r} does not say how long they are: write Window(..., "2h") of it'
        )
    if not isinstance(window, Window):
        raise ScheduleError(f'except_ takes windows, such as Window(Cron("0 2 * * sun"), "2h"), not {shown(window)}')


class _Closed(ScheduleError): ...


@frozen
class Except(Schedule):
    """The slots of `schedule` in none of the `windows`."""

    schedule: Schedule
    windows: tuple[Window, ...]

    def __attrs_post_init__(self) -> None:
        for window in self.windows:
            _check_window(window)
        try:
            found = self.next(EPOCH)
        except _Closed:
            found = None
        if found is None:
            raise ScheduleError(
                f"{str(self)!r} never comes: it has no slot outside its windows. Shorten a window, or leave one out"
            )

    def __str__(self) -> str:
        return f"{_operand(self.schedule)} except {' and '.join(map(str, self.windows)) or '()'}"

    def next(self, after: datetime) -> datetime | None:
        """Return the next slot. Raises ScheduleError if windows follow windows without end."""
        after = utc(after)
        if _patience.is_counting:
            return self._search(after)
        _patience.is_counting, _patience.left = True, LONGEST_CLOSURE
        try:
            return self._search(after)
        finally:
            _patience.is_counting = False

    def _search(self, after: datetime) -> datetime | None:
        while _patience.left > 0:
            _patience.left -= 1 + len(self.windows)
            found = answer(self.schedule, after)
            ends = [end for window in self.windows if found and (end := window.end(found))]
            if found is None or not ends:
                return found
            after = max(ends) - MICROSECOND
        raise _Closed(f"{str(self)!r} has no slot outside its windows up to {after.isoformat()}: shorten a window")

    def bind(self, key: str) -> Schedule:
        return Except(self.schedule.bind(key), self.windows)


def _operand(schedule: Schedule) -> str:
    return f"({schedule})" if isinstance(schedule, AnyOf | Between | Except) else str(schedule)
