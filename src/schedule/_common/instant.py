"""Instants: aware datetimes at the edges, whole microseconds since the Unix epoch inside.

Integers keep a grid free of drift. Within the bounds below, sums of a few durations fit 64 bits, as in stores.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from .errors import ScheduleError, shown

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

FIRST_INSTANT: Final = datetime.min.replace(tzinfo=UTC)

LAST_INSTANT: Final = datetime.max.replace(tzinfo=UTC)

LONGEST_DURATION: Final = timedelta(days=(LAST_INSTANT - FIRST_INSTANT).days)
"""Whole days, so that a float of seconds is exact."""


def utc(value: datetime) -> datetime:
    """Return the instant in UTC. Raises ScheduleError without a zone, or outside the years 1 to 9999."""
    try:
        return aware(value).astimezone(UTC)
    except OverflowError:
        raise ScheduleError(f"the instant {value.isoformat()} lies outside the years 1 to 9999 in UTC") from None


def aware(value: datetime) -> datetime:
    """Raise ScheduleError if `value` has no zone."""
    if not isinstance(value, datetime):
        raise ScheduleError(f"an instant must be a datetime with a zone, not {shown(value)}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise ScheduleError(
            f"naive datetime {value.isoformat()}: say in which zone it is meant, as in datetime(..., tzinfo=UTC) "
            'or .replace(tzinfo=ZoneInfo("Europe/Berlin"))'
        )
    return value


def micros(instant: datetime) -> int:
    """Convert to microseconds since the Unix epoch. Raises as `utc`."""
    return (utc(instant) - EPOCH) // MICROSECOND


def instant(micros: int) -> datetime | None:
    """Convert to UTC; None beyond the year 9999."""
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
