"""Expressions of other schedulers, for error messages. They are never read as ours: words may mean something else."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from .errors import ScheduleError
from .wall import find_zone

_NAME: Final = 3

_DAYS: Final = tuple("sunday monday tuesday wednesday thursday friday saturday".split())
_FIELDS: Final = 5
_LONG_NAME: Final = re.compile(r"[a-z]{4,9}", re.IGNORECASE)
_RANDOM: Final = re.compile(r"R(\([0-9]+-[0-9]+\))?(/[0-9]+)?", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"([0-9]*)~([0-9]*)")
_STEP: Final = re.compile(r"/[0-9]+")
_COMMAND: Final = re.compile(r"[./~$\"'(\[]|[A-Za-z_][\w.-]{3}")
_VALUES: Final = r"[*\d,./]+"
_ON_CALENDAR: Final = re.compile(
    r"(?:(?P<days>[a-z]{3,9}(?:(?:\.\.|,)[a-z]{3,9})*),?\s+)?"
    rf"(?:(?:(?P<year>[*\d]+)-)?(?P<month>{_VALUES})-(?P<day>{_VALUES})\s+)?"
    rf"(?P<hour>{_VALUES}):(?P<minute>{_VALUES})(?::(?P<second>{_VALUES}))?(?:\s+(?P<zone>[A-Za-z_/+-]+))?",
    re.IGNORECASE,
)
"""Syntax of systemd's timers: Mon..Fri *-*-* 09:00:00 Europe/Berlin."""


def item_meant(text: str, names: tuple[str, ...]) -> str | None:
    if random := _RANDOM.fullmatch(text):  # of croniter
        return f"H{random[1] or ''}{random[2] or ''}"
    if between := _BETWEEN.fullmatch(text):  # of cronie and OpenBSD
        return f"H({between[1]}-{between[2]})" if between[1] and between[2] else "H"
    if _STEP.fullmatch(text):  # of Quartz
        return f"*{text}"
    found = _LONG_NAME.sub(lambda word: _short(word[0], names), text)
    return None if found == text else found


def line_advice(text: str, is_expression: Callable[[str], bool]) -> str | None:
    """Advise about text that is more than a cron expression, or another syntax. None: unknown."""
    words = text.split()
    if (found := _ON_CALENDAR.fullmatch(text)) is not None:
        meant = _as_cron(found)
        advice = f"did you mean {meant!r}?" if is_expression(meant) else 'write fields, as in "0 9 * * mon-fri"'
        return f"that is an OnCalendar of systemd: {advice}"
    rest = " ".join(words[:-1])
    if words and _is_zone(words[-1]) and is_expression(rest):
        return f"a zone stands in front: write 'CRON_TZ={words[-1]} {rest}'"
    length = 1 if text.startswith("@") else _FIELDS
    head = " ".join(words[:length])
    if len(words) > length and _is_command(words[length]) and is_expression(head):
        return f"leave the command away: write {head!r}"
    return None


def _is_command(word: str) -> bool:
    return bool(_COMMAND.match(word)) and not any(day.startswith(word.lower()) for day in _DAYS)


def _short(word: str, names: tuple[str, ...]) -> str:
    short = word[:_NAME].lower()
    return short if short in names else word


def _is_zone(word: str) -> bool:
    if not word[:1].isalpha():
        return False
    try:
        find_zone(word)
    except ScheduleError:
        return False
    return True


def _as_cron(found: re.Match[str]) -> str:
    """Write an OnCalendar as cron; "" if it needs both a day and a weekday, which cron cannot."""
    days, day, month = found["days"], found["day"] or "*", found["month"] or "*"
    if (days and day != "*") or found["year"] not in {None, "*"}:
        return ""
    weekdays = "*" if days is None else ",".join(_weekdays(each) for each in days.split(","))
    second = _plain(found["second"] or "0")
    fields = [_plain(each) for each in (found["minute"], found["hour"], day, month)] + [weekdays]
    expression = " ".join(fields if second == "0" else [second, *fields])
    return expression if found["zone"] is None else f"CRON_TZ={found['zone']} {expression}"


def _weekdays(days: str) -> str:
    return "-".join(each[:_NAME].lower() for each in days.split(".."))


def _plain(values: str) -> str:
    return re.sub(r"\b0+(?=\d)", "", values.replace("..", "-"))
