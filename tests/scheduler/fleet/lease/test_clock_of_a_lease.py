"""What a lease finds out about this machine's clock, in its thread, while the loop looks at it."""

from scheduler._fleet.lease import Lease, LeaseGuard
from scheduler.stores import Peer, View
from timerqueue.testing import ManualClock

HOUR_US = 3_600_000_000


class Glances:
    """A store whose clock goes by `ahead_us`, and a loop that looks at the lease in the middle of each judgement."""

    def __init__(self):
        self.clock, self.ahead_us = ManualClock(), 0
        self.last, self.seen = None, []
        lease_guard = LeaseGuard(self.clock.monotonic)
        nothing = dict.fromkeys(("seen", "lost", "failed", "buried"), lambda *_: None)
        self.lease = Lease(self, lease_guard, clock=self.clock, **nothing)

    @property
    def max_skew(self):
        self.glance()
        return 1.0

    def glance(self):
        if (found := self.lease.clock_found) is not None:
            skew, is_off = found
            self.seen.append((abs(skew.seconds) > 1, is_off))

    def renew(self, skew, *, is_off, only_look):
        self.glance()
        now_us = round(self.clock.wall() * 1e6) + self.ahead_us
        us = Peer(epoch=1, name="us", left=3.0, format=2, opened_us=now_us)
        now = self.clock.monotonic()
        self.last = View(me=1, peers=(us,), owners=(1,), at_us=now_us, asked=now, answered=now)
        return self.last


def test_the_loop_never_sees_a_clock_that_is_off_without_hearing_that_it_is():
    """It followed a clock an hour ahead if it looked at the wrong moment, and began ticks an hour early."""
    world = Glances()
    for ahead_us in (0, HOUR_US, 0, -HOUR_US, 0):
        world.ahead_us = ahead_us
        world.lease.turn()
        world.glance()
        assert world.seen[-1] == (ahead_us != 0,) * 2
    assert {away == is_off for away, is_off in world.seen} == {True}
