from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import Final

from ._after import After
from ._at import At
from ._calendar import Calendar
from ._common import Schedule, ScheduleError, duration, line_advice, utc
from ._cron import NICKNAMES, Cron, is_expression
from ._every import Every

_ZONED: Final = re.compile(r"(?:CRON_)?TZ=(\S+)\s+(\S.*)", re.DOTALL)
_KIND: Final = re.compile(r"@(every|after|at|calendar)\s+(\S.*)", re.IGNORECASE | re.DOTALL)
_SETTING: Final = re.compile(r"\s[A-Za-z_]+=")
_IN_WORDS: Final = {
    "minute": "* * * * *",
    "hour": "@hourly",
    "day": "@daily",
    "night": "@daily",
    "week": "@weekly",
    "month": "@monthly",
    "year": "@yearly",
    "weekday": "0 9 * * mon-fri",
    **{name: f"0 9 * * {name[:3]}" for name in "sunday monday tuesday wednesday thursday friday saturday".split()},
}
_FEWEST_FIELDS: Final = 5
_UNSPACED: Final = re.compile(r"@?(every|after)\s*(\S.*)", re.IGNORECASE | re.DOTALL)
_ALONE: Final = {
    "@every": 'write how long, as in "@every 10s"',
    "@after": 'write how long, as in "@after 10s"',
    "@at": 'write when, as in "@at 2026-01-31T12:00:00+00:00"',
    "@calendar": 'write how often and from when on, as in "@calendar 1 month origin=2026-01-31T12:00:00+00:00"',
    "@reboot": "what runs at the start of a program is no schedule",
}


def plain(text: str, tz: str) -> Schedule:
    """Read a schedule. Wall times without a zone are in `tz`. Raises ScheduleError if unreadable."""
    rest = text.strip()
    if not rest:
        raise ScheduleError('a schedule must not be empty: write "@every 10s", "@hourly" or "*/5 * * * *"')
    zoned = _ZONED.fullmatch(rest)
    if zoned:
        tz, rest = zoned.groups()
    if kind := _KIND.fullmatch(rest):
        name = kind[1].lower()
        if zoned and name != "calendar":
            what = "instants name their own" if name == "at" else "intervals are the same in every zone"
            raise ScheduleError(f"{text!r} names a zone, but {what}: write {rest!r}")
        return _KINDS[name](kind[2], tz)
    if (rest.startswith("@") or len(rest.split()) < _FEWEST_FIELDS) and rest.lower() not in NICKNAMES:
        raise ScheduleError(f"cannot read the schedule {text!r}: {_advice(rest)}")
    return Cron(rest, tz=tz)


def when(text: str) -> datetime:
    """Read an instant in ISO 8601 with its offset from UTC. Raises ScheduleError if unreadable."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ScheduleError(f'cannot read the instant {text!r}: write it as in "2026-01-31T12:00:00+00:00"') from None
    if found.tzinfo is None:
        raise ScheduleError(
            f'the instant {text!r} has no zone: write its offset from UTC behind it, as in "{found.isoformat()}+00:00"'
        )
    return utc(found)


def _every(text: str, tz: str) -> Schedule:  # noqa: ARG001 - intervals are the same in every zone
    interval, settings = _settings("@every", text, ("anchor", "jitter"))
    if meant := _meant(interval):
        raise ScheduleError(f"cannot read the schedule {f'@every {text}'!r}: did you mean {meant!r}?")
    anchor = settings.get("anchor")
    return Every(interval, anchor=None if anchor is None else when(anchor), jitter=settings.get("jitter", 0))


def _after(text: str, tz: str) -> Schedule:  # noqa: ARG001 - intervals are the same in every zone
    return After(text)


def _at(text: str, tz: str) -> Schedule:  # noqa: ARG001 - an instant names its own offset
    return At(when(text))


def _calendar(text: str, tz: str) -> Schedule:
    interval, settings = _settings("@calendar", text, ("origin", "tz"))
    if "origin" not in settings:
        raise ScheduleError(
            f"{f'@calendar {text}'!r} does not say from when on it counts: add origin=..., as in "
            f"{f'@calendar {interval} origin=2026-01-31T12:00:00+00:00'!r}"
        )
    return Calendar(interval, origin=when(settings["origin"]), tz=settings.get("tz", tz))


_KINDS: Final[Mapping[str, Callable[[str, str], Schedule]]] = {
    "every": _every,
    "after": _after,
    "at": _at,
    "calendar": _calendar,
}


def _settings(kind: str, text: str, known: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    first = _SETTING.search(text)
    if first is None:
        return text, {}
    found: dict[str, str] = {}
    for word in text[first.start() :].split():
        name, _, value = word.partition("=")
        if name not in known:
            similar = get_close_matches(name, known, n=1)
            advice = f"did you mean {similar[0]!r}?" if similar else f"it has {' and '.join(known)}"
            raise ScheduleError(f"{f'{kind} {text}'!r}: {kind} has no {name!r}: {advice}")
        if name in found:
            raise ScheduleError(f"{f'{kind} {text}'!r} says {name} twice")
        found[name] = value
    return text[: first.start()], found


def _meant(words: str) -> str | None:
    return _IN_WORDS.get(words.lower().removeprefix("every").strip().removesuffix("s"))


def _advice(text: str) -> str:
    if meant := _meant(text):
        return f"did you mean {meant!r}?"
    unspaced = _UNSPACED.fullmatch(text)
    if unspaced and _is_duration(unspaced[2]):
        return f'did you mean "@{unspaced[1].lower()} {unspaced[2]}"?'
    if _is_duration(text):
        return f'did you mean "@every {text}"?'
    if alone := _ALONE.get(text.lower()):
        return alone
    if advice := line_advice(text, is_expression):
        return advice
    if _is_instant(text):
        return f'did you mean "@at {text}"?'
    if similar := get_close_matches(text.lower(), NICKNAMES, n=1):
        return f'did you mean "{similar[0]}"?'
    first, *others = text.split()
    if others and (similar := get_close_matches(first.lower(), [f"@{name}" for name in _KINDS], n=1)):
        meant = " ".join([similar[0], *others])
        if _is_plain(meant):
            return f"did you mean {meant!r}?"
    return f'write "@every 10s", "@after 10s", five or six fields, or one of {", ".join(NICKNAMES)}'


def _is_plain(text: str) -> bool:
    try:
        return bool(plain(text, "UTC"))
    except ScheduleError:
        return False


def _is_duration(text: str) -> bool:
    try:
        return bool(duration(text))
    except ScheduleError:
        return False


def _is_instant(text: str) -> bool:
    try:
        return bool(when(text))
    except ScheduleError:
        return False
