from __future__ import annotations

import re
from calendar import monthrange
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from attrs import field, frozen

from ._common import MICROSECOND, Schedule, ScheduleError, aware, find_zone, first_instant, shown, utc, zone_name

_INTERVAL: Final = re.compile(r"([1-9][0-9]{0,5})\s*(day|week|month|year)s?", re.IGNORECASE)
_MONTHS: Final = {"day": 0, "week": 0, "month": 1, "year": 12}
_DAYS: Final = {"day": 1, "week": 7, "month": 0, "year": 0}
HALF_A_DAY: Final = timedelta(hours=12)


def _normal(interval: str) -> str:
    found = _INTERVAL.fullmatch(interval.strip()) if isinstance(interval, str) else None
    if found is None:
        raise ScheduleError(
            f'cannot read the calendar interval {shown(interval)}: write a count and a unit, as in "1 day", "2 weeks", '
            '"3 months" or "1 year"; shorter ones are for Every'
        )
    count, unit = int(found[1]), found[2].lower()
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


@frozen
class Calendar(Schedule):
    """A slot at `origin` and after each `interval`, at the same wall time in the zone `tz` (default: the origin's).

    There are no slots before the origin. A month without the origin's day has its slot on its last day. A wall time
    that comes twice counts the first time. A skipped wall time counts at the first instant after the gap.

    Raises ScheduleError for an unknown unit or `tz`, a count above 999,999, or an origin without a zone or wall time in
    `tz`. An origin with a mere offset needs `tz`.
    """

    interval: str = field(converter=_normal)
    origin: datetime = field(converter=aware, kw_only=True)
    tz: str = field(converter=zone_name, kw_only=True)
    _zone: ZoneInfo = field(init=False, eq=False, repr=False)

    @tz.default
    def _zone_of_origin(self) -> str:
        return _zone_of(self.origin)

    @_zone.default
    def _find_zone(self) -> ZoneInfo:
        return find_zone(self.tz)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "origin", utc(self.origin))  # its zone has been read already
        try:
            self._wall(self.origin)
        except OverflowError:
            raise ScheduleError(
                f"the origin {self.origin.isoformat()} lies outside the years 1 to 9999 in {self.tz}"
            ) from None

    def __str__(self) -> str:
        zone = "" if self.tz == "UTC" else f" tz={self.tz}"
        return f"@calendar {self.interval} origin={self.origin.isoformat()}{zone}"

    def next(self, after: datetime) -> datetime | None:
        after = utc(after)
        try:
            return self._slot(self._first_after(after))
        except (OverflowError, ValueError):  # past the year 9999, where datetimes end
            return None

    def count(self, after: datetime, until: datetime) -> int | None:
        """Count slots after `after`, up to and including `until`. None: the calendar ends first."""
        after, until = utc(after), utc(until)
        try:
            found = self._first_after(until) - self._first_after(after)
            return max(0, found - self._fallen_together(after, until))
        except (OverflowError, ValueError):
            return None

    def _fallen_together(self, after: datetime, until: datetime) -> int:
        """Count slots that coincide with the slot before, where the zone leaves out a day."""
        offset = self._offset(after) + HALF_A_DAY
        if self._offset(until) < offset:  # yearly changes of clocks are smaller
            return 0
        while until - after > MICROSECOND:
            middle = after + (until - after) // 2
            after, until = (middle, until) if self._offset(middle) < offset else (after, middle)
        return max(0, self._first_after(until) - self._first_after(after) - 1)

    def _offset(self, when: datetime) -> timedelta:
        return self._wall(when) - when.replace(tzinfo=None)

    def _first_after(self, after: datetime) -> int:
        index = self._estimate(after)
        while self._slot(index) <= after:
            index += 1
        return index

    def _estimate(self, after: datetime) -> int:
        """Return the answer's index, or one less."""
        if after < self.origin:
            return 0
        count, months, days = self._step()
        start, now = self._wall(self.origin), self._wall(after)
        if days:
            elapsed = (now - start) // timedelta(days=days * count)
        else:
            elapsed = ((now.year - start.year) * 12 + now.month - start.month) // (months * count)
        return max(0, elapsed)

    def _slot(self, index: int) -> datetime:
        if index == 0:  # as it was given, even in an hour that comes twice
            return self.origin
        count, months, days = self._step()
        wall = self._wall(self.origin) + timedelta(days=days * count * index)
        return first_instant(_later(wall, months * count * index), self._zone)

    def _step(self) -> tuple[int, int, int]:
        count, unit = self.interval.rstrip("s").split()
        return int(count), _MONTHS[unit], _DAYS[unit]

    def _wall(self, when: datetime) -> datetime:
        return when.astimezone(self._zone).replace(tzinfo=None)


def _zone_of(origin: datetime) -> str:
    """Raise ScheduleError for a mere offset, which many zones share."""
    name = getattr(origin.tzinfo, "key", None) or getattr(origin.tzinfo, "zone", None)  # of zoneinfo, of pytz
    if name is not None:
        return str(name)
    if origin.tzname() == "UTC":
        return "UTC"
    raise ScheduleError(
        f"the origin {origin.isoformat()} has an offset, and no zone to count in: add one, as in "
        'tz="Europe/Berlin", or tz="UTC"'
    )


def _later(wall: datetime, months: int) -> datetime:
    year, month = divmod(wall.year * 12 + wall.month - 1 + months, 12)
    last = monthrange(year, month + 1)[1]
    return wall.replace(year=year, month=month + 1, day=min(wall.day, last))
