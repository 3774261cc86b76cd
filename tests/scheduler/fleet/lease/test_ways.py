"""For how long a node has found no connection to its store, while its lease was renewed."""

import pytest

from scheduler._fleet.lease import LeaseGuard, StoreWays
from scheduler.stores import StoreUnavailable, StoreUnreachable
from timerqueue.testing import ManualClock

NO_WAY = StoreUnreachable("sorry, too many clients already")
BUSY = StoreUnavailable("canceling statement due to statement timeout (57014)")


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def lease_guard(clock):
    found = LeaseGuard(clock.monotonic)
    found.dispel(0)
    return found


@pytest.fixture
def ways(lease_guard):
    return StoreWays(lease_guard)


async def test_a_way_is_closed_from_the_first_call_that_found_no_connection(ways, clock):
    """Further calls in vain do not begin the count anew."""
    ways.tried("commits", NO_WAY)
    await clock.travel(2)
    ways.tried("commits", NO_WAY)
    await clock.travel(2)
    assert ways.closed_for() == 4


@pytest.mark.parametrize("outcome", [None, BUSY])
async def test_a_store_that_answers_has_been_reached_whatever_it_says(ways, clock, outcome):
    """What it says to us it says to the others, too."""
    ways.tried("commits", NO_WAY)
    await clock.travel(2)
    ways.tried("commits", outcome)
    assert ways.closed_for() == 0


async def test_each_way_counts_by_itself(ways, clock):
    """One that works does not open another."""
    ways.tried("units", NO_WAY)
    await clock.travel(2)
    ways.tried("commits", NO_WAY)
    await clock.travel(1)
    ways.tried("shards", None)
    assert [ways.closed_for(*names) for names in ((), ("commits", "shards"), ("shards",))] == [3, 1, 0]


async def test_while_the_whole_store_is_away_nothing_counts_and_afterwards_it_counts_anew(ways, lease_guard, clock):
    """An outage that all have makes nobody unsettled."""
    ways.tried("commits", NO_WAY)
    lease_guard.heard_since = None
    await clock.travel(60)
    assert ways.closed_for() == 0
    lease_guard.dispel(0)
    await clock.travel(1)
    lease_guard.dispel(0)
    assert ways.closed_for() == 1


async def test_with_new_connections_it_counts_anew(ways, clock):
    """A node that has joined again has made all of them."""
    ways.tried("commits", NO_WAY)
    await clock.travel(2)
    ways.forget()
    assert ways.closed_for() == 0
