"""Quantiles of lateness are near the truth, whatever the latenesses are."""

import sys

from hypothesis import given, strategies as st

from scheduler._values.histogram import BUCKET_OF, BUCKETS, UNITS, KindCounts, bucket_of

latenesses = st.lists(st.floats(0, 1e7) | st.floats(0, 1) | st.floats(0, 1e-3), min_size=1, max_size=50)


@given(latenesses, st.floats(0.01, 1))
def test_a_quantile_lies_within_a_tenth_of_the_truth(values, share):
    """They were rounded up to a power of two: up to twice the truth."""
    histogram = KindCounts()
    for value in values:
        histogram.add(value)
    found = histogram.snapshot().quantile(share)
    left = share * len(values)
    truth = next(value for number, value in enumerate(sorted(values), 1) if number >= left)
    assert abs(found - truth) <= max(truth / 10, 4e-6)


def test_the_buckets_of_short_latenesses_are_looked_up():
    """The table says what the arithmetic says."""
    assert list(BUCKET_OF) == [bucket_of(units) for units in range(len(BUCKET_OF))]
    assert len(BUCKET_OF) > UNITS


@given(st.floats(0, 1e9))
def test_what_was_added_by_mistake_is_taken_back(seconds):
    """The same bucket is found again."""
    histogram = KindCounts()
    histogram.add(seconds)
    histogram.take_back(seconds)
    assert set(histogram.counts) == {0}


def test_a_histogram_takes_a_few_kilobytes():
    """There is one for each kind of job."""
    assert sys.getsizeof(KindCounts().counts) < 8_192
    assert bucket_of(1 << 60) == BUCKETS - 1
