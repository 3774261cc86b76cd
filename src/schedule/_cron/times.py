"""A cron expression as sets, and its next wall time: no zone, no change of clocks."""

from __future__ import annotations

from datetime import MAXYEAR, datetime
from typing import Final

from attrs import frozen

from .days import Days
from .field import next_value

CALENDAR_CYCLE: Final = 400
"""Years after which the Gregorian calendar repeats: a day not in one cycle never comes."""


@frozen
class Times:
    seconds: int
    minutes: int
    hours: int
    days: Days
    months: int
    years: int | None
    """None: all years."""

    is_fixed: bool
    """Neither minute nor hour starts with a star. Decides what a change of clocks means."""

    def next(self, wall: datetime) -> datetime | None:
        """Return the first time from `wall`, naive and in whole seconds."""
        if self.has_day(wall):
            found = self._later_that_day(wall)
            if found is not None:
                return found
        return self._first_of_a_day(wall.year, wall.month, wall.day + 1)

    def has_day(self, wall: datetime) -> bool:
        return bool(self.days_of(wall.year, wall.month) >> wall.day & 1)

    def days_of(self, year: int, month: int) -> int:
        if not self.months >> month & 1 or not (self.years is None or self.years >> year & 1):
            return 0
        return self.days.of(year, month)

    def _later_that_day(self, wall: datetime) -> datetime | None:
        hour, minute, second = wall.hour, wall.minute, wall.second
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1:
                second = next_value(self.seconds, second)
                if second >= 0:
                    return wall.replace(second=second)
            minute = next_value(self.minutes, minute + 1)
            if minute >= 0:
                return wall.replace(minute=minute, second=next_value(self.seconds, 0))
        hour = next_value(self.hours, hour + 1)
        return None if hour < 0 else self._first(wall.year, wall.month, wall.day, hour)

    def _first_of_a_day(self, year: int, month: int, day: int) -> datetime | None:
        last_year = min(year + CALENDAR_CYCLE, MAXYEAR)
        while year <= last_year:
            if self.years is not None and not self.years >> year & 1:
                year, month, day = next_value(self.years, year), 1, 1
                if year < 0:
                    return None
            found = next_value(self.months, month)
            if found < 0:
                year, month, day = year + 1, 1, 1
                continue
            month, day = found, day if found == month else 1
            found = next_value(self.days.of(year, month), day)
            if found >= 0:
                return self._first(year, month, found, next_value(self.hours, 0))
            month, day = month + 1, 1
        return None

    def _first(self, year: int, month: int, day: int, hour: int) -> datetime:
        minute, second = next_value(self.minutes, 0), next_value(self.seconds, 0)
        return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - a wall time
