"""Triggers of APScheduler and the schedules that they become have the same starts, or there is no schedule."""

from datetime import UTC, date, datetime, timedelta

import pytest
from apscheduler.triggers.calendarinterval import CalendarIntervalTrigger
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger
from hypothesis import assume, given, strategies as st

from scheduler import ScheduleError
from uptime_agent.migration.refusal import NotCarried
from uptime_agent.migration.triggers import ImportedInstants, schedule_of

NOW = datetime(2026, 3, 1, 12, 34, 56, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)
MOST = 15


def theirs(trigger):
    """List starts as APScheduler finds them."""
    found, last, now = [], None, NOW
    while len(found) < MOST and (last := trigger.get_next_fire_time(last, now)) is not None:
        now = max(now, last + MOMENT)
        if last >= NOW:  # one for a calendar may have passed: it is a misfire
            found.append(last.astimezone(UTC))
    return found


def ours(schedule):
    """List starts of a schedule."""
    found, last = [], NOW - MOMENT
    while len(found) < MOST and (last := schedule.next(last)) is not None:
        found.append(last)
    return found


def imported():
    """Say that the program was imported just now."""
    return ImportedInstants(NOW - timedelta(seconds=1), NOW)


def numbers(low, high):
    """Fields of that many numbers: stars, steps, ranges and lists."""
    pair = st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted)
    return (
        st.just("*")
        | st.integers(2, max(2, (high - low) // 2)).map("*/{}".format)
        | st.integers(low, high).map(str)
        | pair.map(lambda each: f"{each[0]}-{each[1]}")
        | pair.map(lambda each: f"{each[0]},{each[1]}")
    )


DAYS = ["last", "1st mon", "3rd fri", "last sun", "2nd tue,15", "15,*/10", "1-7", "8-14", "1,last", "20-last"]
WEEKDAYS = ["mon-fri", "sat,sun", "0", "0-4", "6", "*/2", "1/2", "1-5/2", "mon,4", "tue"]
CRONS = st.fixed_dictionaries(
    {
        "second": st.sampled_from(["0", "30", "*/20"]),
        "minute": numbers(0, 59),
        "hour": numbers(0, 23),
        "day": numbers(1, 28) | st.sampled_from(DAYS[:-1]),
        "month": numbers(1, 12) | st.sampled_from(["jan", "mar-may", "feb,nov"]),
        "day_of_week": st.just("*") | st.sampled_from(WEEKDAYS),
        "year": st.sampled_from(["*", "*", "2026-2040", "*/2"]),
    }
)


@given(CRONS)
def test_a_cron_trigger_has_the_same_starts(fields):
    """Whatever its fields say; those that no expression says are refused."""
    trigger = CronTrigger(timezone="UTC", **fields)
    try:
        schedule = schedule_of(trigger, imported())
    except (NotCarried, ScheduleError):
        assume(False)
    assert ours(schedule) == theirs(trigger)


instants = st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))


@given(st.timedeltas(timedelta(seconds=1), timedelta(days=40)), instants, st.none() | instants)
def test_an_interval_has_the_same_starts(interval, start, end):
    """It begins with its start_date, and ends with its end_date, which is a start if it lies on the grid."""
    seconds = max(1, int(interval.total_seconds()))
    assume(end is None or end > start)
    trigger = IntervalTrigger(seconds=seconds, start_date=start, end_date=end, timezone=UTC)
    expected = theirs(trigger)
    try:
        assert ours(schedule_of(trigger, imported())) == expected
    except ScheduleError:
        assert expected == []


OTHERS = {
    "an end that is a start": IntervalTrigger(hours=1, start_date=NOW, end_date=NOW + timedelta(hours=2), timezone=UTC),
    "once": DateTrigger(NOW + timedelta(days=1), timezone=UTC),
    "each month": CalendarIntervalTrigger(months=1, hour=5, start_date=date(2026, 1, 28), timezone="Europe/Berlin"),
    "every other week": CalendarIntervalTrigger(weeks=2, minute=5, start_date=date(2026, 3, 10), timezone="UTC"),
    "each year and a month": CalendarIntervalTrigger(years=1, months=1, start_date=date(2026, 1, 1), timezone="UTC"),
    "each day": CalendarIntervalTrigger(days=1, hour=9, second=7, start_date=NOW.date(), timezone="Europe/Berlin"),
    "until a day": CalendarIntervalTrigger(
        days=3, hour=9, start_date=date(2026, 2, 28), end_date=date(2026, 3, 10), timezone="Europe/Berlin"
    ),
    "from a cron on": CronTrigger(hour=3, start_date=NOW + timedelta(days=9), timezone="Europe/Berlin"),
    "until a cron": CronTrigger(hour=3, end_date=NOW + timedelta(days=9), timezone="Europe/Berlin"),
    "either": OrTrigger([CronTrigger(hour=3, timezone="UTC"), CronTrigger(day="last", hour="*/7", timezone="UTC")]),
    "a crontab": CronTrigger.from_crontab("*/7 8-18 * * 4,5", timezone="Europe/Berlin"),
}


@pytest.mark.parametrize("trigger", OTHERS.values(), ids=OTHERS)
def test_other_triggers_have_the_same_starts(trigger):
    """Each kind that is carried over."""
    found = ours(schedule_of(trigger, imported()))
    assert found == theirs(trigger)
    assert found


REFUSED = {
    "a week of the year": (CronTrigger(week="1-10", timezone="UTC"), "week=1-10"),
    "two kinds of days that must both match": (CronTrigger(day="3-9", day_of_week="mon", timezone="UTC"), "either"),
    "a long jitter": (CronTrigger(hour=1, jitter=600, timezone="UTC"), "H spreads jobs"),
    "months and days": (
        CalendarIntervalTrigger(months=1, days=1, start_date=date(2026, 1, 1), timezone="UTC"),
        "counts one unit",
    ),
    "counted from today": (
        CalendarIntervalTrigger(months=1, start_date=NOW.date(), timezone="UTC"),
        "give it an earlier one",
    ),
    "a jitter of a union": (OrTrigger([CronTrigger(timezone="UTC")], jitter=5), "intervals inside"),
    "a trigger of one's own": (object(), "object is no trigger"),
}


@pytest.mark.parametrize(("trigger", "why"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_counterpart_is_refused(trigger, why):
    """With what to do by hand."""
    with pytest.raises(NotCarried, match=why):
        schedule_of(trigger, imported())


def test_an_interval_without_a_start_date_has_its_place_by_its_id():
    """APScheduler counts from when the program began: no two processes agree."""
    trigger = IntervalTrigger(minutes=5, timezone=UTC)
    began = trigger.start_date - trigger.interval
    assert str(schedule_of(trigger, ImportedInstants(began, began))) == "@every 5m"
    assert "anchor=" in str(schedule_of(trigger, ImportedInstants(began + MOMENT, began + MOMENT)))


def test_an_interval_among_others_keeps_its_grid_and_that_is_told():
    """APScheduler counts it from the last start of any, so that it drifts with the others."""
    told = imported()
    parts = [CronTrigger(hour=3, timezone="UTC"), IntervalTrigger(hours=5, start_date=NOW, timezone="UTC")]
    found = ours(schedule_of(OrTrigger(parts), told))
    assert NOW + timedelta(hours=20) in found
    assert ["grid" in each for each in told.remarks] == [True]
