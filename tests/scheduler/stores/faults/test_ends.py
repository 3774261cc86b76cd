"""When the leases of the others end, whatever is done to the clock of the server."""

import pytest
from hypothesis import given, strategies as st

from scheduler.stores import LEASE
from scheduler.stores._postgres.sharing.ends import GAP, SLACK, Ends, Look

EVERY = 1.25
"""Seconds between two looks, at most."""


class World:
    """A server whose clock may be set, some agents that renew their leases, and one that looks at them."""

    def __init__(self):
        self.now, self.ahead, self.ends = 100.0, 0.0, Ends()
        self.renewed, self.until = {}, {}

    def renew(self, *agents):
        for agent in agents:
            self.renewed[agent] = self.now
            self.until[agent] = round((self.now + self.ahead + LEASE) * 1e6)

    def turn(self, seconds):
        """Let time pass, and look as often as a node does, at the end too."""
        while seconds > EVERY:
            self.now += EVERY
            seconds -= EVERY
            self.look()
        self.now += seconds
        return self.look()

    def look(self):
        server = self.now + self.ahead
        look = Look(asked=self.now, answered=self.now, server=server)
        return self.ends.look(look, [(agent, until, until / 1e6 - server) for agent, until in self.until.items()])


@pytest.fixture
def world():
    """Agent 1 has renewed its lease, and was seen."""
    world = World()
    world.renew(1)
    assert world.look() == {1: pytest.approx(LEASE)}
    return world


def test_a_lease_ends_that_is_not_renewed(world):
    """Both clocks go on alike."""
    assert world.turn(LEASE - 0.1) == {1: pytest.approx(0.1)}
    world.renew(1)
    assert world.turn(1) == {1: pytest.approx(LEASE - 1)}


@pytest.mark.parametrize("seconds", [0.5, 5, 60])
def test_a_node_that_looks_for_the_first_time_takes_nobody_for_dead(world, seconds):
    """The server may have been away until just now, and the others could not renew their leases."""
    world.now += seconds
    world.ends = Ends()
    assert world.look() == {1: LEASE}
    assert world.turn(LEASE + 0.1)[1] < 0


@pytest.mark.parametrize("seconds", [GAP + 0.1, 10, 3600])
def test_a_lease_that_ended_while_nobody_could_look_is_whole_again(world, seconds):
    """Whoever was back first after an outage took all others for dead. Who is really dead is found a lease later."""
    world.now += seconds
    assert world.look() == {1: LEASE}
    assert world.ends.since == world.now
    assert world.turn(LEASE + 0.1)[1] < 0


def test_a_lease_is_whole_again_after_a_look_that_failed_however_short_the_gap(world):
    """A node far away needs longer to come back than one that stands beside the server."""
    world.now += EVERY
    world.ends.lose_sight()
    assert world.look() == {1: LEASE}
    assert world.ends.since == world.now


@pytest.mark.parametrize("step", [3600, 20, 2, -2, -20, -3600])
def test_a_step_of_the_servers_clock_ends_no_lease_and_prolongs_none(world, step):
    """Neither one that was renewed before it, nor after it."""
    world.now += 1
    world.ahead += step
    assert world.look() == {1: pytest.approx(LEASE - 1)}
    world.renew(1)
    assert world.turn(LEASE + 0.1)[1] < 0


@pytest.mark.parametrize("step", [3600, 2, -2, -3600])
def test_a_lease_that_was_renewed_before_the_step_is_a_whole_one(world, step):
    """Nobody can say how much of it is left, but that there was a renewal."""
    world.now += 0.5
    world.renew(1)
    world.now += 0.5
    world.ahead += step
    assert world.look() == {1: LEASE}


@pytest.mark.parametrize("step", [3600, -3600])
def test_a_step_and_back_between_two_looks_ends_no_lease(world, step):
    """The two clocks agree then, but nothing can be left of the lease, or too much, and that cannot be."""
    world.ahead += step
    world.now += 0.5
    world.renew(1)
    world.ahead -= step
    assert world.look() == {1: LEASE}


def test_a_lease_that_has_ended_is_known_by_its_end_until_it_is_renewed(world):
    """Who buries says which end it has seen, so nobody is buried who has renewed it since."""
    world.renew(2)
    world.look()
    assert world.ends.ended([1, 2, 3], world.now) == {}
    world.turn(LEASE - 1)
    world.renew(2)
    world.turn(2)
    assert world.ends.ended([1, 2, 3], world.now) == {1: world.until[1]}


ACTS = st.one_of(
    st.tuples(st.just("wait"), st.floats(0.01, EVERY)),
    st.tuples(st.just("step"), st.sampled_from([3600.0, 20.0, 2.0, 0.5, -0.5, -2.0, -20.0, -3600.0])),
    st.tuples(st.just("renew"), st.integers(1, 3)),
    st.tuples(st.just("outage"), st.floats(0.01, 3600)),
)


@given(st.lists(ACTS, max_size=40))
def test_nobody_is_taken_for_dead_in_time_and_everybody_too_late(acts):
    """Whatever is done to the server's clock, and however often it is away: by the time between looks at most."""
    world = World()
    world.renew(1, 2, 3)
    world.look()
    looked, unsure = world.now, EVERY + SLACK
    for act, how in acts:
        match act:
            case "wait":
                world.now += min(how, looked + EVERY - world.now)
            case "step":
                world.ahead += how
            case "outage":
                world.now += how
                world.ends.lose_sight()
                world.renewed = dict.fromkeys(world.renewed, world.now)  # nobody could: it counts as if they had
            case _:
                world.renew(how)
        if act in {"wait", "outage"}:
            looked = world.now
            for agent, left in world.look().items():
                really = world.renewed[agent] + LEASE - world.now
                assert really - unsure <= left <= really + unsure
