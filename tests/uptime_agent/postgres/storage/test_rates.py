"""Rates of counters: never negative, whatever was reset."""

from itertools import pairwise

from hypothesis import given, strategies as st

from uptime_agent.postgres.storage import rates


def test_a_rate_is_the_growth_in_a_second():
    """A point without a value is passed over."""
    assert rates([(0, 10), (10, 30), (20, None), (30, 30)]) == [(10, 2.0), (30, 0.0)]


def test_a_counter_that_went_back_has_no_rate_there():
    """And one again from the next point on."""
    assert rates([(0, 10), (10, 3), (20, 5)]) == [(10, None), (20, 0.2)]


def test_a_reset_that_is_known_counts_also_where_the_counter_has_overtaken():
    """After a restart a busy server soon counts beyond where it was. A reset at the instant of a point is before it."""
    assert rates([(0, 10), (10, 30), (20, 40)], resets=[4]) == [(10, None), (20, 1.0)]
    assert rates([(0, 10), (10, 30), (20, 40)], resets=[10]) == [(10, None), (20, 1.0)]


COUNTERS = st.lists(st.tuples(st.integers(0, 100), st.none() | st.integers(0, 2**63)))


@given(COUNTERS, st.lists(st.integers(0, 100)).map(sorted))
def test_no_rate_is_negative(points, resets):
    """In any order of times, with any resets."""
    assert all(rate is None or rate >= 0 for _, rate in rates(points, resets))


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 10**6), st.booleans()), min_size=1))
def test_what_is_counted_is_what_has_rates_and_what_was_reset(steps):
    """Rates times their intervals are the true growth of all intervals without a reset."""
    at = value = 0
    points, resets, grown = [(0, 0)], [], 0
    for seconds, growth, is_reset in steps:
        at += seconds
        value = growth if is_reset else value + growth
        resets += [at] * is_reset
        grown += 0 if is_reset else growth
        points.append((at, value))
    found = rates(points, resets)
    spans = {later[0]: later[0] - earlier[0] for earlier, later in pairwise(points)}
    assert abs(sum(rate * spans[when] for when, rate in found if rate is not None) - grown) < 1e-3
    assert [when for when, rate in found if rate is None] == resets
