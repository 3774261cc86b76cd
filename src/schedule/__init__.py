"""Schedules say what comes next. They are plain values and read no clock.

`Schedule.next(after)` is the first slot strictly later than an aware datetime, in UTC, or None. Combine schedules with
`|`, `.between()` and `.except_(Window(...))`; `parse` makes them from text.
"""

from pathlib import Path as _Path

from ._after import After
from ._at import At
from ._calendar import Calendar
from ._common import LAST_INSTANT, Schedule, ScheduleError, Window, duration, phase, phase_us, shown, utc
from ._cron import Cron
from ._every import Every
from ._missed import Catchup, Missed, catch_up
from ._neighbour import check_neighbour
from ._parse import parse
from ._text import text_of

__all__ = [
    "LAST_INSTANT",
    "After",
    "At",
    "Calendar",
    "Catchup",
    "Cron",
    "Every",
    "Missed",
    "Schedule",
    "ScheduleError",
    "Window",
    "catch_up",
    "duration",
    "parse",
    "phase",
    "phase_us",
    "shown",
    "text_of",
    "utc",
]

check_neighbour(_Path(__file__).parent.parent)

for _each in [globals()[name] for name in __all__]:  # a traceback names the module from which users import the error
    if isinstance(_each, type) and issubclass(_each, Exception) and _each.__module__.startswith("schedule."):
        _each.__module__ = "schedule"
