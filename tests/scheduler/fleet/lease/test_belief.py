"""Whether an agent believes that what it has is still its own, when the store does not answer or says no."""

import pytest

from scheduler._fleet.lease import Lease, LeaseGuard
from scheduler.stores import Peer, StoreTakenOver, StoreUnavailable, View
from timerqueue.testing import ManualClock

AWAY = StoreUnavailable("the connection was reset")
BURIED = StoreTakenOver("its lease has ended, and another node has buried it")


@pytest.fixture
def lease_guard():
    found = LeaseGuard(ManualClock().monotonic)
    found.until = found.now() + 60
    return found


def test_a_lease_that_is_held_is_no_reason_to_begin_while_the_store_does_not_answer(lease_guard):
    """Others hear the end of our session, and do not wait for the end of the lease. What runs goes on."""
    assert lease_guard.is_sure()
    lease_guard.doubt(AWAY)
    assert (lease_guard.is_held(), lease_guard.is_sure(), lease_guard.hint.is_set()) == (True, False, True)


def test_an_answer_dispels_the_doubts_from_before_the_question_only(lease_guard):
    """The connections may have broken while it was on its way."""
    lease_guard.doubt(AWAY)
    asked = lease_guard.doubts
    lease_guard.doubt(AWAY)
    lease_guard.dispel(asked)
    assert not lease_guard.is_sure()
    lease_guard.dispel(lease_guard.doubts)
    assert lease_guard.is_sure()


def test_who_is_buried_holds_nothing(lease_guard):
    """Whatever the lease was."""
    lease_guard.doubt(BURIED)
    lease_guard.dispel(lease_guard.doubts)
    assert (lease_guard.is_held(), lease_guard.is_sure()) == (False, False)


class Store:
    """A store that is shared with nobody, and answers or raises."""

    max_skew = None

    def __init__(self):
        self.clock, self.trouble, self.last = ManualClock(), None, None

    def renew(self, skew, *, is_off, only_look):
        if self.trouble is not None:
            raise self.trouble
        us = Peer(epoch=1, name="us", left=3.0, format=2, opened_us=0)
        now = self.clock.monotonic()
        self.last = View(me=1, peers=(us,), owners=(1,), at_us=0, asked=now, answered=now)
        return self.last


def test_a_turn_of_the_lease_in_which_the_store_answers_dispels_the_doubts():
    """One in which it does not leaves them."""
    store = Store()
    lease_guard = LeaseGuard(store.clock.monotonic)
    nothing = dict.fromkeys(("seen", "lost", "failed", "buried"), lambda *_: None)
    lease = Lease(store, lease_guard, clock=store.clock, **nothing)
    lease.turn()
    assert lease.is_sure()
    lease_guard.doubt(AWAY)
    store.trouble = AWAY
    with pytest.raises(StoreUnavailable):
        lease.turn()
    assert (lease.is_held(), lease.is_sure()) == (True, False)
    store.trouble = None
    lease.turn()
    assert lease.is_sure()


def test_since_when_the_store_has_answered_each_look_is_known():
    """One look that is not answered ends that."""
    store, clock = Store(), ManualClock()
    lease_guard = LeaseGuard(clock.monotonic)
    nothing = dict.fromkeys(("seen", "lost", "failed", "buried"), lambda *_: None)
    lease = Lease(store, lease_guard, clock=clock, **nothing)
    lease.turn()
    assert lease_guard.heard_since == clock.monotonic()
    store.trouble = AWAY
    with pytest.raises(StoreUnavailable):
        lease.turn()
    assert lease_guard.heard_since is None


def test_a_lease_that_was_resigned_is_renewed_no_more():
    """It is as if the others had buried us, so that they do."""
    store, clock = Store(), ManualClock()
    lease_guard = LeaseGuard(clock.monotonic)
    nothing = dict.fromkeys(("seen", "lost", "failed", "buried"), lambda *_: None)
    lease = Lease(store, lease_guard, clock=clock, **nothing)
    lease.turn()
    lease.resign("it cannot commit")
    with pytest.raises(StoreTakenOver, match="it cannot commit"):
        lease.turn()
