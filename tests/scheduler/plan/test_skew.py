"""Whose clock is off is settled by the middle one of all, the store's among them."""

import pytest

from scheduler._plan import ClockVerdict, Skew, skew_of
from scheduler._plan.skew import is_off
from timerqueue.testing import START, ManualClock

HOUR = 3600.0


def off(seconds, others=(), *, most=1.0, was_off=False, doubt=0.0):
    return is_off(Skew(seconds, doubt, 0.0), others, most, was_off=was_off)


@pytest.mark.parametrize(
    ("ours", "others", "is_ours_off"),
    [
        (0.0, [], False),
        (HOUR, [], True),
        (-HOUR, [], True),
        (HOUR, [0.0], True),
        (0.0, [HOUR], False),
        (HOUR, [HOUR], False),
        (HOUR, [0.0, HOUR], True),
        (0.0, [0.0, HOUR], False),
        (0.9, [HOUR, -HOUR], False),
        (-HOUR, [-HOUR, -HOUR - 0.3], False),
        (0.0, [-HOUR, -HOUR - 0.3], False),
        (0.0, [-HOUR, -HOUR - 0.3, -HOUR], True),
    ],
)
def test_the_middle_clock_is_right(ours, others, is_ours_off):
    """One machine that is an hour ahead is off; a database that is, among agents that agree, is not followed."""
    assert off(ours, others) is is_ours_off


def test_what_the_round_trip_leaves_open_counts_for_the_clock():
    """A store that answered after four seconds says nothing of one and a half."""
    assert off(1.5, doubt=0.1)
    assert not off(1.5, doubt=2.0)


def test_a_clock_that_was_off_must_come_well_within():
    """One that is at the edge would have its shards go to and fro."""
    assert all(off(seconds, was_off=True) for seconds in (1.1, 0.9, -0.6))
    assert not any(off(seconds, was_off=True) for seconds in (0.5, -0.5, 0.0))


def test_nobody_cares_without_a_bound():
    """An agent may be told to start its jobs whatever its clock shows."""
    assert not off(HOUR, most=None)


@pytest.mark.parametrize("ahead", [-HOUR, 0.0, 0.25, HOUR])
def test_the_skew_is_known_to_half_the_round_trip(ahead):
    """The store's clock was read at some moment of the question, which has just been answered."""
    clock = ManualClock()
    skew = skew_of(clock, round((START.timestamp() - ahead - 0.1) * 1e6), 0.5, 0.0)
    assert abs(skew.seconds - ahead) <= skew.doubt + 1e-6
    assert skew.doubt == pytest.approx(0.25)
    assert skew.offset == pytest.approx(clock.wall() - clock.monotonic())


@pytest.mark.parametrize("ahead", [-HOUR, 0.0, HOUR])
def test_what_passes_after_the_answer_is_no_skew(ahead):
    """The thread of the lease may have waited for a processor meanwhile."""
    clock = ManualClock()
    answered_us = round((START.timestamp() - ahead) * 1e6)
    clock.advance(3)
    assert skew_of(clock, answered_us, 0.0, 3.0).seconds == pytest.approx(ahead, abs=1e-5)


@pytest.mark.parametrize(("doubt", "told"), [(0.0, 1.5), (0.3, 1.5), (0.31, None), (5.0, None)])
def test_a_skew_in_doubt_is_not_told(doubt, told):
    """The others would count it as a clock, and take their own, which are right, to be off."""
    assert Skew(1.5, doubt, 0.0).told == told


def verdicts(*looks, most=1.0):
    """The verdicts of a node that finds these skews, each its own and those of the others."""
    verdict = ClockVerdict()
    return [(verdict.judge(Skew(ours, 0.0, 0.0), others, most), verdict.is_off)[1] for ours, others in looks]


@pytest.mark.parametrize(
    ("looks", "found"),
    [
        ([(-2.0, [])], [True]),
        ([(-2.0, [-2.0]), (-2.0, [])], [False, False]),
        ([(-2.0, [-2.0]), (-2.3, []), (-2.4, [])], [False, False, False]),
        ([(-2.0, [-2.0]), (-2.6, [])], [False, True]),
        ([(-2.0, [-2.0]), (-2.0, []), (0.0, [])], [False, False, False]),
        ([(-2.0, [0.0]), (-2.0, [])], [True, True]),
        ([(-2.0, [-2.0, -2.0]), (-2.0, [0.0]), (-2.0, [])], [False, True, True]),
    ],
)
def test_the_last_node_keeps_what_the_others_said_until_its_own_skew_changes(looks, found):
    """Two of three clocks agreed that the server's is off. The death of one made a whole outage."""
    assert verdicts(*looks) == found
