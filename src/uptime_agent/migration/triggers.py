"""Triggers of APScheduler as our schedules."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import reduce
from operator import or_
from typing import Any, Final

from apscheduler.triggers.calendarinterval import CalendarIntervalTrigger
from apscheduler.triggers.combining import AndTrigger, OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger
from attrs import Factory, define

from schedule import At, Calendar, Cron, Every, Schedule

from .cron_fields import expression_of
from .refusal import NotCarried

_MOMENT: Final = timedelta(microseconds=1)
_IN_EVERY_MONTH: Final = 28


@define
class ImportedInstants:
    """The instants before and after the program's import, and `remarks`: small differences.

    An interval without a start_date counts from an instant between them.
    """

    began: datetime
    ended: datetime
    remarks: list[str] = Factory(list)

    def today(self, tz: tzinfo) -> date:
        """The import's day in a zone."""
        return self.ended.astimezone(tz).date()


def schedule_of(trigger: Any, imported: ImportedInstants, *, is_kept: bool = False) -> Schedule:
    """Translate a trigger. `is_kept`: by a job store, so it is older. Raises NotCarried, ScheduleError."""
    match trigger:
        case IntervalTrigger():
            return _interval(trigger, imported)
        case CronTrigger():
            fields = {each.name: str(each) for each in trigger.fields}
            if trigger.jitter:
                imported.remarks.append(f"jitter={trigger.jitter}: a second of its own, the same each time")
            cron = Cron(expression_of(fields, trigger.jitter or 0), tz=_zone(trigger.timezone))
            return _bounded(cron, trigger, imported)
        case DateTrigger():
            return At(trigger.run_date)
        case CalendarIntervalTrigger():
            return _calendar(trigger, imported, is_kept=is_kept)
        case OrTrigger(jitter=None | 0):
            if any(isinstance(each, IntervalTrigger) for each in trigger.triggers):
                imported.remarks.append("an interval keeps its grid (APScheduler counts it from the last start of any)")
            first, *others = [schedule_of(each, imported, is_kept=is_kept) for each in trigger.triggers]
            return reduce(or_, others, first)
        case OrTrigger():
            raise NotCarried(f"jitter={trigger.jitter} of an OrTrigger: give it to the intervals inside")
        case AndTrigger():
            raise NotCarried("AndTrigger: write one expression for it, or use between and except_")
        case _:
            raise NotCarried(f"{type(trigger).__name__} is no trigger of APScheduler's: write a Schedule for it")


def _interval(trigger: Any, imported: ImportedInstants) -> Schedule:
    start, interval, jitter = trigger.start_date, trigger.interval, trigger.jitter or 0
    if imported.began <= start - interval <= imported.ended:  # its beginning is not set
        return _ended(Every(interval, jitter=jitter), trigger)
    schedule = Every(interval, anchor=start, jitter=jitter)
    if start - interval <= imported.ended:  # the grid has no slot between now and then
        return _ended(schedule, trigger)
    return _bounded(schedule, trigger, imported)


def _bounded(schedule: Schedule, trigger: Any, imported: ImportedInstants) -> Schedule:
    start = trigger.start_date
    if start is not None and start > imported.ended:
        schedule = schedule.between(start)
    return _ended(schedule, trigger)


def _ended(schedule: Schedule, trigger: Any) -> Schedule:
    """The end_date is inclusive."""
    return schedule if trigger.end_date is None else schedule.between(None, trigger.end_date + _MOMENT)


def _calendar(trigger: Any, imported: ImportedInstants, *, is_kept: bool) -> Schedule:
    zone = _zone(trigger.timezone)
    if trigger.jitter:
        raise NotCarried(f"jitter={trigger.jitter}: Calendar has none; a cron expression with H may do")
    months, days = 12 * trigger.years + trigger.months, 7 * trigger.weeks + trigger.days
    if months and days:
        raise NotCarried("months and days together: Calendar counts one unit; add a job for each, or write a Schedule")
    at, tz = _time_of(trigger), trigger.timezone
    is_from_today = not is_kept and trigger.start_date == imported.today(tz)
    if days == 1 and is_from_today:
        seconds = f"{at.second} " if at.second else ""
        return _until(Cron(f"{seconds}{at.minute} {at.hour} * * *", tz=zone), trigger.end_date, tz)
    if is_from_today:
        raise NotCarried("without a start_date it counts from today, tomorrow from tomorrow: give it an earlier one")
    origin = datetime.combine(trigger.start_date, at, tz)
    if months and origin.day > _IN_EVERY_MONTH:
        imported.remarks.append("a month without that day: its last day (APScheduler leaves the month out)")
    interval = f"{months} months" if months else f"{days} days"
    return _until(Calendar(interval, origin=origin, tz=zone), trigger.end_date, tz)


def _time_of(trigger: Any) -> time:
    return time(trigger._time.hour, trigger._time.minute, trigger._time.second)  # noqa: SLF001 - kept nowhere else


def _until(schedule: Schedule, end: date | None, tz: tzinfo) -> Schedule:
    """The last day is inclusive."""
    if end is None:
        return schedule
    return schedule.between(None, datetime.combine(end + timedelta(days=1), time(), tz).astimezone(UTC))


def _zone(tz: Any) -> str:
    """Zones besides zoneinfo's and pytz's may have no name."""
    return str(getattr(tz, "key", None) or getattr(tz, "zone", None) or tz)
