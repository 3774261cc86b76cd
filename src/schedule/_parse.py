"""Schedules as text, the way configuration files and crontabs write them."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from ._after import After
from ._cron import Cron
from ._cron_text import NICKNAMES
from ._duration import duration
from ._errors import ScheduleError
from ._every import Every
from ._schedule import Schedule

_ZONED: Final = re.compile(r"(?:CRON_)?TZ=(\S+)\s+(.+)")
_INTERVAL: Final = re.compile(r"@(every|after)\s+(.+)", re.IGNORECASE)
_FEWEST_FIELDS: Final = 5
_UNSPACED: Final = re.compile(r"@?(every|after)\s*(.+)", re.IGNORECASE)


def parse(text: str, *, tz: str = "UTC") -> Schedule:
    """The schedule that `text` names.

    "@every 10s" is Every, "@after 10s" is After; five, six (seconds first) or seven (a year last) fields and
    nicknames such as "@hourly" are Cron in the zone `tz`, unless CRON_TZ=... or TZ=... stands before them.
    `str()` of such a schedule is text that reads back as an equal one.

    Raises ScheduleError for anything else.
    """
    if not isinstance(text, str):
        raise ScheduleError(f'a schedule must be text such as "@every 10s" or "*/5 * * * *", not {text!r}')
    rest = text.strip()
    if not rest:
        raise ScheduleError('a schedule must not be empty: write "@every 10s", "@hourly" or "*/5 * * * *"')
    if zoned := _ZONED.fullmatch(rest):
        tz, rest = zoned.groups()
        if _INTERVAL.fullmatch(rest):
            raise ScheduleError(f"{text!r} names a zone, but intervals are the same in every zone: write {rest!r}")
    if interval := _INTERVAL.fullmatch(rest):
        return (Every if interval[1].lower() == "every" else After)(interval[2])
    if len(rest.split()) < _FEWEST_FIELDS and rest.lower() not in NICKNAMES:
        raise ScheduleError(f"cannot read the schedule {text!r}: {_advice(rest)}")
    return Cron(rest, tz=tz)


def _advice(text: str) -> str:
    unspaced = _UNSPACED.fullmatch(text)
    if unspaced and _is_duration(unspaced[2]):
        return f'did you mean "@{unspaced[1].lower()} {unspaced[2]}"?'
    if _is_duration(text):
        return f'did you mean "@every {text}"?'
    if text.lower() in ("@every", "@after"):
        return f'write how long, as in "{text.lower()} 10s"'
    if text.lower() == "@reboot":
        return "what runs at the start of a program is no schedule"
    if similar := get_close_matches(text.lower(), NICKNAMES, n=1):
        return f'did you mean "{similar[0]}"?'
    return f'write "@every 10s", "@after 10s", five or six fields, or one of {", ".join(NICKNAMES)}'


def _is_duration(text: str) -> bool:
    try:
        return bool(duration(text))
    except ScheduleError:
        return False
