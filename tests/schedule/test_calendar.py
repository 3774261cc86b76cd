"""`Calendar`: days to years at a wall time, counted from an origin."""

import csv
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from schedule import Calendar, Every, ScheduleError, parse

BERLIN = ZoneInfo("Europe/Berlin")
with (Path(__file__).parents[1] / "parity" / "timescaledb" / "timescaledb_slots.csv").open(encoding="utf-8") as file:
    SLOTS = list(csv.DictReader(file))


def made(interval, origin, tz):
    """Make the schedule of a row: hours are the same everywhere, longer intervals are the calendar's."""
    if "hour" in interval:
        return Every(interval, anchor=origin)
    return Calendar(interval, origin=origin, tz=tz or "UTC")


@pytest.mark.parametrize("row", SLOTS, ids=lambda row: f"{row['group']}-{row['interval']}-{row['finish_utc']}")
def test_slots_are_the_smallest_origin_plus_multiple_after_the_finish(row):
    """61 cases of another scheduler, which gets a third of them wrong; ours are the ideal ones."""
    origin, finish = (datetime.fromisoformat(row[name]) for name in ("initial_start_utc", "finish_utc"))
    found = made(row["interval"], origin, row["timezone"]).next(finish)
    assert found == datetime.fromisoformat(row["ideal_slot_utc"])


def test_all_rows_are_there():
    """An empty table would pass."""
    assert len(SLOTS) == 61


@pytest.mark.parametrize(
    ("interval", "origin", "after", "expected"),
    [
        ("1 month", "2024-05-20", "2024-07-03", "2024-07-20"),
        ("1 year", "2024-09-10", "2025-02-01", "2025-09-10"),
        ("2 months", "2024-04-25", "2024-05-05", "2024-06-25"),
        ("1 day", "2024-02-20T06:00:00", "2024-02-03T15:00:00", "2024-02-20T06:00:00"),
        ("2 weeks", "2026-01-05", "2026-01-05", "2026-01-19"),
        ("1 year", "2024-02-29", "2024-03-01", "2025-02-28"),
        ("1 year", "2024-02-29", "2027-03-01", "2028-02-29"),
        ("7 months", "2000-01-01", "2000-01-02", "2000-08-01"),
        ("10 years", "2000-01-01", "2026-01-02", "2030-01-01"),
    ],
)
def test_slots_that_others_get_wrong(interval, origin, after, expected):
    """Rows of reported mistakes, and the simplest of each unit."""
    origin, after, expected = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (origin, after, expected))
    assert Calendar(interval, origin=origin).next(after) == expected


def chain(calendar, after, count):
    """List some slots as local times."""
    found = []
    for _ in range(count):
        after = calendar.next(after)
        found.append(after.astimezone(BERLIN).isoformat(" ", "minutes"))
    return found


def test_month_ends_clamp_to_the_day_of_the_origin():
    """After a short month the origin's day comes back; counting on from the last slot would stay at the 28th."""
    calendar = Calendar("1 month", origin=datetime(2026, 1, 31, 9, tzinfo=BERLIN), tz="Europe/Berlin")
    assert chain(calendar, datetime(2026, 1, 1, tzinfo=UTC), 5) == [
        "2026-01-31 09:00+01:00",
        "2026-02-28 09:00+01:00",
        "2026-03-31 09:00+02:00",
        "2026-04-30 09:00+02:00",
        "2026-05-31 09:00+02:00",
    ]


def test_a_skipped_wall_time_means_the_end_of_the_gap():
    """02:30 does not come on the day that clocks go forward; the next day it does."""
    calendar = Calendar("1 day", origin=datetime(2026, 3, 28, 2, 30, tzinfo=BERLIN), tz="Europe/Berlin")
    assert chain(calendar, datetime(2026, 3, 28, tzinfo=UTC), 3) == [
        "2026-03-28 02:30+01:00",
        "2026-03-29 03:00+02:00",
        "2026-03-30 02:30+02:00",
    ]


def test_a_wall_time_that_comes_twice_means_the_first():
    """02:30 comes once on the day that clocks go back, in summer time."""
    calendar = Calendar("1 day", origin=datetime(2026, 10, 24, 2, 30, tzinfo=BERLIN), tz="Europe/Berlin")
    assert chain(calendar, datetime(2026, 10, 24, tzinfo=UTC), 3) == [
        "2026-10-24 02:30+02:00",
        "2026-10-25 02:30+02:00",
        "2026-10-26 02:30+01:00",
    ]


def test_an_origin_in_the_second_pass_of_an_hour_stands_as_given():
    """It is an instant, so it is not moved to the first pass."""
    origin = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN)
    calendar = Calendar("1 day", origin=origin, tz="Europe/Berlin")
    assert chain(calendar, datetime(2026, 10, 25, tzinfo=UTC), 2) == [
        "2026-10-25 02:30+01:00",
        "2026-10-26 02:30+01:00",
    ]


def test_a_day_that_a_country_skipped_is_not_counted_twice():
    """Samoa had no 30 December 2011: midnight of the 30th and of the 31st are one instant, and one slot."""
    apia = ZoneInfo("Pacific/Apia")
    calendar = Calendar("1 day", origin=datetime(2011, 12, 28, tzinfo=apia), tz="Pacific/Apia")
    slots = [datetime(2011, 12, 28, 12, tzinfo=apia)]
    for _ in range(3):
        slots.append(calendar.next(slots[-1]))
    assert [slot.astimezone(apia).day for slot in slots[1:]] == [29, 31, 1]


@pytest.mark.parametrize(
    "interval", ["0 days", "-1 day", "1 hour", "day", "", "1.5 months", "1 month 2 days", "fortnight", 7, None]
)
def test_other_intervals_are_refused(interval):
    """One count and one unit; hours are for Every."""
    with pytest.raises(ScheduleError, match="calendar interval"):
        Calendar(interval, origin=datetime(2026, 1, 1, tzinfo=UTC))


def test_an_unknown_zone_is_refused_with_a_suggestion():
    """A slip of the pen is found when the schedule is made."""
    with pytest.raises(ScheduleError, match="did you mean 'Europe/Berlin'"):
        Calendar("1 day", origin=datetime(2026, 1, 1, tzinfo=UTC), tz="Europe/Berln")


def test_a_naive_origin_is_refused():
    """The error says how to write it."""
    with pytest.raises(ScheduleError, match="tzinfo=UTC"):
        Calendar("1 day", origin=datetime(2026, 1, 1))


@pytest.mark.parametrize(("zone", "name"), [(BERLIN, "Europe/Berlin"), (UTC, "UTC"), (ZoneInfo("UTC"), "UTC")])
def test_the_zone_of_the_origin_is_that_of_the_calendar(zone, name):
    """Noon in Berlin is noon in summer too: an hour off for half the year helps nobody."""
    calendar = Calendar("1 month", origin=datetime(2026, 1, 31, 12, tzinfo=zone))

    assert calendar.tz == name
    summer = calendar.next(datetime(2026, 7, 1, tzinfo=UTC))
    assert summer.astimezone(zone).hour == 12
    assert parse(str(calendar)) == calendar
    assert Calendar("1 month", origin=calendar.origin, tz=name) == calendar


def test_an_origin_with_an_offset_needs_a_zone():
    """Plus two hours is Berlin's summer and Cairo's winter."""
    origin = datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    with pytest.raises(ScheduleError, match='tz="Europe/Berlin"'):
        Calendar("1 month", origin=origin)
    assert Calendar("1 month", origin=origin, tz="Europe/Berlin").origin == origin


@pytest.mark.parametrize("interval", ["1 day", "3 weeks", "1 month", "999999 years"])
def test_past_the_end_of_datetimes_there_is_no_next(interval):
    """The year 9999 has a last slot."""
    calendar = Calendar(interval, origin=datetime(2026, 1, 1, tzinfo=UTC))
    assert calendar.next(datetime(9999, 12, 31, 12, tzinfo=UTC)) is None


@pytest.mark.parametrize("text", ["1 month", "1 MONTHS", " 1  month "])
def test_spellings_of_an_interval_are_equal(text):
    """Equal by value means by what it says."""
    origin = datetime(2026, 1, 1, tzinfo=UTC)
    assert Calendar(text, origin=origin) == Calendar("1 month", origin=origin)


instants = st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))
zones = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"]
)


@given(st.sampled_from([("day", 1), ("week", 7)]), st.integers(1, 40), instants, instants, zones)
def test_days_and_weeks_equal_an_enumeration(unit, count, origin, after, tz):
    """The slot found by index is the one that walking from the origin would meet first."""
    name, days = unit
    calendar = Calendar(f"{count} {name}s", origin=origin, tz=tz)
    found, zone = calendar.next(after), ZoneInfo(tz)
    wall = origin.astimezone(zone).replace(tzinfo=None, fold=0)
    steps = max(0, (after - origin) // timedelta(days=days * count) - 2)
    candidates = [origin] + [
        arrival(wall + timedelta(days=days * count * step), zone) for step in range(max(1, steps), steps + 6)
    ]
    assert found == min(slot for slot in candidates if slot > after)


def arrival(wall, zone):
    """Find when clocks first show at least this wall time, minute by minute around it."""
    guess = wall.replace(tzinfo=zone).astimezone(UTC)
    shown = guess.astimezone(zone).replace(tzinfo=None, fold=0)
    if shown == wall:
        return guess
    start = guess.replace(second=0, microsecond=0) - timedelta(days=2)
    walls = (
        (start + timedelta(minutes=n), (start + timedelta(minutes=n)).astimezone(zone)) for n in range(4 * 24 * 60)
    )
    return next(instant for instant, local in walls if local.replace(tzinfo=None, fold=0) >= wall)


@given(st.sampled_from([("month", 1), ("year", 12)]), st.integers(1, 30), instants, instants)
def test_months_and_years_equal_an_enumeration(unit, count, origin, after):
    """In UTC: step by step from the origin, clamped to the length of the month."""
    name, months = unit
    day, expected, step = timedelta(days=1), origin, 0
    while expected <= after:
        step += 1
        year, month = divmod(origin.year * 12 + origin.month - 1 + step * months * count, 12)
        first_of_next = datetime(year + month // 11, (month + 1) % 12 + 1, 1)
        expected = origin.replace(year=year, month=month + 1, day=min(origin.day, (first_of_next - day).day))
    assert Calendar(f"{count} {name}s", origin=origin).next(after) == expected


@given(
    st.sampled_from(["1 day", "2 weeks", "1 month", "5 months", "1 year"]),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    st.datetimes(datetime(1971, 1, 1), datetime(2036, 1, 1), timezones=st.just(UTC)),
    st.timedeltas(timedelta(days=-400), timedelta(days=800)),
    st.timedeltas(timedelta(0), timedelta(days=400)),
)
def test_slots_are_counted_by_their_indexes(interval, tz, origin, before, length):
    """As many as one finds one by one."""
    calendar, after = Calendar(interval, origin=origin, tz=tz), origin + before
    walked, slot = 0, calendar.next(after)
    while slot is not None and slot <= after + length:
        walked, slot = walked + 1, calendar.next(slot)
    assert calendar.count(after, after + length) == walked


@pytest.mark.parametrize("interval", ["1 day", "2 days", "1 week", "1 month"])
@pytest.mark.parametrize("zone", ["Pacific/Apia", "Pacific/Kwajalein", "Pacific/Kiritimati", "Europe/Berlin"])
def test_slots_that_fall_together_are_counted_once(interval, zone):
    """Where a zone has left out a whole day, two slots are one instant."""
    for origin in (datetime(1993, 8, 1, 12), datetime(1994, 12, 27, 10), datetime(2011, 12, 24, 10)):
        origin = origin.replace(tzinfo=UTC)  # noqa: PLW2901 - one value, in two steps
        calendar = Calendar(interval, origin=origin, tz=zone)
        for first in range(0, 40, 3):
            after, slots = origin + timedelta(days=first), []
            while (slot := calendar.next(slots[-1] if slots else after)) <= origin + timedelta(days=60):
                slots.append(slot)
            for number, slot in enumerate(slots):
                assert calendar.count(after, slot) == number + 1
                assert calendar.count(after, slot - timedelta(microseconds=1)) == number
