"""One field of a cron expression, as a set of values: an integer with bit v for value v."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from attrs import frozen

from .._common import ScheduleError, item_meant

_ITEM: Final = re.compile(r"(?:(\*)|([0-9]{1,4}|[a-z]{3})(?:-([0-9]{1,4}|[a-z]{3}))?)(?:/([0-9]{1,4}))?", re.IGNORECASE)


@frozen(eq=False)  # each is unique, and a key of caches
class Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    alias: int | None = None
    """A second number for `low`: 7 is Sunday too."""

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    @property
    def numbers(self) -> str:
        if self.alias is None:
            return f"{self.low} to {self.high}"
        return f"{self.low} to {self.high}, or {self.alias} for {self.names[0]} too"

    @property
    def every(self) -> int:
        return (2 << self.high) - (1 << self.low)


SECOND: Final = Field("second", 0, 59)
MINUTE: Final = Field("minute", 0, 59)
HOUR: Final = Field("hour", 0, 23)
DAY: Final = Field("day-of-month", 1, 31)
MONTH: Final = Field("month", 1, 12, tuple("jan feb mar apr may jun jul aug sep oct nov dec".split()))
WEEKDAY: Final = Field("day-of-week", 0, 6, tuple("sun mon tue wed thu fri sat".split()), alias=7)
YEAR: Final = Field("year", 1970, 2099)


@frozen
class Item:
    """Part of a field's list. If `last` is below `first`, it runs past the end."""

    first: int
    last: int
    step: int
    is_star: bool = False
    is_range: bool = False

    def values(self, field: Field) -> list[int]:
        last = self.last + field.size if self.last < self.first else self.last
        return [field.low + (value - field.low) % field.size for value in range(self.first, last + 1, self.step)]


def starred(text: str) -> bool:
    """Whether a field begins with a star: a wildcard, as in Debian's cron."""
    return text.startswith(("*", "?"))


def item(field: Field, text: str) -> Item:
    """Raise ScheduleError if a part of a list is unreadable."""
    found = _ITEM.fullmatch(text)
    if found is None:
        raise _unreadable(field, text)
    star, first_text, last_text, step_text = found.groups()
    step = int(step_text or 1)
    if step == 0:
        raise ScheduleError(f"{field.name} {text!r} has a step of 0: steps count from 1")
    if star:
        return Item(field.low, field.high, step, is_star=True)
    first = _value(field, first_text, text)
    if last_text:
        return Item(first, _value(field, last_text, text), step, is_range=True)
    if step_text:
        return Item(first, field.high, step)
    return Item(first, first, step)


@lru_cache(maxsize=4096)
def values(field: Field, text: str) -> int:
    """Return the set that a text names. Raises ScheduleError if unreadable."""
    found = 0
    for part in text.split(","):
        for value in item(field, part).values(field):
            found |= 1 << value
    return found


def next_value(values: int, at: int) -> int:
    """Return the smallest value from `at`; -1 if none."""
    rest = values >> at
    return at + (rest & -rest).bit_length() - 1 if rest else -1


def _value(field: Field, word: str, text: str) -> int:
    if word.isdigit():
        value = int(word)
    elif word.lower() in field.names:
        value = field.low + field.names.index(word.lower())
    else:
        raise _unreadable(field, text)
    if not field.low <= value <= field.high and value != field.alias:
        raise ScheduleError(f"{field.name} {text!r} is out of range: use {field.numbers}")
    return value


def _unreadable(field: Field, text: str) -> ScheduleError:
    if meant := item_meant(text, field.names):
        return ScheduleError(f"cannot read {text!r} as {field.name}: did you mean {meant!r}?")
    names = f", names ({field.names[0]} to {field.names[-1]})" if field.names else ""
    return ScheduleError(
        f"cannot read {text!r} as {field.name}: use numbers {field.low} to {field.high}{names}, "
        "ranges (1-5), steps (*/5) and lists of them (1,3)"
    )
