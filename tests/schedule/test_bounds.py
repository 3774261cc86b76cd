"""The ends of what can be held: no duration longer than the calendar, no instant outside of it, and no other error."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from schedule import (
    After,
    At,
    Calendar,
    Cron,
    Every,
    ScheduleError,
    Window,
    duration,
    parse,
    text_of,
)
from schedule._common.instant import FIRST_INSTANT, LAST_INSTANT, LONGEST_DURATION

US = timedelta(microseconds=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
INSTANTS = (
    FIRST_INSTANT,
    FIRST_INSTANT + 12 * timedelta(hours=1),
    datetime(1, 3, 1, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    NOON,
    datetime(9999, 12, 1, tzinfo=UTC),
    LAST_INSTANT - timedelta(hours=12),
    LAST_INSTANT,
)


def test_the_longest_duration_leads_from_the_first_instant_to_the_last():
    """So every instant plus or minus a duration is in reach of 64 bits of microseconds, and floats hold its seconds."""
    assert timedelta(0) < LAST_INSTANT - (FIRST_INSTANT + LONGEST_DURATION) < timedelta(days=1)
    assert duration(LONGEST_DURATION.total_seconds()) == LONGEST_DURATION
    assert 3 * (LONGEST_DURATION // US) < 2**63
    assert duration(LONGEST_DURATION) == LONGEST_DURATION
    assert Every(LONGEST_DURATION).next(NOON) in {None, Every(LONGEST_DURATION).next(FIRST_INSTANT)}


TOO_LONG = [LONGEST_DURATION + US, timedelta.max, "400000000d", "3652060d", "P3652060D", 1e15, 10**400, 10**5000]


@pytest.mark.parametrize("long", TOO_LONG, ids=lambda long: str(long)[:20] if not isinstance(long, int) else "int")
@pytest.mark.parametrize(
    "make",
    [
        duration,
        Every,
        After,
        lambda long: Every("1d", jitter=long),
        lambda long: Window(Every("1d"), long),
    ],
    ids=["duration", "Every", "After", "jitter", "Window"],
)
def test_a_longer_duration_is_refused_wherever_it_is_given(make, long):
    """With the bound, and before any arithmetic: some hundred thousand years had stopped a store for all jobs."""
    with pytest.raises(ScheduleError, match=r"is too long: at most 3652058 days, about 9,999 years"):
        make(long)


@pytest.mark.parametrize(
    "text",
    [
        "@every 200000000d",
        "@after 200000000d",
        "@every 400000000d anchor=2026-01-01T00:00Z",
        "@every 1d jitter=400000000d",
        "@every 200000000d | @hourly",
        "@hourly except (@daily for 300000000d)",
    ],
)
def test_parse_refuses_what_the_kinds_refuse(text):
    """Alone, and inside of what combines them."""
    with pytest.raises(ScheduleError, match="too long"):
        parse(text)


@pytest.mark.parametrize("unit", ["days", "weeks", "months", "years"])
def test_a_calendar_interval_has_six_digits_at_most(unit):
    """What leads beyond the last instant never comes: no count overflows anything."""
    longest = Calendar(f"999999 {unit}", origin=NOON)
    for after in INSTANTS:
        found = longest.next(after)
        assert found is None or found > after
    for longer in ("1000000", "9" * 5000):
        with pytest.raises(ScheduleError, match="cannot read the calendar interval"):
            Calendar(f"{longer} {unit}", origin=NOON)


@pytest.mark.parametrize(
    "instant",
    [
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    ],
    ids=["late", "early"],
)
@pytest.mark.parametrize(
    "make",
    [
        At,
        lambda when: Every("1d", anchor=when),
        lambda when: Calendar("1 day", origin=when, tz="UTC"),
        lambda when: Every("1d").between(when),
        lambda when: Every("1d").next(when),
        lambda when: After("1d").next(when),
        lambda when: Cron("@daily").next(when),
        lambda when: Calendar("1 day", origin=NOON).next(when),
        lambda when: At(NOON).next(when),
        (Every("1d") | At(NOON)).next,
    ],
)
def test_an_instant_outside_of_the_calendar_in_utc_is_refused(make, instant):
    """A datetime can stand for one, by its offset."""
    with pytest.raises(ScheduleError, match="outside the years 1 to 9999 in UTC"):
        make(instant)


def test_a_calendar_whose_origin_has_no_wall_time_is_refused():
    """It would be refused, or never come, whenever it was asked."""
    with pytest.raises(ScheduleError, match=r"origin .* outside the years 1 to 9999 in America/New_York"):
        Calendar("1 day", origin=FIRST_INSTANT, tz="America/New_York")


@pytest.mark.parametrize("tz", ["UTC", "America/New_York", "Asia/Tokyo", "Pacific/Kiritimati"])
@pytest.mark.parametrize("expression", ["* * * * *", "0 0 * * *", "30 2 1 1 *", "0 0 * * * *"])
def test_cron_comes_in_the_first_year(expression, tz):
    """None would mean never again, though it comes for ten thousand years."""
    found = Cron(expression, tz=tz).next(FIRST_INSTANT)
    assert found is not None
    assert found.year in {1, 2}


def test_windows_reach_over_both_ends_of_the_calendar():
    """Their starts are looked for from the first instant on, and they last to the last one at most."""
    age = Window(At(NOON), LONGEST_DURATION)
    assert age.end(NOON + timedelta(days=1)) == LAST_INSTANT
    assert age.end(NOON - US) is None
    assert age.end(FIRST_INSTANT) is None
    assert Every("1d").except_(age).next(NOON) is None


def test_the_phase_of_the_longest_interval_is_in_the_calendar():
    """Such a grid has a slot or none: it does not overflow."""
    for number in range(50):
        bound = Every(LONGEST_DURATION).bind(f"job-{number}")
        assert isinstance(bound, Every)
        assert bound.anchor is not None
        assert parse(text_of(bound)) == bound
        assert bound.bind("other") == bound
        for instant in INSTANTS:
            found = bound.next(instant)
            assert found is None or found > instant


@given(st.one_of(st.floats(), st.integers(), st.timedeltas(), st.text(), st.integers(-(10**500), 10**500)))
def test_any_value_is_a_duration_or_a_schedule_error(value):
    """Within the bounds."""
    try:
        found = duration(value)
    except ScheduleError:
        return
    assert timedelta(0) <= found <= LONGEST_DURATION


@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, math.nan, 1e308, -1e308, 10**5000, -(10**5000)], ids=lambda _: "number"
)
def test_numbers_without_measure_are_refused_as_durations(value):
    """A number of five thousand digits cannot even be shown."""
    with pytest.raises(ScheduleError):
        duration(value)
