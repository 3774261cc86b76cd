"""Count the slots of a cron expression by arithmetic.

Every day named has equally many wall times, so whole months count at once. Counting both ends from a day before needs
no special case for a start inside an hour that comes twice:

    count(start, end) = slots(day before start, end) - slots(day before start, start)
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from .._common import SECOND
from .times import Times

DAY: Final = timedelta(days=1)
MAX_SPAN: Final = 100 * DAY
"""Each day is checked for a change of clocks, a hundred in 0.1 ms. Ten thousand schedules may share a gap."""

_BEFORE: Final = 2 * DAY
"""Longer than any stretch of wall time that came twice."""

Stretch = tuple[datetime, datetime, timedelta]
"""Two instants, naive UTC, between which clocks keep one offset."""


def count(times: Times, zone: ZoneInfo, after: datetime, until: datetime) -> int:
    """Count slots as `Cron.count` does, between UTC instants at most MAX_SPAN apart.

    Raises OverflowError near the ends of the calendar.
    """
    first, last = (_second(when) + SECOND for when in (after, until))
    base = first - _BEFORE
    return _slots(times, _stretches(zone, base, last)) - _slots(times, _stretches(zone, base, first))


def _second(when: datetime) -> datetime:
    return when.replace(microsecond=0, tzinfo=None)


def _stretches(zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[Stretch]:
    offset = _offset(zone, start)
    at = start
    while at < end:
        following = min(at + DAY, end)
        later = _offset(zone, following)
        if later != offset:
            changed = _change(zone, at, following, offset)
            yield start, changed, offset
            start, offset = changed, _offset(zone, changed)
            following = changed
        at = following
    yield start, end, offset


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    offset = instant.replace(tzinfo=UTC).astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def _change(zone: ZoneInfo, low: datetime, high: datetime, offset: timedelta) -> datetime:
    while high - low > SECOND:
        middle = low + (high - low) // 2
        middle = middle.replace(microsecond=0)
        low, high = (middle, high) if _offset(zone, middle) == offset else (low, middle)
    return high


def _slots(times: Times, stretches: Iterator[Stretch]) -> int:
    found = 0
    shown: datetime | None = None
    for start, end, offset in stretches:
        first, last = start + offset, end + offset
        if shown is not None and times.is_fixed:
            if shown < first:  # skipped: one slot where the gap ends, unless there is one anyway
                found += bool(_walls(times, shown, first)) and not _walls(times, first, first + SECOND)
            first = max(first, min(shown, last))
        found += _walls(times, first, last)
        shown = last if shown is None else max(shown, last) if times.is_fixed else last
    return found


def _walls(times: Times, start: datetime, end: datetime) -> int:
    if end <= start:
        return 0
    if start.date() == end.date():
        return (_in_day(times, end) - _in_day(times, start)) * times.has_day(start)
    a_day = times.seconds.bit_count() * times.minutes.bit_count() * times.hours.bit_count()
    found = (a_day - _in_day(times, start)) * times.has_day(start) + _in_day(times, end) * times.has_day(end)
    return found + a_day * _days(times, start, end)


def _in_day(times: Times, wall: datetime) -> int:
    seconds, minutes = times.seconds.bit_count(), times.minutes.bit_count()
    found = _below(times.hours, wall.hour) * minutes * seconds
    if times.hours >> wall.hour & 1:
        found += _below(times.minutes, wall.minute) * seconds
        if times.minutes >> wall.minute & 1:
            found += _below(times.seconds, wall.second)
    return found


def _below(values: int, value: int) -> int:
    return (values & (1 << value) - 1).bit_count()


def _days(times: Times, start: datetime, end: datetime) -> int:
    found, month = 0, (start.year, start.month)
    while month <= (end.year, end.month):
        year, number = month
        days = times.days_of(year, number)
        if month == (start.year, start.month):
            days &= ~((2 << start.day) - 1)
        if month == (end.year, end.month):
            days &= (1 << end.day) - 1
        found += days.bit_count()
        month = (year, number + 1) if number < 12 else (year + 1, 1)  # noqa: PLR2004 - months
    return found
