"""The starts of a schedule around an instant. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from schedule import After, Missed, Schedule, catch_up

_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST_STRIDE: Final = timedelta(minutes=1)
_GROWS: Final = 16
_LONGEST: Final = timedelta(days=365 * 30)
_FIRST: Final = datetime(1, 1, 2, tzinfo=UTC)
"""Before it, an instant of some time zone lies before year 1."""


def is_slot(schedule: Schedule, at: datetime) -> bool:
    """Return whether the schedule has a start there. An interval counted from ends has none of its own."""
    return type(schedule) is not After and at > _FIRST and schedule.next(at - _MICROSECOND) == at


def slot_after(schedule: Schedule, at: datetime) -> datetime | None:
    return None if type(schedule) is After else schedule.next(at)


def slot_before(schedule: Schedule, at: datetime) -> datetime | None:
    """Return the last start before `at`, looking back thirty years at most."""
    stride = _FIRST_STRIDE
    while type(schedule) is not After and stride <= min(_LONGEST, at - _FIRST):
        first = schedule.next(at - stride)
        if first is not None and first < at:
            caught = catch_up(schedule, first, at - _MICROSECOND, Missed.LATEST, grace=timedelta(0))
            return caught.run[-1]
        stride *= _GROWS
    return None
