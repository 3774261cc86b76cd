"""The fields of a CronTrigger as our cron expression.

There Monday is 0, and day and weekday must both match. Here Sunday is 0, and either is enough unless one begins with a
star.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from .refusal import NotCarried

_NAMES: Final = tuple("mon tue wed thu fri sat sun".split())
_POSITION: Final = re.compile(r"(1st|2nd|3rd|4th|5th|last) +([a-z]{3})")
_STEPS: Final = re.compile(r"(\*|[0-6])(?:-([0-6]))?(?:/([0-9]+))?")
_RANGE: Final = re.compile(r"([a-z]{3})(?:-([a-z]{3}))?")
_WEEKS: Final = {"1-7": 1, "8-14": 2, "15-21": 3, "22-28": 4}
"""Days of a month that contain each weekday once."""


def expression_of(fields: Mapping[str, str], jitter: int = 0) -> str:
    """Write the expression. `jitter`: seconds. Raises NotCarried."""
    if fields["week"] != "*":
        raise NotCarried(
            f"week={fields['week']}: there is no field for the week of the year; name the days, or use Calendar"
        )
    second = _second(fields["second"], jitter)
    day, weekday = _days(fields["day"], fields["day_of_week"])
    texts = [fields["minute"], fields["hour"], day, fields["month"], weekday]
    if fields["year"] != "*":
        return " ".join([second, *texts, fields["year"]])
    return " ".join(texts if second == "0" else [second, *texts])


def _second(text: str, jitter: int) -> str:
    if not jitter:
        return text
    if not text.isdigit() or int(text) + jitter > 59:  # noqa: PLR2004 - seconds of a minute
        raise NotCarried(
            f"jitter={jitter}: a cron expression has none; H spreads jobs, each to a place of its own, "
            'as in "H(0-10) 9 * * *"'
        )
    return f"H({text}-{int(text) + jitter})"


def _days(day: str, weekday: str) -> tuple[str, str]:
    dates = [each for each in day.split(",") if not _POSITION.fullmatch(each)]
    positions = [_position(*found.groups()) for each in day.split(",") if (found := _POSITION.fullmatch(each))]
    dates = sorted(("L" if each == "last" else each for each in dates), key=lambda text: not text.startswith("*"))
    weekdays = [] if weekday == "*" else list(_weekdays(weekday.split(",")))
    is_starred = not dates or dates[0].startswith("*")
    if positions and (weekdays or (dates and is_starred)):
        raise NotCarried(
            f"day={day} and day_of_week={weekday}: no expression says all of that; add a job for each part"
        )
    if positions:
        return ",".join(dates) or "*", ",".join(positions)
    if weekdays and not is_starred:
        return "*", _nth(day, weekdays, weekday)
    return ",".join(dates), ",".join(_joined(weekdays)) or "*"


def _position(which: str, weekday: str) -> str:
    return f"{weekday}L" if which == "last" else f"{weekday}#{which[0]}"


def _nth(day: str, weekdays: Iterable[str], said: str) -> str:
    if day not in _WEEKS:
        raise NotCarried(
            f"day={day} and day_of_week={said} must both match there; here either is enough. "
            f'Say which weekday of the month, as in "mon#1"'
        )
    return ",".join(f"{each}#{_WEEKS[day]}" for each in weekdays)


def _weekdays(parts: Iterable[str]) -> list[str]:
    found: set[int] = set()
    for part in parts:
        if named := _RANGE.fullmatch(part):
            first, last = _NAMES.index(named[1]), _NAMES.index(named[2] or named[1])
            found |= {*range(first, last + 1)}
        elif steps := _STEPS.fullmatch(part):
            first = 0 if steps[1] == "*" else int(steps[1])
            is_open = steps[1] == "*" or steps[3]
            last = int(steps[2]) if steps[2] else 6 if is_open else first
            found |= {*range(first, last + 1, int(steps[3] or 1))}
        else:
            raise NotCarried(f"day_of_week={part}: write it in names, such as mon-fri")
    return [_NAMES[each] for each in sorted(found)]


def _joined(weekdays: list[str]) -> list[str]:
    runs: list[list[str]] = []
    for each in weekdays:
        if runs and _NAMES.index(each) == _NAMES.index(runs[-1][-1]) + 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return [f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(run) for run in runs]  # noqa: PLR2004 - a range pays
