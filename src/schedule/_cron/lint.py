from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .croniter import is_rare
from .field import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, YEAR, Field, Item, item, starred, values
from .hash import is_hashed

_SHORTEST_MONTHS: Final = 28
_NUMBER: Final = re.compile(r"(?<![#/0-9])[0-7]")
_RESTARTS: Final = {
    SECOND: "minute",
    MINUTE: "hour",
    HOUR: "day",
    DAY: "month",
    MONTH: "year",
    WEEKDAY: "week",
    YEAR: "century",
}


def lint(texts: dict[Field, str]) -> Iterator[str]:
    for field, text in texts.items():
        for part in text.split(","):
            if part != "?" and not is_hashed(part) and not (field in (DAY, WEEKDAY) and is_rare(field, part)):
                yield from _lint_item(field, part, item(field, part))
    yield from _lint_days(texts[DAY], texts[WEEKDAY])
    yield from _lint_numbers(texts[DAY], texts[WEEKDAY])
    yield from _lint_hours(texts[MINUTE], texts[HOUR])


def _lint_item(field: Field, text: str, part: Item) -> Iterator[str]:
    found = part.values(field)
    if part.is_range and part.first == part.last:
        yield f"{field.name} {text!r} is {part.first} alone; for all values write *"
    elif part.is_range and part.last < part.first and not (field is WEEKDAY and part.last == field.low):
        yield f"{field.name} {text!r} runs past the end: {_listed(found)}"
    if part.step > 1 and len(found) == 1:
        yield f"{field.name} {text!r} is {found[0]} alone: the step leads past the end"
    elif part.is_star and part.step > 1 and (field is DAY or field.size % part.step):
        yield f"{field.name} {text!r} starts again each {_RESTARTS[field]}: {_listed(found)} and again {found[0]}"


def _lint_days(day: str, weekday: str) -> Iterator[str]:
    if day not in ("*", "?") and weekday not in ("*", "?"):
        if starred(day) or starred(weekday):
            yield f"day-of-month {day!r} and day-of-week {weekday!r} must both hold, because one starts with a star"
        else:
            yield f"day-of-month {day!r} or day-of-week {weekday!r} is enough: it comes on days of either"
    elif day.isdigit() and int(day) > _SHORTEST_MONTHS:
        yield f"day-of-month {day} is not in every month; the last day is L"


def _lint_numbers(day: str, weekday: str) -> Iterator[str]:
    """Warn about numbers next to ?: Quartz and EventBridge count from another day."""
    numbers = [int(each) for each in _NUMBER.findall(weekday)]
    if day != "?" or not numbers or 0 in numbers:
        return
    here, there = _in_names(weekday, sunday=0), _in_names(weekday, sunday=1)
    yield (
        f"day-of-week {weekday!r} next to a ? is {here} here, where 0 is Sunday; Quartz and EventBridge, where 1 is, "
        f"mean {there}: write names"
    )


def _in_names(weekday: str, *, sunday: int) -> str:
    return _NUMBER.sub(lambda found: WEEKDAY.names[(int(found[0]) - sunday) % WEEKDAY.size], weekday)


def _lint_hours(minute: str, hour: str) -> Iterator[str]:
    if not (starred(minute) or starred(hour) or is_hashed(hour)) and values(HOUR, hour) == HOUR.every:
        yield f"hour {hour!r} is every hour, but not the hour that comes twice when clocks are set back; * is"


def _listed(values: list[int]) -> str:
    shown = values if len(values) <= 6 else [*values[:2], "...", *values[-2:]]  # noqa: PLR2004 - fits a line
    return ", ".join(str(value) for value in shown)
