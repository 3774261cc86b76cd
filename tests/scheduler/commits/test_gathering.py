"""How long a batch is kept open: with starts that come at a rate, or as answers to the batch before."""

from bisect import bisect_right

import pytest
from hypothesis import given, strategies as st

from scheduler._commits.batch_window import (
    FEW_PER_S,
    LONGEST_S,
    LOOK_S,
    MANY_PER_S,
    SHORTEST_S,
    BatchWindow,
    between_batches,
)


class Play:
    """Batches whose commits take so long, and starts that come at these seconds; it may ask for more after each."""

    def __init__(self, takes, starts, after=lambda _now, _count: ()):
        self.batch_window = BatchWindow()
        self.takes, self.starts, self.after = takes, sorted(starts), after
        self.batches = []
        """When each was closed, and the seconds at which the starts in it have come."""

    def to(self, end):
        """Play until then."""
        now = 0.0
        while self.starts and self.starts[0] < end:
            now = max(now, self.starts[0], self.batch_window.first_look())
            while (look := self.batch_window.next_look(self.come(now), now)) is not None:
                assert now < look
                now = look
            count = self.come(now)
            held, self.starts = self.starts[:count], self.starts[count:]
            self.batch_window.closed(count, now)
            self.batches.append((now, held))
            now += self.takes
            self.starts += self.after(now, count)
        return self

    def come(self, now):
        return bisect_right(self.starts, now)

    def starts_per_batch(self, since):
        sizes = [len(held) for closed, held in self.batches if closed >= since]
        return sum(sizes) / len(sizes)

    def longest_wait(self):
        return max(closed - held[0] for closed, held in self.batches)


def steadily(rate, seconds):
    return [1 + number / rate for number in range(int(rate * seconds))]


def test_who_comes_alone_waits_for_nobody():
    """Its batch is closed as soon as it is looked at, and that is at once."""
    play = Play(0.005, [10.0, 20.0, 30.0]).to(100)
    assert play.batches == [(10.0, [10.0]), (20.0, [20.0]), (30.0, [30.0])]


def test_a_burst_after_silence_waits_for_nobody():
    """However large it is: it says nothing of what comes after it."""
    play = Play(0.005, [10.0] * 5_000).to(100)
    assert play.batches == [(10.0, [10.0] * 5_000)]


@pytest.mark.parametrize("rate", [10, 333, 1_000])
def test_few_starts_wait_three_milliseconds_at_most(rate):
    """Up to a thousand in a second a commit is cheap enough for each."""
    assert Play(0.001, steadily(rate, 3)).to(10).longest_wait() <= SHORTEST_S + 1e-9


@pytest.mark.parametrize("takes", [0.001, 0.008, 0.02])
@pytest.mark.parametrize("rate", [1_667, 2_500])
def test_many_starts_share_a_commit_and_none_waits_longer_than_that(rate, takes):
    """Of 1,667 in a second some sixty. With three milliseconds between commits there would be a tenth of these."""
    play = Play(takes, steadily(rate, 4)).to(10)
    assert play.starts_per_batch(since=3) > 0.95 * rate * LONGEST_S
    assert play.longest_wait() <= LONGEST_S + 1e-9


@pytest.mark.parametrize("jobs", [10, 50, 300])
def test_starts_that_wait_for_the_commit_before_hardly_wait_longer(jobs):
    """A closed loop: each is due again a millisecond after it has begun, so nothing comes until the commit is done."""
    play = Play(0.008, [1.0] * jobs, lambda now, count: [now + 0.001] * count).to(4)
    assert all(len(held) == jobs for _, held in play.batches)
    cycles = [after - before for (before, _), (after, _) in zip(play.batches, play.batches[1:], strict=False)]
    assert max(cycles) <= 0.008 + 0.001 + 2 * LOOK_S + 1e-9


def test_ends_alone_are_not_sent_on_their_own_where_starts_are_many():
    """Nobody waits for them, and the starts that follow from them would wait for their commit."""
    batch_window = BatchWindow()
    batch_window.closed(2_000, 1.0)
    assert batch_window.next_look(0, 1.01) == pytest.approx(1.01 + LOOK_S)
    assert batch_window.next_look(0, 1.0 + LONGEST_S) is None


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_the_time_between_batches_grows_with_the_starts_within_its_bounds(one, other):
    """There is no rate at which it falls, and none at which a start waits longer than the longest time."""
    few, many = sorted([one, other])
    assert SHORTEST_S <= between_batches(few) <= between_batches(many) <= LONGEST_S
    assert (between_batches(FEW_PER_S), between_batches(MANY_PER_S)) == (SHORTEST_S, LONGEST_S)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.floats(0, 100)), max_size=20), st.integers(0, 10_000))
def test_whatever_has_been_a_batch_is_closed_in_time(before, starts):
    """A look is never before now, nor later than the longest time after the batch before."""
    batch_window, now = BatchWindow(), 0.0
    for count, seconds in before:
        now += seconds
        batch_window.closed(count, now)
    end = now + LONGEST_S
    now = max(now, batch_window.first_look())
    while (look := batch_window.next_look(starts, now)) is not None:
        assert now < look <= end
        now = look
        starts += 1
