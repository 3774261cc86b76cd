"""What follows when a scheduler starts again: floors, quarantine, and where a job goes on."""

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from schedule import After, At, Calendar, Cron, Every, Missed
from scheduler import Retry
from scheduler._plan.after_restart import (
    LONGEST_FLOOR,
    QUARANTINE_AFTER,
    Aftermath,
    Return,
    after_crash,
    after_downtime,
    rest_until,
    retry_by,
)
from scheduler._plan.planner import planner_for
from scheduler._plan.timeline import us_of
from scheduler._values.policy import Policy
from timerqueue.testing import START

T0 = us_of(START)
SECOND = 1_000_000
MINUTE = 60 * SECOND
FLOOR = 5 * MINUTE
PLAIN = Policy()

instants = st.integers(T0, T0 + 10**15)
lots = st.floats(0, 1, exclude_max=True)
policies = st.sampled_from(
    [
        PLAIN,
        Policy(retry=Retry.constant("1h")),
        Policy(retry=Retry.exponential("2m", cap=None)),
        Policy(retry=Retry.timescaledb()),
        Policy(retry=Retry.exponential("30d", cap=None, jitter=0)),
    ]
)
schedules = st.sampled_from([
    Every("10s", anchor=START),
    Every("7m", anchor=START),
    Calendar("1 day", origin=START),
    Cron("*/10 * * * *"),
    After("90s"),
    At(START + timedelta(minutes=1)),
])  # fmt: skip


def crash(now, crashes=1, policy=PLAIN, known=None, lot=0.5):
    """Find a crash."""
    return after_crash(now, FLOOR, crashes, policy, interval=MINUTE, random=lot, not_before_us=known)


@pytest.mark.parametrize(
    ("policy", "crashes", "minutes"),
    [
        pytest.param(PLAIN, 1, 5, id="the floor alone"),
        pytest.param(PLAIN, 2, 5, id="without a rule it does not grow"),
        pytest.param(Policy(retry=Retry.constant("1m")), 1, 5, id="the floor is longer"),
        pytest.param(Policy(retry=Retry.linear("4m")), 2, 8, id="the rule is longer"),
        pytest.param(Policy(retry=Retry.linear("9m", cap="6m")), 2, 6, id="the rule's own cap"),
        pytest.param(Policy(retry=Retry.linear("4m", max_retries=0)), 2, 8, id="no retries left"),
        pytest.param(Policy(retry=Retry.constant("30d")), 1, 24 * 60, id="a rule that is too long"),
    ],
)
def test_nothing_starts_before_the_longer_of_floor_and_back_off(policy, crashes, minutes):
    """Counted from the moment when the crash was found."""
    assert crash(T0, crashes, policy=policy).not_before_us == T0 + minutes * MINUTE


def test_the_third_death_in_a_row_quarantines():
    """The first two do not."""
    assert QUARANTINE_AFTER == 3
    assert [crash(T0, n).quarantine for n in (1, 2)] == [None, None]
    assert crash(T0, 3) == Aftermath(T0 + FLOOR, "quarantined: its process died under it 3 times in a row")


@given(instants, st.integers(0, 10**12), st.integers(1, 2), policies, lots)
def test_each_death_has_a_floor_of_its_own(now, later, crashes, policy, lot):
    """A run by hand may begin while the job rests, and the process die under it: it rests anew from there."""
    first = crash(now, crashes, policy, lot=lot).not_before_us
    assert now + FLOOR <= first <= now + LONGEST_FLOOR
    again = crash(now + later, crashes, policy, known=first, lot=1 - 2**-53 - lot / 2).not_before_us
    assert again >= max(first, now + later + FLOOR)


@given(instants, st.integers(-(10**14), 10**14), st.integers(1, 4), policies)
def test_a_stored_floor_holds_no_longer_than_one_found_now(now, ahead, crashes, policy):
    """The clock may have been ahead when it was found; one that is over holds no more, a shorter one as it is."""

    def rest(us):
        return rest_until(us, now, FLOOR, crashes, policy, interval=MINUTE)

    assert rest(None) is None
    longest = rest(now + 10**15)
    assert longest == max(crash(now, crashes, policy, lot=lot).not_before_us for lot in (0, 1 - 2**-53))
    assert rest(now + ahead) == (None if ahead <= 0 else min(now + ahead, longest))


@given(instants, st.integers(-(10**14), 10**14), policies)
def test_a_stored_retry_comes_no_later_than_one_of_now_would(now, ahead, policy):
    """However far ahead the clock was; without a rule by now it comes at once."""
    longest = 0 if policy.retry is None else int(policy.retry.delay(1, 0.0, 60.0) * 1e6)
    assert retry_by(now + ahead, now, 1, policy, interval=MINUTE) == min(now + ahead, now + longest)


@given(st.lists(st.integers(0, 20 * MINUTE), min_size=1, max_size=20), policies, st.data())
def test_floors_only_rise(steps, policy, data):
    """Over any number of deaths and starts, each of which knows what the one before it has stored."""
    now, known = T0, None
    for step in steps:
        now += step
        found = crash(now, 1, policy=policy, known=known, lot=data.draw(lots)).not_before_us
        assert found > now
        assert known is None or found >= known
        known = found


@given(schedules, st.integers(0, 10**11), st.integers(1, LONGEST_FLOOR), st.sampled_from(Missed))
def test_no_start_comes_before_the_floor(schedule, ahead, floor, missed):
    """And what was skipped for it is counted, from the stored start on."""
    planner = planner_for(schedule)
    stored = planner.first("a", T0)
    now = T0 + ahead
    found = after_downtime(
        planner, "a", Policy(missed=missed), now, next_us=stored, not_before_us=now + floor, last_finish_us=None
    )
    assert found.due_us >= now + floor
    if found.skipped is not None:
        assert found.skipped.run == ()
        assert found.skipped.first_missed == stored <= found.skipped.last_missed < now + floor
        assert found.skipped.missed >= 1
        assert planner.following(found.skipped.last_missed) == found.due_us


def test_a_regular_start_after_the_floor_stays():
    """There is nothing to move."""
    planner = planner_for(Every("1h", anchor=START))
    due = T0 + 60 * MINUTE
    assert after_downtime(planner, "a", PLAIN, T0, next_us=due, not_before_us=T0 + FLOOR) == Return(due)


def test_starts_before_the_floor_are_skipped_and_counted():
    """The next one is the first slot from the floor on, the floor itself included."""
    planner = planner_for(Every("1m", anchor=START))
    found = after_downtime(planner, "a", PLAIN, T0, next_us=T0 + MINUTE, not_before_us=T0 + FLOOR)
    assert found.due_us == T0 + FLOOR
    assert found.skipped is not None
    assert (found.skipped.missed, found.skipped.first_missed, found.skipped.last_missed) == (
        4,
        T0 + MINUTE,
        T0 + 4 * MINUTE,
    )


@pytest.mark.parametrize("floor", [None, T0 - 1], ids=["never crashed", "the floor is over"])
@pytest.mark.parametrize("schedule", [Every("1m", anchor=START), After("1m"), Cron("* * * * *")], ids=str)
def test_a_start_that_passed_in_the_downtime_is_due_now(schedule, floor):
    """What of it runs is decided where every late tick is: see Planner.gap."""
    found = after_downtime(planner_for(schedule), "a", PLAIN, T0, next_us=T0 - 90 * MINUTE, not_before_us=floor)
    assert found == Return(T0 - 90 * MINUTE)


def test_a_fixed_delay_goes_on_from_the_end_of_its_last_run():
    """It was stored without a next start because a run went on."""
    planner = planner_for(After("10m"))
    assert after_downtime(planner, "a", PLAIN, T0, next_us=None, last_finish_us=T0 - MINUTE) == Return(T0 + 9 * MINUTE)
    assert after_downtime(planner, "a", PLAIN, T0, next_us=None) == Return(T0)
    crashed = after_downtime(planner, "a", PLAIN, T0, next_us=None, not_before_us=T0 + FLOOR)
    assert crashed == Return(T0 + FLOOR)


def test_a_job_that_was_never_planned_starts_at_its_next_slot():
    """Such as one that somebody has written into the store; a one-shot whose time has passed has none."""
    assert after_downtime(planner_for(Every("1h", anchor=START)), "a", PLAIN, T0, next_us=None) == Return(
        T0 + 60 * MINUTE
    )
    assert after_downtime(planner_for(At(START)), "a", PLAIN, T0, next_us=None) == Return(None)


def test_a_start_set_by_hand_waits_for_the_floor():
    """It is no slot, and nothing was skipped."""
    planner = planner_for(Every("1h", anchor=START))
    found = after_downtime(planner, "a", PLAIN, T0, next_us=T0 + 7, is_by_hand=True, not_before_us=T0 + FLOOR)
    assert found == Return(T0 + FLOOR, is_by_hand=True)


def test_a_one_shot_before_the_floor_comes_late_rather_than_never():
    """It has no other start."""
    planner = planner_for(At(START + timedelta(minutes=1)))
    found = after_downtime(planner, "a", PLAIN, T0, next_us=T0 + MINUTE, not_before_us=T0 + FLOOR)
    assert found == Return(T0 + FLOOR)
