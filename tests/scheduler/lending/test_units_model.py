"""Units can never be in use more often than there are, whatever happens to agents and to what they say."""

from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from units_world import World

TURNS = 400


def lived(world, seed, turns=TURNS):
    draw = Random(seed).randrange
    for _ in range(turns):
        world.turn(draw)
    return world


@given(st.integers(1, 4), st.integers(1, 4), st.lists(st.integers(0, 2**16), max_size=300))
@settings(max_examples=150, deadline=None)
def test_no_unit_is_used_twice(size, agents, numbers):
    """Hypothesis chooses each thing that happens."""
    world, left = World(size, agents), iter(numbers)
    for number in left:
        first = [number]
        world.turn(lambda n, first=first: (first.pop() if first else next(left, 0)) % n)
        assert world.running() <= size


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
