from __future__ import annotations

import math
import re
from datetime import timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Final

from .errors import ScheduleError, shown
from .instant import LONGEST_DURATION, MICROSECOND

_MICROS: Final = {
    "weeks": 604_800_000_000,
    "days": 86_400_000_000,
    "hours": 3_600_000_000,
    "minutes": 60_000_000,
    "seconds": 1_000_000,
    "milliseconds": 1_000,
    "microseconds": 1,
}
_SHORT: Final = {"days": "d", "hours": "h", "minutes": "m", "seconds": "s", "milliseconds": "ms", "microseconds": "us"}
_WORDS: Final = {
    "weeks": "w|weeks?",
    "days": "d|days?",
    "hours": "h|hrs?|hours?",
    "minutes": "m|mins?|minutes?",
    "seconds": "s|secs?|seconds?",
    "milliseconds": "ms|milliseconds?",
    "microseconds": "us|µs|microseconds?",
}
_LONGEST: Final = 500
_NUMBER: Final = r"(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)"
_ISO_NUMBER: Final = _NUMBER.replace(r"\.", "[.,]")
_PLAIN: Final = re.compile(rf"(?P<seconds>{_NUMBER})")
_UNITS: Final = re.compile(
    "".join(rf"(?:(?P<{unit}>{_NUMBER})\s*(?:{words})(?![a-zµ])\s*)?" for unit, words in _WORDS.items()), re.IGNORECASE
)
_ISO: Final = re.compile(
    rf"P(?:(?P<weeks>{_ISO_NUMBER})W)?(?:(?P<days>{_ISO_NUMBER})D)?"
    rf"(?:T(?:(?P<hours>{_ISO_NUMBER})H)?(?:(?P<minutes>{_ISO_NUMBER})M)?(?:(?P<seconds>{_ISO_NUMBER})S)?)?(?<![PT])",
    re.IGNORECASE,
)
_PART: Final = re.compile(rf"({_NUMBER})\s*([a-zµ]*)\s*", re.IGNORECASE)
_CLOCK: Final = re.compile(r"[0-9]+:[0-5][0-9](:[0-5][0-9])?(\.[0-9]+)?")
_EXAMPLES: Final = '"90", "1h30m", "500ms" or "PT1M30S"'
_NOTHING: Final = timedelta(0)
_CALENDAR: Final = re.compile(r"month|year|P[0-9]+[MY]|[0-9]\s*(mo|y)", re.IGNORECASE)


def duration(value: timedelta | float | str) -> timedelta:
    """Read a duration of 0 or more: a timedelta, a number of seconds, or a text.

    - Seconds: "90", "1_000".
    - Numbers with units, largest first (w d h m s ms us): "1h30m", "1.5 hours", ".5s".
    - ISO 8601 without months and years, whose lengths differ: "PT1M30S".

    Raises ScheduleError for anything else, and if negative, finer than a microsecond or longer than LONGEST_DURATION.
    """
    match value:
        case timedelta():
            return _within_bounds(value, value)
        case int() | float() if not isinstance(value, bool):
            return _seconds(value)
        case str() if len(value) <= _LONGEST:
            return _text(value)
        case str():
            raise ScheduleError(f"cannot read the duration {value[:50]!r}...: write at most {_LONGEST} characters")
        case _:
            raise ScheduleError(f'a duration must be a timedelta, seconds or text such as "1m30s", not {shown(value)}')


def positive(value: timedelta | float | str) -> timedelta:
    """Read a duration. Raises ScheduleError for 0 too."""
    found = duration(value)
    if not found:
        raise ScheduleError(f"duration {value!r} is zero: it must be at least a microsecond")
    return found


def duration_text(value: timedelta) -> str:
    rest = value // MICROSECOND
    found = ""
    for unit, letters in _SHORT.items():
        count, rest = divmod(rest, _MICROS[unit])
        if count:
            found += f"{count}{letters}"
    return found or "0s"


@lru_cache(maxsize=256, typed=True)  # thousands of jobs share a few lengths
def _seconds(value: float) -> timedelta:
    if isinstance(value, float) and not math.isfinite(value):
        raise ScheduleError(f"duration {value!r} is not a finite number of seconds")
    try:
        found = timedelta(seconds=value)
    except OverflowError:
        raise (_negative(value) if value < 0 else _too_long(value)) from None
    if value and not found:
        raise ScheduleError(f"duration {value!r} is shorter than a microsecond")
    return _within_bounds(found, value)


@lru_cache(maxsize=256)  # as above
def _text(value: str) -> timedelta:
    text = value.strip()
    found = _PLAIN.fullmatch(text) or _ISO.fullmatch(text) or (_UNITS.fullmatch(text) if text else None)
    if found is None:
        raise ScheduleError(f"cannot read the duration {value!r}: {_advice(text)}")
    counts = {
        unit: Fraction(count.replace("_", "").replace(",", ".")) for unit, count in found.groupdict().items() if count
    }
    micros = sum(count * _MICROS[unit] for unit, count in counts.items())
    try:
        exact = timedelta(microseconds=int(micros))
    except OverflowError:
        raise _too_long(value) from None
    if micros != int(micros):
        raise ScheduleError(f"duration {value!r} is finer than a microsecond")
    return _within_bounds(exact, value)


def _advice(text: str) -> str:
    if text.startswith("-"):
        return "durations count from 0"
    if _CALENDAR.search(text):
        return "months and years differ in length, they are for Calendar"
    if _CLOCK.fullmatch(text):
        return 'that is a time of day: write units, as in "1h30m"'
    for sign in "+,":
        if sign in text:
            return f"leave the {sign!r} away"
    return _advice_on_parts(text) or f"write {_EXAMPLES}"


def _advice_on_parts(text: str) -> str | None:
    """Name the first wrong part. None: the text has no parts."""
    last, at = -1, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None if at == 0 else f"{text[at:]!r} is no number with a unit; write {_EXAMPLES}"
        number, unit = part.groups()
        if not unit and part.end() == len(text):
            return f"{number} has no unit (w d h m s ms us)"
        if not unit:
            return f"{text[at:]!r} is no number with a unit; write {_EXAMPLES}"
        order = next((n for n, words in enumerate(_WORDS.values()) if re.fullmatch(words, unit, re.IGNORECASE)), None)
        if order is None:
            return f"there is no unit {unit!r}: write {_EXAMPLES}, units being w d h m s ms us"
        if order <= last:
            return f"{unit!r} stands behind a unit that is no larger: write them from the largest to the smallest"
        last, at = order, part.end()
    return None


def _within_bounds(found: timedelta, given: object) -> timedelta:
    if found < _NOTHING:
        raise _negative(given)
    if found > LONGEST_DURATION:
        raise _too_long(given)
    return found


def _negative(given: object) -> ScheduleError:
    return ScheduleError(f"duration {shown(given)} is negative: durations count from 0")


def _too_long(given: object) -> ScheduleError:
    return ScheduleError(
        f"duration {shown(given)} is too long: at most {LONGEST_DURATION.days} days, about 9,999 years, which is where "
        "calendars end"
    )
