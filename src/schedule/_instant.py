"""Instants: aware datetimes at the edges, whole microseconds since the Unix epoch inside.

Integers keep a grid free of drift: float seconds have been wrong by a microsecond after a few days of adding.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from ._errors import ScheduleError

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)


def utc(value: datetime) -> datetime:
    """The same instant in UTC. Raises ScheduleError for a datetime without a zone."""
    return aware(value).astimezone(UTC)


def aware(value: datetime) -> datetime:
    """`value` itself, if it has a zone. Raises ScheduleError otherwise."""
    if not isinstance(value, datetime):
        raise ScheduleError(f"an instant must be a datetime with a zone, not {value!r}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise ScheduleError(
            f"naive datetime {value.isoformat()}: say in which zone it is meant, as in datetime(..., tzinfo=UTC) "
            'or .replace(tzinfo=ZoneInfo("Europe/Berlin"))'
        )
    return value


def micros(instant: datetime) -> int:
    """Microseconds since the Unix epoch. Raises ScheduleError for a datetime without a zone."""
    return (aware(instant) - EPOCH) // MICROSECOND


def instant(micros: int) -> datetime | None:
    """The instant in UTC; None beyond the year 9999, where datetimes end."""
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
