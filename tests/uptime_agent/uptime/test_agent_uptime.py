"""Uptime by the clock: what is known counts for as long as it lasted, and what is not for nothing."""

import math

import pytest
from hypothesis import given, strategies as st

from uptime_agent.checks.contract.result import Status
from uptime_agent.uptime import latency_over, parse_past, past_after, together, uptime_over
from uptime_agent.uptime.past import MAX_PAST_S, MAX_STRETCHES

STATUS = {"u": Status.UP, "g": Status.DEGRADED, "d": Status.DOWN, "x": Status.UNKNOWN}
T0 = 1_763_852_400.0


def lived(*checks, holds=15.0):
    """Make the past of checks: (when, a letter)."""
    past = None
    for at, letter in checks:
        past = past_after(past, STATUS[letter], T0 + at, holds)
    return past


def every(seconds, letters):
    """Make a check every so many seconds, one for each letter; a dot: none."""
    return [(seconds * number, letter) for number, letter in enumerate(letters) if letter != "."]


def over(past, now, window):
    """Tell the uptime and what is known of it, rounded."""
    found = uptime_over(past, T0 + now, window)
    return None if found.up is None else round(found.up, 4), round(found.known, 4)


@pytest.mark.parametrize(
    ("letters", "uptime"),
    [
        ("uuuuuuuuuuu", (1.0, 1.0)),
        ("uuuuudddddd", (0.5, 1.0)),
        ("ggggggggggg", (1.0, 1.0)),
        ("ddddddddddd", (0.0, 1.0)),
        ("uuuuuxxxxxx", (1.0, 0.5)),
        ("xxxxxxxxxxx", (None, 0.0)),
        ("uuuu....ddd", (0.6, 0.5)),  # away from the last check before to the first after
        ("uuuuu......", (1.0, 0.4)),  # away still
    ],
)
def test_uptime_is_of_the_time_that_is_known(letters, uptime):
    """A check every 10 s, each holds 15; over 100 s. Unknown and away count against nothing."""
    assert over(lived(*every(10, letters)), 100, 100.0) == uptime


def test_uptime_goes_by_time_and_not_by_checks():
    """While it is down a target is checked ten times as often: that makes it no longer down."""
    checks = [*every(10, "uuuuu"), *((50 + number, "d") for number in range(50)), (100, "u")]
    assert over(lived(*checks), 100, 100.0) == (0.5, 1.0)


@pytest.mark.parametrize(("window", "uptime"), [(50.0, (0.0, 1.0)), (80.0, (0.375, 1.0)), (200.0, (0.5, 0.5))])
def test_a_window_cuts_what_is_older(window, uptime):
    """And of what is older than the first check nothing is known."""
    assert over(lived(*every(10, "uuuuudddddd")), 100, window) == uptime


def test_without_a_check_nothing_is_known():
    """Not even that it is up."""
    assert over(None, 0, 3600.0) == (None, 0.0)


def test_a_clock_that_is_set_back_begins_anew():
    """No time is counted twice, and none is negative."""
    past = lived(*every(10, "uuuu"), (5, "d"))
    assert over(past, 5, 100.0) == (None, 0.0)
    assert past.spans[0].start == T0 + 5


checks_of_a_life = st.lists(st.tuples(st.floats(0.05, 4 * 86_400.0), st.sampled_from("ugdx")), max_size=120)


@given(checks_of_a_life, st.sampled_from([1.0, 60.0, 1e5, math.inf]))
def test_a_past_is_bounded_and_is_read_as_it_was_written(checks, holds):
    """After each check, so that a restart changes nothing of it; and no share is out of its bounds."""
    past, now = None, T0
    for after, letter in checks:
        now += after
        past = past_after(past, STATUS[letter], now, holds)
        assert parse_past(str(past)) == past
        assert len(past.spans) <= MAX_STRETCHES
        assert len(str(past)) <= 600
        assert past.seen - past.spans[1 if len(past.spans) > 1 else 0].start <= MAX_PAST_S
        starts = [span.start for span in past.spans]
        assert starts == sorted(starts)
    for window in (60.0, 86_400.0, 2_592_000.0):
        found = uptime_over(past, now + 5.0, window)
        assert 0.0 <= found.known <= 1.0 + 1e-9
        assert found.up is None or 0.0 <= found.up <= 1.0


@pytest.mark.parametrize(
    "text",
    [None, 5, "", "u", "@1+2", "1.0u", "1.0u 5", "1.0q @1+2", "-1u @1+2", "1.0u @nan+2", "1.0u @1+1e99", "9" * 999],
)
def test_a_past_of_other_hands_is_refused(text):
    """It begins anew."""
    with pytest.raises(ValueError):  # noqa: PT011 - it needs no words
        parse_past(text)


def test_latency_goes_by_time_and_not_by_answers():
    """A slow answer that was the latest for half of the time is half of it, whatever came oftener."""
    answers = [(T0 + 10 * number, 0.1) for number in range(6)] + [
        (T0 + 50 + number / 10, 0.9) for number in range(1, 10)
    ]
    found = latency_over(answers, T0 + 60, 60.0)
    assert found.percentiles["p50"] == 0.1
    even = latency_over([(T0 + number, 0.001 * number) for number in range(100)], T0 + 100, 100.0)
    assert even.known == 1.0
    assert even.percentiles == pytest.approx({"p50": 0.049, "p95": 0.094, "p99": 0.098})


def test_latency_of_a_time_without_answers_is_not_known():
    """Neither of a window that is older than all, nor of a gap: an answer holds no longer than twice as usual."""
    assert latency_over([], T0, 3600.0).percentiles == {}
    found = latency_over([(T0 + number, 0.1) for number in range(10)], T0 + 100, 100.0)
    assert found.known == pytest.approx(0.11)


@pytest.mark.parametrize(
    ("series", "at_least", "uptime"),
    [
        (["uuuuuuuuuuu", "uuuuudddddd"], 1, (0.5, 1.0)),
        (["uuuuuuuuuuu", "uuuuudddddd"], 2, (1.0, 1.0)),
        (["ddddduuuuuu", "uuuuudddddd"], 1, (0.0, 1.0)),
        (["ddddduuuuuu", "uuuuudddddd"], None, (1.0, 1.0)),
        (["ddddddddddd", "uuuuugggggg"], 2, (1.0, 1.0)),
        (["uuuuuxxxxxx", "uuuuudddddd"], 2, (1.0, 0.5)),  # it may be down, if the other one is as well
        (["uuuuuxxxxxx", "uuuuudddddd"], 1, (0.5, 1.0)),
        (["uuuuuxxxxxx", "uuuuuuuuuuu"], 2, (1.0, 1.0)),
        (["uuuuu......", "uuuuudddddd"], 2, (1.0, 0.5)),  # of the first nothing is known from its last check on
    ],
)
def test_uptime_of_several_as_one_is_of_the_time_in_which_enough_were_up(series, at_least, uptime):
    """By the clock. What nobody knows counts for nothing, unless it makes no difference."""
    past = together([lived(*every(10, each)) for each in series], at_least, T0 + 100)
    assert over(past, 100, 100.0) == uptime


def test_of_targets_that_were_never_checked_nothing_is_known_together():
    """Not even that they are up."""
    assert together([None, None], 1, T0) is None
    assert over(together([None, lived(*every(10, "uuuuuuuuuuu"))], 1, T0 + 100), 100, 100.0) == (None, 0.0)


@given(st.lists(st.text("ugdx", min_size=11, max_size=11), min_size=1, max_size=4), st.sampled_from([None, 1, 2]))
def test_several_as_one_are_down_whenever_enough_of_them_are(series, at_least):
    """As whoever asked each of them at every instant would say; holding every 10 s until the next."""
    least = len(series) if at_least is None else at_least
    past = together([lived(*every(10, each), holds=10.0) for each in series], at_least, T0 + 110)
    for slot in range(10):
        letters = [each[slot] for each in series]
        found = over(past, 10 * slot + 10, 10.0)[0]
        down, unknown = letters.count("d"), letters.count("x")
        assert found == (0.0 if down >= least else None if down + unknown >= least else 1.0)
