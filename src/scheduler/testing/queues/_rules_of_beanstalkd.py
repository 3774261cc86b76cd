from __future__ import annotations

from contextlib import AbstractContextManager, closing
from typing import Final, Protocol

import pytest

from ...queues import Census, Kind, Place, Reason, Standing, Tick
from ._rules_of_queues import MakeQueue, QueueFixtures, eventually
from ._world import OpenQueue, Turned

HOUR = 3_600

TRIES: Final = 20
"""Tries to let a tick's time run out: a server that warns its holder first gives more time."""


class BeanstalkdServer(Protocol):
    """A beanstalkd that a test can disturb, real or not."""

    address: str

    def restart(self, *, log: bool) -> None:
        """Kill and start it, with what its log kept, or with nothing."""

    def drain(self) -> None: ...

    def step(self, seconds: float) -> None:
        """Set its clock alone."""

    def stopped(self) -> AbstractContextManager[object]: ...

    def say(self, *lines: bytes) -> bytes:
        """Send lines on a new connection. Return the last answer."""


class BeanstalkdConformance(QueueFixtures):
    """The suite for a queue on a beanstalkd. A subclass brings `server`, `world` and `make_queue`."""

    @pytest.fixture
    def server(self) -> BeanstalkdServer:
        msg = "a subclass says which server: see the docstring of scheduler.testing.queues"
        raise NotImplementedError(msg)

    def test_a_number_of_a_server_that_has_lost_all_is_another_s(
        self, opened: OpenQueue, world: Turned, server: BeanstalkdServer
    ) -> None:
        """An old position must not remove the new job there."""
        old, new = Tick("old", world.due_in(60)), Tick("new", world.due_in(60))
        (place,) = opened.queue.put([old])
        assert place is not None
        server.restart(log=False)
        (other,) = opened.queue.put([new])
        assert other is not None
        assert (place.number, place.instance != other.instance) == (other.number, True)
        assert opened.queue.look([(old, place), (new, other)])[0] is None
        assert opened.queue.cancel([(old, place)]) == [False]
        assert opened.queue.cancel([(new, other)]) == [True]

    def test_a_server_that_kept_its_log_has_all_under_the_old_numbers(
        self, opened: OpenQueue, world: Turned, server: BeanstalkdServer
    ) -> None:
        """The instance is another; the bodies prove that nothing is lost."""
        tick = Tick("a", world.due_in(60))
        (place,) = opened.queue.put([tick])
        assert place is not None
        server.restart(log=True)
        eventually(lambda: opened.queue.instance() != place.instance)
        (position,) = opened.queue.look([(tick, place)])
        assert position is not None
        assert position.standing is Standing.DELAYED
        assert position.seconds_left > 50  # noqa: PLR2004 - of sixty
        assert opened.queue.cancel([(tick, place)]) == [True]

    def test_a_tick_comes_out_of_a_server_that_was_restarted(
        self, opened: OpenQueue, world: Turned, server: BeanstalkdServer
    ) -> None:
        before = Tick("before", world.due_in(0))
        opened.queue.put([before])
        (delivery,) = opened.wait_for(1)  # so there are connections that the restart ends
        delivery.done()
        server.restart(log=True)
        tick = Tick("a", world.due_in(0))
        eventually(lambda: opened.queue.put([tick]) != [None])
        eventually(lambda: tick in opened.ticks())
        eventually(lambda: opened.queue.statistics().reconnected >= 1)

    def test_a_server_that_is_drained_has_ticks_wait_here(
        self, opened: OpenQueue, world: Turned, server: BeanstalkdServer
    ) -> None:
        server.drain()
        tick = Tick("a", world.due_in(5))
        assert opened.queue.put([tick]) == [None]
        assert opened.queue.statistics().here == {Reason.DRAINING: 1}
        world.turn(6)
        (delivery,) = opened.wait_for(1)
        assert delivery.tick == tick
        delivery.done()

    def test_a_server_that_is_gone_has_ticks_wait_here(
        self, opened: OpenQueue, world: Turned, server: BeanstalkdServer
    ) -> None:
        with server.stopped():
            tick = Tick("a", world.due_in(5))
            assert opened.queue.put([tick]) == [None]
            assert opened.queue.statistics().here == {Reason.UNREACHABLE: 1}
            world.turn(6)
            assert [delivery.tick for delivery in opened.wait_for(1)] == [tick]

    def test_a_tick_that_a_server_would_not_take_is_not_sent(
        self, opened: OpenQueue, world: Turned, server: BeanstalkdServer
    ) -> None:
        big, small = Tick("x" * 70_000, world.due_in(-1)), Tick("a", world.due_in(60))
        publisher = server.say(b"stats").count(b"cmd-put: 0")
        here, there = opened.queue.put([big, small])
        assert (here, there is not None) == (None, True)
        assert opened.queue.statistics().here == {Reason.TOO_BIG: 1}
        assert publisher <= 1
        assert opened.queue.statistics().reconnected == 0
        assert [delivery.tick for delivery in opened.wait_for(1)] == [big]

    def test_a_clock_that_is_set_forward_lets_nothing_begin_early(
        self, opened: OpenQueue, world: Turned, server: BeanstalkdServer
    ) -> None:
        tick, marker = Tick("a", world.due_in(1_000)), Tick("b", world.due_in(0))
        (place,) = opened.queue.put([tick])
        server.step(HOUR)
        eventually(lambda: opened.queue.statistics().premature == 1)
        opened.queue.put([marker])
        opened.wait_for(1)[0].done()
        assert opened.ticks() == [marker]
        eventually(lambda: opened.queue.statistics().done == 1)
        assert place is not None
        eventually(lambda: opened.queue.census(Kind.RUN).delayed == 1)
        (position,) = opened.queue.look([(tick, place)])
        assert position is not None
        assert 990 < position.seconds_left < 1_001  # noqa: PLR2004 - what is left of a thousand
        world.turn(1_000)
        assert [delivery.tick for delivery in opened.wait_for(2)] == [marker, tick]

    def test_a_clock_that_is_set_back_is_seen_in_the_time_left(
        self, opened: OpenQueue, world: Turned, server: BeanstalkdServer
    ) -> None:
        """An audit compares, removes the tick and puts it again."""
        tick = Tick("a", world.due_in(10))
        (place,) = opened.queue.put([tick])
        server.step(-HOUR)
        assert place is not None
        (position,) = opened.queue.look([(tick, place)])
        assert position is not None
        assert position.seconds_left > HOUR
        assert opened.queue.cancel([(tick, place)]) == [True]
        opened.queue.put([tick])
        world.turn(11)
        assert [delivery.tick for delivery in opened.wait_for(1)] == [tick]

    def test_a_tick_beyond_what_a_server_can_count_gets_there_by_hops(
        self, opened: OpenQueue, world: Turned, server: BeanstalkdServer
    ) -> None:
        """2^32 - 1 seconds are 136 years."""
        tick = Tick("a", world.due_in(200 * 365.25 * 86_400))
        (place,) = opened.queue.put([tick])
        assert place is not None
        (position,) = opened.queue.look([(tick, place)])
        assert position is not None
        assert 0 <= 2**32 - 1 - position.seconds_left < 5  # noqa: PLR2004 - seconds that have passed since
        server.step(2**32)
        eventually(lambda: opened.queue.statistics().hops >= 1)
        assert opened.queue.statistics().premature == 0
        assert opened.ticks() == []

    def test_what_is_no_tick_is_put_aside(self, opened: OpenQueue, server: BeanstalkdServer) -> None:
        assert server.say(b"use timerqueue", b"put 0 0 60 5\r\nhello").startswith(b"INSERTED")
        eventually(lambda: opened.queue.census(Kind.RUN) == Census(buried=1))
        assert opened.queue.statistics().strange == 1
        assert opened.ticks() == []

    def test_a_tick_of_a_later_version_is_left_for_who_can_read_it(
        self, opened: OpenQueue, server: BeanstalkdServer
    ) -> None:
        body = b'{"v":2,"what":"ever"}'
        server.say(b"use timerqueue", b"put 0 0 60 %d\r\n%b" % (len(body), body))
        eventually(lambda: opened.queue.census(Kind.RUN) == Census(delayed=1))
        assert opened.queue.statistics().strange == 1

    def test_what_is_held_is_touched(self, opened: OpenQueue, world: Turned) -> None:
        tick = Tick("a", world.due_in(0))
        (place,) = opened.queue.put([tick])
        assert place is not None
        opened.wait_for(1)
        for _ in range(4):  # twice its time to run
            world.turn(15)
            eventually(lambda: _seconds_left(opened, tick, place) > 25)  # noqa: PLR2004 - of thirty
        assert len(opened.come_out) == 1
        assert opened.queue.statistics().expired == 0

    def test_a_tick_that_was_not_touched_in_time_is_another_s(
        self, make_queue: MakeQueue, world: Turned, server: BeanstalkdServer
    ) -> None:
        with closing(make_queue()) as queue:
            opened = OpenQueue(queue, world)
            opened.queue.put([Tick("a", world.due_in(0))])
            first = opened.wait_for(1)[0]
            for _ in range(TRIES):  # the server may warn its holder first, who touches it
                server.step(31)
                if opened.comes(2, within=1.0):
                    break
            second = opened.wait_for(2)[1]
            first.done()
            opened.queue.put([Tick("b", world.due_in(0))])
            opened.wait_for(3)
            assert opened.queue.census(Kind.RUN).total == 2  # noqa: PLR2004 - a tick is run by its second holder
            second.done()
            eventually(lambda: opened.queue.census(Kind.RUN).total == 1)

    def test_a_place_of_a_number_that_no_server_gives_is_empty(self, opened: OpenQueue, world: Turned) -> None:
        tick = Tick("a", world.due_in(60))
        for number in (0, 999_999_999, 2**64 - 1, 2**64, -1):
            place = Place(opened.queue.instance(), number)
            assert opened.queue.look([(tick, place)]) == [None]
            assert opened.queue.cancel([(tick, place)]) == [False]
        assert opened.queue.statistics().reconnected == 0


def _seconds_left(opened: OpenQueue, tick: Tick, place: Place) -> int:
    (position,) = opened.queue.look([(tick, place)])
    return position.seconds_left if position is not None else -1
