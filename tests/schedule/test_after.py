"""`After`: a pause."""

from datetime import UTC, datetime, timedelta

import pytest

from schedule import After, ScheduleError

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_the_pause_counts_from_what_is_given():
    """The scheduler gives the end of the run."""
    assert After("10s").next(NOON) == NOON + timedelta(seconds=10)


def test_the_answer_is_in_utc():
    """Whatever zone the question came in."""
    asked = NOON.astimezone(datetime.fromisoformat("2026-03-01T12:00:00+05:30").tzinfo)
    assert After("1m").next(asked).tzinfo is UTC


def test_binding_changes_nothing():
    """A pause is the same for every job."""
    assert After("10s").bind("web") == After("10s")


@pytest.mark.parametrize("interval", [0, "0s", -1])
def test_no_pause_is_refused(interval):
    """It would run without end."""
    with pytest.raises(ScheduleError):
        After(interval)


def test_naive_datetimes_are_refused():
    """The error says how to write it."""
    with pytest.raises(ScheduleError, match="tzinfo=UTC"):
        After("10s").next(datetime(2026, 3, 1))


def test_past_the_end_of_datetimes_there_is_no_next():
    """The year 9999 has a last second."""
    assert After("1s").next(datetime.max.replace(tzinfo=UTC)) is None
