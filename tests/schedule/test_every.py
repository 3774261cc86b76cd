"""`Every`: a grid that stays where it is, with phase and jitter by hash."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from schedule import Every, ScheduleError, phase

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

instants = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
intervals = st.timedeltas(timedelta(microseconds=1), timedelta(days=500))


def test_without_anchor_or_job_the_grid_goes_through_the_epoch():
    """Ten seconds means :00, :10, :20 for everybody."""
    assert Every("10s").next(NOON + timedelta(seconds=3)) == NOON + timedelta(seconds=10)


def test_a_slot_is_strictly_later():
    """Asked at a slot, the next one is the answer."""
    assert Every("10s").next(NOON) == NOON + timedelta(seconds=10)
    assert Every("10s").next(NOON - MICROSECOND) == NOON


def test_an_anchor_moves_the_grid_and_is_no_start():
    """The grid goes through the anchor in both directions."""
    every = Every("1h", anchor=NOON + timedelta(minutes=7))
    assert every.next(NOON - timedelta(hours=5)) == NOON - timedelta(hours=4, minutes=53)
    assert every.next(NOON + timedelta(minutes=7)) == NOON + timedelta(hours=1, minutes=7)


def test_an_anchor_may_be_given_in_any_zone():
    """Equal instants make equal schedules."""
    berlin = timezone(timedelta(hours=1))
    assert Every("1h", anchor=NOON.astimezone(berlin)) == Every("1h", anchor=NOON)


def test_the_grid_does_not_drift_in_a_million_slots():
    """A third of a second is not a whole number of microseconds; its grid is all the same exact."""
    every = Every(timedelta(microseconds=333_333), anchor=NOON)
    assert every.next(NOON + timedelta(microseconds=333_333 * 1_000_000)) == NOON + timedelta(
        microseconds=333_333 * 1_000_001
    )


@pytest.mark.parametrize("interval", [0, "0s", -1, "-5s", timedelta(0), timedelta(seconds=-1), "foobar", None])
def test_an_interval_must_be_longer_than_nothing(interval):
    """A schedule that would run without end is refused when it is made."""
    with pytest.raises(ScheduleError):
        Every(interval)


@pytest.mark.parametrize("jitter", ["10s", "11s", "-1s"])
def test_jitter_must_be_shorter_than_the_interval(jitter):
    """Longer jitter would let slots overtake each other."""
    with pytest.raises(ScheduleError, match=r"jitter|durations count from 0"):
        Every("10s", jitter=jitter)


@pytest.mark.parametrize(
    "make", [lambda: Every("1h", anchor=datetime(2026, 1, 1)), lambda: Every("1h").next(datetime(2026, 1, 1))]
)
def test_naive_datetimes_are_refused_with_the_remedy(make):
    """The error says how to write it."""
    with pytest.raises(ScheduleError, match=r"tzinfo=UTC.*ZoneInfo\(\"Europe/Berlin\"\)"):
        make()


def test_what_is_no_datetime_is_refused():
    """A number of seconds is no instant."""
    with pytest.raises(ScheduleError, match="datetime with a zone"):
        Every("1h").next(0)


def test_past_the_end_of_datetimes_there_is_no_next():
    """The year 9999 has a last slot."""
    assert Every("1d").next(datetime.max.replace(tzinfo=UTC)) is None


def test_binding_moves_the_grid_to_the_phase_of_the_job():
    """The job's slots are its phase plus multiples of the interval since the epoch."""
    bound = Every("10s").bind("web")
    assert bound.anchor == EPOCH + phase("web", timedelta(seconds=10))
    assert bound.next(EPOCH) == EPOCH + phase("web", "10s")


def test_binding_keeps_an_anchor():
    """Who says where the grid lies is not overruled."""
    anchored = Every("10s", anchor=NOON)
    assert anchored.bind("web") == anchored


@pytest.mark.parametrize("every", [Every("10s"), Every("10s", jitter="1s"), Every("10s", anchor=NOON, jitter="2s")])
def test_binding_again_changes_nothing(every):
    """Not with the same key, nor with another one."""
    bound = every.bind("web")
    assert bound.bind("web") == bound
    assert bound.bind("other") == bound


def test_jobs_spread_evenly_over_their_interval():
    """No tenth of the interval gets much more or less than its share of 10,000 jobs."""
    tenths = [0] * 10
    for number in range(10_000):
        tenths[math.floor(phase(f"job-{number}", "10s") / timedelta(seconds=1))] += 1
    assert min(tenths) > 850
    assert max(tenths) < 1150


def test_jitter_differs_from_job_to_job_and_slot_to_slot():
    """It spreads, and it is the same each time it is asked."""
    every = Every("10s", anchor=EPOCH, jitter="5s")
    grid = [EPOCH + timedelta(seconds=10 * n) for n in range(20)]
    offsets = {(every.bind(key).next(slot) - EPOCH) % timedelta(seconds=10) for key in "ab" for slot in grid}
    assert len(offsets) == 40
    assert max(offsets) <= timedelta(seconds=5)
    assert every.bind("a").next(NOON) == every.bind("a").next(NOON)


def test_the_longest_jitter_still_keeps_the_order():
    """A microsecond less than the interval: on a grid of two, each slot lies in its own cell, early or late in it."""
    every, slot, cells = Every(2 * MICROSECOND, jitter=MICROSECOND).bind("web"), NOON, []
    for _ in range(200):
        slot = every.next(slot)
        cells.append(divmod(slot - every.anchor, 2 * MICROSECOND))
    assert [cell for cell, _ in cells] == list(range(cells[0][0], cells[0][0] + 200))
    assert {late for _, late in cells} == {timedelta(0), MICROSECOND}


@given(instants, intervals, st.floats(0, 0.999_999), st.text(max_size=5))
def test_jittered_slots_keep_their_order(after, interval, part, key):
    """Each slot lies in its own interval of the grid, and the chain of next() meets every one of them."""
    every = Every(interval, jitter=min(interval * part, interval - MICROSECOND) // MICROSECOND * MICROSECOND).bind(key)
    found = [after]
    for _ in range(5):
        found.append(every.next(found[-1]))
    cells = [(slot - every.anchor) // interval for slot in found[1:]] if every.anchor else []
    assert found == sorted(set(found))
    assert cells == list(range(cells[0], cells[0] + 5))


@given(instants, intervals, instants)
def test_slots_are_whole_intervals_from_the_anchor(after, interval, anchor):
    """The next slot is on the grid, later, and at most one interval away."""
    found = Every(interval, anchor=anchor).next(after)
    assert (found - anchor) % interval == timedelta(0)
    assert after < found <= after + interval


def test_text_says_everything_but_the_key():
    """The key comes back when the schedule is bound to its job again."""
    assert str(Every(90)) == "@every 1m30s"
    bound = Every("10s", anchor=NOON, jitter="1s").bind("web")
    assert str(bound) == "@every 10s anchor=2026-03-01T12:00:00+00:00 jitter=1s"
