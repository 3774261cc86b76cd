"""The two day fields of a cron expression together, a month at a time.

A month's days are a set, bit d for day d. Weekdays repeat every seven bits.
"""

from __future__ import annotations

from calendar import isleap
from collections.abc import Callable
from datetime import date
from functools import lru_cache, reduce
from operator import or_
from typing import Final

from attrs import frozen

from .croniter import Rare, is_rare, read_day, read_weekday
from .field import DAY, WEEKDAY, Field, starred, values

_LENGTHS: Final = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EVERY_WEEK: Final = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28
_READERS: Final[dict[Field, Callable[[str], Rare]]] = {DAY: read_day, WEEKDAY: read_weekday}
_COMMON: Final = Rare()


@frozen
class Days:
    dates: int
    weekdays: int
    is_either: bool
    rare_dates: Rare = _COMMON
    rare_weekdays: Rare = _COMMON

    def of(self, year: int, month: int) -> int:
        first, length = month_shape(year, month)
        whole = (2 << length) - 2
        if self.dates == DAY.every and self.weekdays == WEEKDAY.every:
            return whole
        week = (self.weekdays >> first | self.weekdays << 7 - first) & 0x7F
        by_date, by_weekday = self.dates, week * _EVERY_WEEK << 1
        if self.rare_dates is not _COMMON:
            by_date |= _rare_dates(self.rare_dates, first, length)
        if self.rare_weekdays is not _COMMON:
            by_weekday |= _rare_weekdays(self.rare_weekdays, first, length)
        return (by_date | by_weekday if self.is_either else by_date & by_weekday) & whole


@lru_cache(maxsize=1024)
def days(day: str, weekday: str) -> Days:
    """Raise ScheduleError if a field is unreadable."""
    day, weekday = ("*" if text == "?" else text for text in (day, weekday))
    dates, rare_dates = _read(DAY, day)
    weekdays, rare_weekdays = _read(WEEKDAY, weekday)
    is_either = not (starred(day) or starred(weekday))
    return Days(dates | rare_dates.values, weekdays, is_either, rare_dates, rare_weekdays)


def _read(field: Field, text: str) -> tuple[int, Rare]:
    if not is_rare(field, text):
        return values(field, text), _COMMON
    common = ",".join(part for part in text.split(",") if not is_rare(field, part))
    rare = [_READERS[field](part) for part in text.split(",") if is_rare(field, part)]
    together = Rare(
        reduce(or_, (each.values for each in rare)),
        any(each.last for each in rare),
        tuple(sorted({day for each in rare for day in each.nearest})),
        tuple(sorted({nth for each in rare for nth in each.nth})),
    )
    return values(field, common) if common else 0, together


def _rare_dates(rare: Rare, first: int, length: int) -> int:
    found = 1 << length if rare.last else 0
    for day in rare.nearest:
        found |= 1 << _nearest(min(day, length), first, length)
    return found


def _nearest(day: int, first: int, length: int) -> int:
    match (first + day - 1) % 7:
        case 6:  # Saturday
            return day - 1 if day > 1 else day + 2
        case 0:  # Sunday
            return day + 1 if day < length else day - 2
        case _:
            return day


def _rare_weekdays(rare: Rare, first: int, length: int) -> int:
    found = 0
    for weekday, which in rare.nth:
        earliest = 1 + (weekday - first) % 7
        found |= 1 << (earliest + (length - earliest) // 7 * 7 if which < 0 else earliest + (which - 1) * 7)
    return found


@lru_cache(maxsize=1024)
def month_shape(year: int, month: int) -> tuple[int, int]:
    """Return the weekday of the first, 0 being Sunday, and the month's length."""
    length = 29 if month == 2 and isleap(year) else _LENGTHS[month]  # noqa: PLR2004 - February
    return date(year, month, 1).isoweekday() % 7, length
