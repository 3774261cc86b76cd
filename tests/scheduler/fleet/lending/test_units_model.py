"""Units can never be in use more often than there are, whatever happens to agents and to what they say."""

from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from kit import examples
from units_world import World

TURNS = 400


def lived(world, seed, turns=TURNS):
    draw = Random(seed).randrange
    for _ in range(turns):
        world.turn(draw)
    return world


@given(st.integers(1, 4), st.integers(1, 4), st.lists(st.integers(0, 2**16), max_size=300))
@settings(max_examples=examples(150), deadline=None)
def test_no_unit_is_used_twice(size, agents, numbers):
    """Hypothesis chooses each thing that happens."""
    world, left = World(size, agents), iter(numbers)
    for number in left:
        first = [number]
        world.turn(lambda n, first=first: (first.pop() if first else next(left, 0)) % n)
        assert world.running() <= size


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.1, 1.0, 5.0]), st.lists(st.integers(0, 2**16)))
@settings(max_examples=examples(100), deadline=None)
def test_no_more_begin_in_any_window_than_a_rate_allows(size, agents, rest, numbers):
    """Hypothesis chooses each thing that happens."""
    world, left = World(size, agents, rest=rest), iter(numbers)
    for number in left:
        first = [number]
        world.turn(lambda n, first=first: (first.pop() if first else next(left, 0)) % n)
    assert world.most_in_a_window() <= size


@pytest.mark.parametrize(("size", "rest"), [(1, 1.0), (3, 0.5), (7, 4.0)])
def test_many_long_lives_keep_the_pace_and_all_of_it_at_times(size, rest):
    """The same over thousands of turns, so that much is going on; and all of it is used, or nothing is shown."""
    worlds = [lived(World(size, 3, rest=rest), seed) for seed in range(40)]
    assert max(world.most_in_a_window() for world in worlds) == size
    assert sum(world.starts for world in worlds) > 40


def test_the_world_notices_units_of_the_dead_that_do_not_rest():
    """A defect that is planted: they are lent anew at the end of the lease, however late work began with them."""
    worlds = (lived(World(2, 3, rest=5.0, rests_after_death=False), seed) for seed in range(300))
    assert any(world.most_in_a_window() > 2 for world in worlds)


def test_the_world_notices_units_that_return_when_a_run_ends():
    """A defect that is planted: a short run lets another one begin in the same window."""
    worlds = (lived(World(2, 3, rest=1.0, ends_rest=True), seed) for seed in range(300))
    assert any(world.most_in_a_window() > 2 for world in worlds)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_many_long_lives_use_no_unit_twice_and_all_of_them_at_times(size):
    """The same over thousands of turns, so that much is going on; and units are in use, or nothing would be shown."""
    worlds = [lived(World(size, 3), seed) for seed in range(60)]
    assert max(world.most for world in worlds) == size
    assert sum(world.starts for world in worlds) > 60


def test_the_world_notices_who_uses_what_a_round_may_have_given_back():
    """A defect that is planted: idle units are used while their round is on its way."""
    assert any(lived(World(2, 3, freezes=False), seed).most > 2 for seed in range(300))


def test_the_world_notices_units_that_return_when_their_agent_is_buried():
    """A defect that is planted: what a dead agent had is lent anew although its lease goes on."""
    assert any(lived(World(2, 3, keeps_loans=False), seed).most > 2 for seed in range(300))
