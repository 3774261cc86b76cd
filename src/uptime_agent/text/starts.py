"""The next starts of a schedule."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

from schedule import Cron, Every, Schedule

from . import wording


def schedule_lines(schedule: Schedule, now: datetime, count: int, tz: str) -> Iterator[str]:
    """Yield lines about the next starts, and warnings."""
    zone = ZoneInfo(tz)
    coming = starts(schedule, now, count)
    for start in coming:
        local = start.astimezone(zone).isoformat(sep=" ", timespec=_precision(start))
        in_utc = "" if tz == "UTC" else f"  {start.isoformat(sep=' ', timespec=_precision(start))}"
        yield f"{local}{in_utc}  in {wording.span((start - now).total_seconds())}"
    if len(coming) < count:
        yield f"{'then ' if coming else ''}it never starts again"
    if isinstance(schedule, Cron):
        for warning in schedule.warnings:
            yield f"note: {warning}"


def starts(schedule: Schedule, now: datetime, count: int) -> list[datetime]:
    """Return at most `count` starts after `now`."""
    found: list[datetime] = []
    if isinstance(schedule, Every) and not schedule.jitter and (first := schedule.next(now)) is not None:
        with suppress(OverflowError):  # the calendar ends before
            return [first + number * schedule.interval for number in range(count)]
    while len(found) < count and (start := schedule.next(found[-1] if found else now)) is not None:
        found.append(start)
    return found


def _precision(start: datetime) -> str:
    return "milliseconds" if start.microsecond else "seconds"
