from __future__ import annotations

from functools import lru_cache
from typing import Final

from ._after import After
from ._at import At
from ._calendar import Calendar
from ._common import AnyOf, Between, Except, Schedule, ScheduleError
from ._cron import Cron
from ._every import Every
from ._parse import parse

_SIMPLE: Final = (After, At, Calendar, Cron, Every)
_NEVER_BOUND: Final = (After, At, Calendar)


def text_of(schedule: Schedule, key: str | None = None) -> str:
    """Return a text that `parse` reads as an equal schedule.

    `key`: leave out of the text what binding to this key added; the schedule that `parse` reads is equal once bound.
    Raises ScheduleError for a class of your own, a schedule bound to another key, or a text that is too long.
    """
    kind = type(schedule)
    if kind in _NEVER_BOUND or (kind is Every and schedule.anchor is None):  # type: ignore[attr-defined] # nearly all schedules
        return _faithful(schedule)
    _refuse_foreign(schedule)
    return _faithful(schedule if key is None else _unbound(schedule, key))


@lru_cache(maxsize=1024)  # few schedules serve many jobs
def _faithful(schedule: Schedule) -> str:
    text = str(schedule)
    if parse(text) != schedule:
        raise ScheduleError(f"{schedule!r} cannot be told in text: {text!r} reads back as another, so keep it in code")
    return text


def _refuse_foreign(schedule: Schedule) -> None:
    kind = type(schedule)
    if kind in _SIMPLE:
        return
    if kind not in {AnyOf, Between, Except}:
        raise ScheduleError(
            f"{schedule!r} has no text, because {kind.__qualname__} is a class of your own: build it of Every, After, "
            "At, Calendar, Cron, |, between and except_, or keep it in code"
        )
    for part in _parts(schedule):
        _refuse_foreign(part)


def _parts(schedule: Schedule) -> tuple[Schedule, ...]:
    match schedule:
        case AnyOf():
            return schedule.parts
        case Between():
            return (schedule.schedule,)
        case Except():
            return (schedule.schedule, *(window.starts for window in schedule.windows))
        case _:
            return ()


def _unbound(schedule: Schedule, key: str) -> Schedule:
    match schedule:
        case Every() if schedule.anchor is not None:
            interval, jitter = schedule.interval, schedule.jitter
            candidates = Every(interval, jitter=jitter), Every(interval, anchor=schedule.anchor, jitter=jitter)
            return next((each for each in candidates if each.bind(key) == schedule), schedule)
        case Cron():
            return schedule.unbound(key)
        case AnyOf():
            return AnyOf(_unbound(part, key) for part in schedule.parts)
        case Between():
            return Between(_unbound(schedule.schedule, key), schedule.start, schedule.end)
        case Except():
            return Except(_unbound(schedule.schedule, key), schedule.windows)
        case _:
            return schedule
