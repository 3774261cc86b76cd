"""`At`: once."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from schedule import At, ScheduleError

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_it_comes_once():
    """Before its instant it is next, from its instant on it is over."""
    at = At(NOON)
    assert at.next(NOON - timedelta(microseconds=1)) == NOON
    assert at.next(NOON) is None
    assert at.next(NOON + timedelta(days=1)) is None


def test_equal_instants_are_equal_schedules():
    """Values compare by what they mean, not by the zone they were written in."""
    assert At(NOON) == At(NOON.astimezone(timezone(timedelta(hours=9))))
    assert len({At(NOON), At(NOON.astimezone(timezone(timedelta(hours=9))))}) == 1


@pytest.mark.parametrize("make", [lambda: At(datetime(2026, 3, 1)), lambda: At(NOON).next(datetime(2026, 3, 1))])
def test_naive_datetimes_are_refused(make):
    """The error says how to write it."""
    with pytest.raises(ScheduleError, match="tzinfo=UTC"):
        make()
