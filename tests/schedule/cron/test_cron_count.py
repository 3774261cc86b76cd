"""How many slots a cron expression has between two instants, by arithmetic: as many as one finds one by one."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings, strategies as st

from kit import examples
from schedule import Cron
from schedule._cron.count import MAX_SPAN

DAY, HOUR, MINUTE, MICROSECOND = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(microseconds=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour of summer time
    "Africa/Casablanca",  # two changes within a month
    "America/Sao_Paulo",  # changes at midnight, until 2019
    "Asia/Kathmandu",
    "Pacific/Apia",  # a day that was left out, in 2011
    "Africa/Monrovia",  # 44 minutes and 30 seconds, until 1972
]
CHANGES = [
    datetime(2026, 3, 29, 1, tzinfo=UTC),  # Berlin
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 3, 8, 7, tzinfo=UTC),  # New York
    datetime(2026, 11, 1, 6, tzinfo=UTC),
    datetime(2026, 4, 4, 15, tzinfo=UTC),  # Lord Howe
    datetime(2026, 10, 3, 15, 30, tzinfo=UTC),
    datetime(2026, 2, 15, 2, tzinfo=UTC),  # Casablanca
    datetime(2026, 3, 22, 2, tzinfo=UTC),
    datetime(2018, 11, 4, 3, tzinfo=UTC),  # Sao Paulo
    datetime(2019, 2, 17, 2, tzinfo=UTC),
    datetime(2011, 12, 30, 10, tzinfo=UTC),  # Apia
    datetime(1972, 1, 7, 0, 44, 30, tzinfo=UTC),  # Monrovia
    datetime(2028, 2, 29, tzinfo=UTC),
    datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC),
]
EXPRESSIONS = [
    "* * * * *",
    "*/7 * * * *",
    "30 2 * * *",
    "15,45 2 * * *",
    "0 2-4 * * *",
    "*/20 0,1,2,3 * * *",
    "59 23 * * *",
    "0 0 * * *",
    "30 */2 * * *",
    "*/30 2 * * *",
    "0 0-23 * * *",
    "7 1-3,22-23 * * *",
    "5,10 0 * * sat-sun",
    "0 12 L * *",
    "0 9 15W * fri#2",
    "0 0 29 2 *",
    "*/10 30 1-2 * * *",
    "13 */29 * * * *",
    "0 0 0 1 1 * 2027",
    "30 0 30 12 *",
]
SPANS = [(-26, -1), (-3, -2.8), (-3, 4), (-1, 1), (-0.5, 0.5), (0, 1), (0.25, 0.45), (0.25, 2), (1, 5), (26, 27)]
"""In hours from a change."""


def walked(cron, after, until):
    """How many one finds one by one."""
    found = 0
    while (slot := cron.next(after)) is not None and slot <= until:
        found, after = found + 1, slot
    return found


@pytest.mark.parametrize("tz", ZONES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_around_each_change_of_clocks_every_slot_is_counted_once(expression, tz):
    """From some hours before to some hours after it, and from within an hour that comes twice."""
    cron = Cron(expression, tz=tz)
    for change in CHANGES:
        for start, end in SPANS:
            after, until = change + HOUR * start, change + HOUR * end
            assert cron.count(after, until) == (walked(cron, after, until), True)


@settings(max_examples=examples(300))
@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(ZONES),
    st.sampled_from(CHANGES),
    st.timedeltas(-3 * DAY, 3 * DAY),
    st.timedeltas(timedelta(0), 2 * DAY),
)
@example("* * * * *", "UTC", NOON, timedelta(0), timedelta(0))
@example("* * * * *", "UTC", NOON, -MICROSECOND, MICROSECOND)
def test_any_stretch_has_as_many_slots_as_one_finds_one_by_one(expression, tz, change, before, length):
    """To the microsecond."""
    cron, after = Cron(expression, tz=tz), change + before
    assert cron.count(after, after + length) == (walked(cron, after, after + length), True)


@given(
    st.sampled_from([each for each in EXPRESSIONS if not each.startswith("*")]),
    st.sampled_from(ZONES),
    st.datetimes(datetime(1971, 1, 1), datetime(2036, 1, 1), timezones=st.just(UTC)),
    st.timedeltas(timedelta(0), MAX_SPAN),
)
def test_months_are_counted_as_wholes(expression, tz, after, length):
    """Leap days, last days and years included."""
    cron = Cron(expression, tz=tz)
    assert cron.count(after, after + length) == (walked(cron, after, after + length), True)


def test_more_than_a_hundred_days_are_a_lower_bound():
    """It is the count of the first hundred days, which takes no longer."""
    cron = Cron("* * * * *", tz="Europe/Berlin")
    assert cron.count(NOON, NOON + MAX_SPAN) == (100 * 24 * 60, True)
    assert cron.count(NOON, NOON + MAX_SPAN + MICROSECOND) == (100 * 24 * 60, False)
    assert cron.count(NOON, NOON + 5_000 * DAY) == (100 * 24 * 60, False)


def test_nothing_is_counted_backwards():
    """Neither in an empty stretch."""
    cron = Cron("* * * * *")
    assert cron.count(NOON, NOON) == cron.count(NOON, NOON - DAY) == (0, True)
    assert cron.count(NOON - MICROSECOND, NOON) == (1, True)


@pytest.mark.parametrize("tz", ZONES)
def test_at_the_ends_of_the_calendar_it_is_counted_or_not_but_nothing_is_raised(tz):
    """Whoever asks goes from slot to slot instead."""
    cron = Cron("0 * * * *", tz=tz)
    first, last = (edge.replace(tzinfo=UTC) for edge in (datetime.min, datetime.max))
    for after, until in ((first, first + DAY), (last - DAY, last), (first, last)):
        found = cron.count(after, until)
        assert found is None or found[0] >= 0
