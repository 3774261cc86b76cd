"""Which signs of a death a lease heeds: an outage of the store ends the sessions of nodes that are well, too."""

from contextlib import suppress

import pytest

from scheduler._fleet.lease import Lease, LeaseGuard
from scheduler._fleet.lease.lease import RENEWAL_S
from scheduler.stores import LEASE, Peer, StoreBusy, StoreLocked, StoreUnavailable, View
from timerqueue.testing import ManualClock

AWAY = StoreUnavailable("the server is away")
LOCKED = StoreLocked("canceling statement due to lock timeout (55P03)")
US, NEIGHBOUR = 1, 2


class Fleet:
    """A store that we share with a neighbour, whose session may end. It answers since `since`, or raises."""

    max_skew = None

    def __init__(self):
        self.clock, self.trouble, self.last, self.hindrance = ManualClock(), None, None, None
        self.since, self.left, self.buried = self.clock.monotonic(), LEASE, []
        self.calls = []
        nothing = dict.fromkeys(("seen", "lost", "failed", "buried"), lambda *_: None)
        self.lease = Lease(self, LeaseGuard(self.clock.monotonic), clock=self.clock, **nothing)

    def renew(self, skew, *, is_off, only_look):
        if self.trouble is not None:
            raise self.trouble
        self.calls.append("look" if only_look else "renew")
        now = self.clock.monotonic()
        there = {US: LEASE} | ({} if NEIGHBOUR in self.buried else {NEIGHBOUR: self.left})
        peers = (Peer(epoch=epoch, name="", left=left, format=2, opened_us=0) for epoch, left in there.items())
        self.last = View(me=US, peers=tuple(peers), owners=(US,), at_us=0, asked=now, answered=now, since=self.since)
        return self.last

    def bury(self, epochs, heard):
        self.calls.append("bury")
        if self.hindrance is not None:
            raise self.hindrance
        self.buried += epochs
        self.last = self.last.after(epochs, {})
        return epochs

    def hear(self, epoch, is_over):
        raise StoreUnavailable("nobody listens here")

    def turn(self, *, heard=()):
        self.lease._peer_watch._heard.update(heard)  # as its thread has heard it
        self.lease.turn()
        return self.buried


@pytest.fixture
def fleet():
    return Fleet()


def test_the_end_of_a_session_is_a_death_once_the_store_has_answered_for_a_whole_lease(fleet):
    """The others go on with its jobs within some hundredths of a second."""
    fleet.turn()
    fleet.clock.advance(LEASE)
    fleet.turn()
    assert fleet.turn(heard=[NEIGHBOUR]) == [NEIGHBOUR]


@pytest.mark.parametrize("seconds", [0.0, 1.0, LEASE - 0.1])
def test_a_node_that_has_just_come_heeds_no_end_of_a_session(fleet, seconds):
    """What ended it may have been the server."""
    fleet.turn()
    fleet.clock.advance(seconds)
    assert fleet.turn(heard=[NEIGHBOUR]) == []


def test_a_session_that_ended_while_the_store_was_away_is_looked_at_first_and_not_heeded(fleet):
    """A look before would have shown that there was a gap."""
    fleet.turn()
    fleet.clock.advance(LEASE)
    fleet.turn()
    fleet.trouble = AWAY
    assert fleet.lease._take_turn() == pytest.approx(0.1)
    fleet.trouble, fleet.since = None, fleet.clock.monotonic()
    assert fleet.turn(heard=[NEIGHBOUR]) == []


def test_a_lease_that_has_ended_is_a_death_whatever_was_heard(fleet):
    """It has been looked at again and again until then."""
    fleet.left = -0.1
    assert fleet.turn() == [NEIGHBOUR]


@pytest.mark.parametrize(("hindrance", "was_busy"), [(StoreBusy("others have it"), True), (LOCKED, False)])
def test_a_burial_that_is_hindered_is_no_failure_of_the_store(fleet, hindrance, was_busy):
    """The next turn buries. Of the store that says something only if it has answered."""
    fleet.left, fleet.hindrance = -0.1, hindrance
    assert (fleet.turn(), fleet.lease.was_busy) == ([], was_busy)
    fleet.hindrance = None
    assert (fleet.turn(), fleet.lease.was_busy) == ([NEIGHBOUR], False)


@pytest.mark.parametrize("hindrance", [StoreBusy("others have it"), LOCKED, AWAY])
def test_a_death_that_was_heard_is_not_forgotten_while_the_burial_is_hindered(fleet, hindrance):
    """It was heeded two seconds later, when the lease had ended."""
    fleet.turn()
    fleet.clock.advance(LEASE)
    fleet.turn()
    fleet.hindrance = hindrance
    with suppress(type(AWAY)):
        assert fleet.turn(heard=[NEIGHBOUR]) == []
    fleet.hindrance = None
    assert fleet.turn() == [NEIGHBOUR]


@pytest.mark.parametrize(("share", "calls"), [(0.4, ["bury"]), (0.6, ["renew", "bury"])])
def test_who_hears_a_death_renews_its_own_lease_first_if_that_is_due_soon(fleet, share, calls):
    """A burial may wait for a lock for a second. For that long nothing began here."""
    fleet.turn()
    fleet.clock.advance(LEASE)
    fleet.turn()
    fleet.clock.advance(share * RENEWAL_S)
    fleet.calls.clear()
    assert fleet.turn(heard=[NEIGHBOUR]) == [NEIGHBOUR]
    assert fleet.calls == calls


def test_a_burial_that_is_hindered_again_and_again_keeps_nobody_from_its_own_lease(fleet):
    """It is tried without a look before, but renewals come in between."""
    fleet.turn()
    fleet.clock.advance(LEASE)
    fleet.turn()
    fleet.hindrance = LOCKED
    fleet.turn(heard=[NEIGHBOUR])
    for _ in range(20):
        fleet.clock.advance(1.0)
        fleet.turn()
        assert fleet.lease.is_held()
