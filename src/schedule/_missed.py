"""Missed slots passed while no scheduler ran, as in downtime, a suspend or a clock step.

With slots each minute and downtime from 12:00 to 12:04, at 12:04:10:

    slots     12:00   12:01   12:02   12:03   12:04            12:05
    SKIP      -       -       -       -       run if the grace allows 10 s
    LATEST    -       -       -       -       run, however late
    ALL       run     run     run     run     run, oldest first; the newest `cap`

A gap may hold millions of slots: formulas count them, and bisection finds the newest, as `next` never goes back.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import Final, Protocol, assert_never

from attrs import frozen

from ._after import After
from ._calendar import Calendar
from ._common import EPOCH, MICROSECOND, AnyOf, Between, Schedule, ScheduleError, answer, micros, utc
from ._cron import Cron
from ._every import Every

COUNTED: Final = 32
"""Slots counted without a formula. With ten thousand schedules that takes seconds; more would stop a loop for longer.
"""


class Missed(Enum):
    """Which missed slots run."""

    SKIP = "skip"
    """The newest, if late by at most the grace."""
    LATEST = "latest"
    """The newest, however late."""
    ALL = "all"
    """The newest up to a cap, oldest first."""


@frozen(kw_only=True)
class Catchup:
    """The slots to run now, oldest first, and how many others there were."""

    run: tuple[datetime, ...]
    missed: int
    exact: bool
    """False: `missed` is a lower bound."""
    first_missed: datetime | None
    last_missed: datetime | None


def catch_up(
    schedule: Schedule, due: datetime, now: datetime, policy: Missed, *, grace: timedelta, cap: int = 100
) -> Catchup:
    """Return the slots to run, from `due` (the earliest not run) to `now`, both included.

    `After` has one slot, since the next depends on its run. If `due` is later than `now`, nothing is due or missed.

    Raises ScheduleError for datetimes without a zone, a negative cap, or a schedule that answers wrongly.
    """
    due, now = utc(due), utc(now)
    if cap < 0:
        raise ScheduleError(f"cap {cap} is negative: it is the number of slots to run")
    if due > now:
        return Catchup(run=(), missed=0, exact=True, first_missed=None, last_missed=None)
    slots = _slots(schedule, due, now)
    match policy:
        case Missed.SKIP:
            wanted = 1 if now - slots.newest(1)[0] <= grace else 0
        case Missed.LATEST:
            wanted = 1
        case Missed.ALL:
            wanted = cap
        case _:
            assert_never(policy)
    return _split(slots, wanted)


class _Slots(Protocol):
    """The slots of one gap. The first, `due`, may be off the schedule, as a first start can."""

    @property
    def due(self) -> datetime: ...

    def newest(self, count: int) -> list[datetime]: ...

    def count(self, last: datetime) -> tuple[int, bool]:
        """Count up to and including `last`. False: a lower bound."""


def _slots(schedule: Schedule, due: datetime, now: datetime) -> _Slots:
    match schedule:
        case After():
            return _Lone(due)
        case Every():
            return _Grid(schedule, due, schedule.index(micros(due)), schedule.index(micros(now)))
        case _:
            return _Searched(schedule, due, now)


def _split(slots: _Slots, wanted: int) -> Catchup:
    newest = slots.newest(wanted + 1)
    if len(newest) <= wanted:
        return Catchup(run=tuple(newest), missed=0, exact=True, first_missed=None, last_missed=None)
    last_missed, *run = newest
    missed, exact = slots.count(last_missed)
    return Catchup(run=tuple(run), missed=missed, exact=exact, first_missed=slots.due, last_missed=last_missed)


@frozen
class _Lone:
    due: datetime

    def newest(self, count: int) -> list[datetime]:
        return [self.due][:count]

    def count(self, last: datetime) -> tuple[int, bool]:  # noqa: ARG002 - there is but one
        return 1, True


@frozen
class _Grid:
    every: Every
    due: datetime
    start: int
    stop: int

    def newest(self, count: int) -> list[datetime]:
        indexes = range(max(self.start, self.stop - count), self.stop)
        found = [EPOCH + MICROSECOND * self.every.slot(index) for index in indexes]
        return found if len(found) == count else [self.due, *found]

    def count(self, last: datetime) -> tuple[int, bool]:
        return 1 + self.every.index(micros(last)) - self.start, True


def _count(schedule: Schedule, after: datetime, until: datetime) -> tuple[int, bool]:
    """Count slots after `after`, up to and including `until`. False: a lower bound."""
    if after >= until:
        return 0, True
    least, is_exact = _counted(schedule, after, until)
    if is_exact:
        return least, True
    walked, slot = 0, answer(schedule, after)
    while slot is not None and slot <= until:
        if walked == COUNTED:
            return max(walked, least), False
        walked, slot = walked + 1, answer(schedule, slot)
    return walked, True


def _counted(schedule: Schedule, after: datetime, until: datetime) -> tuple[int, bool]:
    """Count by a formula. Exact types only: a user's subclass may answer anything."""
    kind = type(schedule)
    if isinstance(schedule, Every) and kind is Every:
        return schedule.index(micros(until)) - schedule.index(micros(after)), True
    if isinstance(schedule, Cron) and kind is Cron:
        return schedule.count(after, until) or (0, False)
    if isinstance(schedule, Calendar) and kind is Calendar:
        found = schedule.count(after, until)
        return found or 0, found is not None
    if isinstance(schedule, Between) and kind is Between:
        start = after if schedule.start is None else max(after, schedule.start - MICROSECOND)
        end = until if schedule.end is None else min(until, schedule.end - MICROSECOND)
        return _count(schedule.schedule, start, end)
    if isinstance(schedule, AnyOf) and kind is AnyOf:
        return max(_counted(part, after, until)[0] for part in schedule.parts), False
    return 0, False


@frozen
class _Searched:
    schedule: Schedule
    due: datetime
    now: datetime

    def newest(self, count: int) -> list[datetime]:
        found: list[datetime] = []
        end, spacing = self.now, self._spacing()
        while len(found) < count and end >= self.due:
            found.append(self._newest(end, spacing))
            end = found[-1] - MICROSECOND
        return found[::-1]

    def count(self, last: datetime) -> tuple[int, bool]:
        found, is_exact = _count(self.schedule, self.due, last)
        return 1 + found, is_exact

    def _spacing(self) -> timedelta:
        return self._next(self.due, self.now + MICROSECOND) - self.due

    def _next(self, after: datetime, end: datetime) -> datetime:
        found = answer(self.schedule, after)
        return end if found is None else min(found, end)

    def _newest(self, end: datetime, spacing: timedelta) -> datetime:
        """Search backwards in growing strides, then by bisection."""
        beyond = end + MICROSECOND
        low, high, stride = self.due, end, spacing
        while low < end - stride:
            slot = self._next(end - stride, beyond)
            if slot < beyond:
                low = slot
                break
            high, stride = end - stride, stride * 2
        while (slot := self._next(low, beyond)) < beyond:
            low = slot
            middle = low + (high - low) // 2
            if (slot := self._next(middle, beyond)) < beyond:
                low = slot
            else:
                high = middle
        return low
