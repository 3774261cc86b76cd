"""Durations: what is read, what is refused and with which advice."""

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from schedule import Every, ScheduleError, duration

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (timedelta(minutes=5), 300),
        (10, 10),
        (0.25, 0.25),
        (0, 0),
        ("90", 90),
        ("1.5", 1.5),
        ("10s", 10),
        ("1m30s", 90),
        ("1h 30m", 5400),
        ("1.5h", 5400),
        ("1d", 86_400),
        ("2w", 1_209_600),
        ("1 day 2 hours", 93_600),
        ("3 mins 5 secs", 185),
        ("500ms", 0.5),
        ("1s500ms", 1.5),
        ("250us", 0.00025),
        ("250µs", 0.00025),
        ("PT5M", 300),
        ("PT1H30M15.5S", 5415.5),
        ("P1DT12H", 129_600),
        ("P2W", 1_209_600),
        ("pt1m", 60),
        (" 5s ", 5),
        ("1M", 60),
        (".5s", 0.5),
        ("5.s", 5),
        ("1h0m", 3600),
        ("1_000", 1000),
        ("1_000ms", 1),
        ("PT0,5S", 0.5),
        ("PT0.5S", 0.5),
        ("0.100000000000000000000h", 360),
    ],
)
def test_durations_are_read(value, seconds):
    """Timedeltas, seconds, units and ISO 8601 all mean the same thing."""
    assert duration(value) == timedelta(microseconds=round(seconds * 1_000_000))


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("", "write"),
        ("s", "write"),
        ("foobar", "write"),
        ("5x", "no unit 'x'"),
        ("1s1m", "largest to the smallest"),
        ("1m1m", "largest to the smallest"),
        ("P", "write"),
        ("PT", "write"),
        ("P1DT", "write"),
        ("1e3", "no unit 'e'"),
        ("5 hours, 34 minutes", "leave the ',' away"),
        ("1,5h", "leave the ',' away"),
        ("+5s", r"leave the '\+' away"),
        ("1h30", "30 has no unit"),
        ("100ns", "no unit 'ns'"),
        ("1 wk", "no unit 'wk'"),
        ("4:13:02", "time of day"),
        ("00:05", "time of day"),
        ("10s!", "'!' is no number"),
        ("1__000s", "is no number"),
        ("never", "write"),
        ("٣s", "write"),
        ("-5s", "count from 0"),
        ("P1M", "Calendar"),
        ("P1Y", "Calendar"),
        ("1 month", "Calendar"),
        ("2 years", "Calendar"),
        (-1, "negative"),
        (timedelta(seconds=-1), "negative"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        (1e-9, "shorter than a microsecond"),
        ("0.1us", "finer than a microsecond"),
        ("1.0000005s", "finer than a microsecond"),
        (1e18, "too long"),
        ("999999999999999w", "too long"),
        (True, "timedelta, seconds or text"),
        (None, "timedelta, seconds or text"),
        (b"5s", "timedelta, seconds or text"),
    ],
)
def test_anything_else_is_refused_with_advice(value, advice):
    """The error shows the value and says what to write."""
    with pytest.raises(ScheduleError, match=advice) as caught:
        duration(value)
    assert repr(value) in str(caught.value)


@given(st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=999_999)))
def test_the_text_of_an_interval_reads_back_exactly(interval):
    """Not a microsecond is lost between a schedule and its text."""
    assert duration(str(Every(interval)).removeprefix("@every ")) == interval


@given(st.integers(0, 10**9))
def test_text_knows_no_rounding(millis):
    """Decimal fractions of text are exact, which floats would not be."""
    assert duration(f"{millis // 1000}.{millis % 1000:03}s") == SECOND * millis / 1000


def test_a_duration_is_no_long_text():
    """What is read is remembered for the next one who says it, and nobody means megabytes by it."""
    with pytest.raises(ScheduleError, match="write at most 500 characters") as caught:
        duration("1" + " " * 1_000_000)
    assert len(str(caught.value)) < 200
