from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Event

import pytest

from ...queues import Census, Kind, Position, Queue, QueueError, Standing, Tick
from ._world import PATIENCE, OpenQueue, Turned

MakeQueue = Callable[[], Queue]

STRANGE_IDS = ["x", "a b", "line\r\nbreak", "ü€😀", "\ud800", "'\"\\", "0", "x" * 1_000]


def eventually(holds: Callable[[], bool]) -> None:
    pause = Event()
    for _ in range(int(PATIENCE / 0.01)):
        if holds():
            return
        pause.wait(0.01)
    assert holds(), f"not within {PATIENCE:.0f} s"


class QueueFixtures:
    @pytest.fixture
    def world(self) -> Turned:
        """A clock that the test turns."""
        msg = "a subclass says how time passes: see the docstring of scheduler.testing.queues"
        raise NotImplementedError(msg)

    @pytest.fixture
    def make_queue(self) -> MakeQueue:
        """Each call makes a new, closed queue object, all on one server."""
        msg = "a subclass says how its queue is made: see the docstring of scheduler.testing.queues"
        raise NotImplementedError(msg)

    @pytest.fixture
    def opened(self, make_queue: MakeQueue, world: Turned) -> Iterator[OpenQueue]:
        queue = make_queue()
        with closing(queue):
            yield OpenQueue(queue, world)


class QueueConformance(QueueFixtures):
    """Tests of the protocol `Queue`. A subclass brings the fixtures `world` and `make_queue`."""

    def test_a_tick_comes_out_when_it_is_due(self, opened: OpenQueue, world: Turned) -> None:
        """At most about a second early: its node waits for the rest."""
        late, soon = Tick("late", world.due_in(10.5)), Tick("soon", world.due_in(3.5))
        opened.queue.put([late, soon])
        world.turn(4)
        assert [delivery.tick for delivery in opened.wait_for(1)] == [soon]
        world.turn(7)
        assert [delivery.tick for delivery in opened.wait_for(2)] == [soon, late]

    def test_a_tick_that_is_overdue_comes_out_at_once(self, opened: OpenQueue, world: Turned) -> None:
        opened.queue.put([Tick("a", world.due_in(-86_400)), Tick("b", 0)])
        assert {delivery.tick.job_id for delivery in opened.wait_for(2)} == {"a", "b"}

    @pytest.mark.parametrize("job_id", STRANGE_IDS)
    def test_a_tick_comes_out_as_it_went_in(self, opened: OpenQueue, world: Turned, job_id: str) -> None:
        tick = Tick(job_id, world.due_in(-1) + 123_457)
        (place,) = opened.queue.put([tick])
        (delivery,) = opened.wait_for(1)
        assert (delivery.tick, delivery.place) == (tick, place)

    def test_a_tick_that_is_done_is_gone(self, opened: OpenQueue, world: Turned) -> None:
        opened.queue.put([Tick("a", world.due_in(0))])
        opened.wait_for(1)[0].done()
        eventually(lambda: opened.queue.census(Kind.RUN).total == 0)
        eventually(lambda: opened.queue.statistics().done == 1)

    def test_a_tick_that_was_taken_is_reserved(self, opened: OpenQueue, world: Turned) -> None:
        """It is still counted, or would look lost."""
        tick = Tick("a", world.due_in(0))
        (place,) = opened.queue.put([tick])
        opened.wait_for(1)
        assert place is not None
        (position,) = opened.queue.look([(tick, place)])
        assert position is not None
        assert position.standing is Standing.RESERVED
        assert opened.queue.cancel([(tick, place)]) == [False]
        assert opened.queue.census(Kind.RUN) == Census(reserved=1)

    def test_a_tick_that_waits_tells_how_long(self, opened: OpenQueue, world: Turned) -> None:
        tick = Tick("a", world.due_in(100.5))
        (place,) = opened.queue.put([tick])
        world.turn(50)
        assert place is not None
        (position,) = opened.queue.look([(tick, place)])
        assert position is not None
        assert position.standing is Standing.DELAYED
        assert 48 <= position.seconds_left <= 52  # noqa: PLR2004 - what is left, give or take how long the test took
        assert opened.queue.census(Kind.RUN) == Census(delayed=1)

    def test_a_tick_that_is_cancelled_does_not_come_out(self, opened: OpenQueue, world: Turned) -> None:
        tick, other = Tick("a", world.due_in(3)), Tick("b", world.due_in(4))
        place, _ = opened.queue.put([tick, other])
        assert place is not None
        assert opened.queue.cancel([(tick, place)]) == [True]
        assert opened.queue.cancel([(tick, place)]) == [False]
        assert opened.queue.look([(tick, place)]) == [None]
        world.turn(6)
        assert [delivery.tick for delivery in opened.wait_for(1)] == [other]

    def test_a_tick_is_not_cancelled_in_place_of_another(self, opened: OpenQueue, world: Turned) -> None:
        """The body is compared: its position may have another tick now."""
        tick, other = Tick("a", world.due_in(60)), Tick("a", world.due_in(61))
        (place,) = opened.queue.put([tick])
        assert place is not None
        assert opened.queue.cancel([(other, place)]) == [False]
        assert opened.queue.cancel([(tick, place)]) == [True]

    def test_a_tick_that_is_released_comes_out_again(self, opened: OpenQueue, world: Turned) -> None:
        tick = Tick("a", world.due_in(0))
        opened.queue.put([tick])
        opened.wait_for(1)[0].release()
        opened.fire()
        opened.wait_for(2)[1].release(30)
        eventually(lambda: opened.queue.census(Kind.RUN) == Census(delayed=1))
        world.turn(31)
        assert [delivery.tick for delivery in opened.wait_for(3)] == [tick] * 3

    def test_a_tick_that_is_buried_comes_out_when_it_is_kicked(self, opened: OpenQueue, world: Turned) -> None:
        tick = Tick("a", world.due_in(0))
        (place,) = opened.queue.put([tick])
        opened.wait_for(1)[0].bury()
        eventually(lambda: opened.queue.census(Kind.RUN) == Census(buried=1))
        assert place is not None
        assert [each and each.standing for each in opened.queue.look([(tick, place)])] == [Standing.BURIED]
        assert opened.queue.kick(Kind.RUN, 10) == 1
        assert [delivery.tick for delivery in opened.wait_for(2)] == [tick] * 2

    def test_a_tick_that_is_buried_can_be_taken_out_and_put_again(self, opened: OpenQueue, world: Turned) -> None:
        tick, beside = Tick("a", world.due_in(0)), Tick("b", world.due_in(0))
        places = opened.queue.put([tick, beside])
        for delivery in opened.wait_for(2):
            delivery.bury()
        eventually(lambda: opened.queue.census(Kind.RUN) == Census(buried=2))
        assert places[0] is not None
        assert opened.queue.cancel([(tick, places[0])]) == [True]
        assert opened.queue.look([(tick, places[0])]) == [None]
        opened.queue.put([tick])
        assert opened.wait_for(3)[2].tick == tick
        assert opened.queue.census(Kind.RUN) == Census(reserved=1, buried=1)

    def test_audits_are_counted_apart_from_runs(self, opened: OpenQueue, world: Turned) -> None:
        audit = Tick("", world.due_in(60), Kind.AUDIT, 7)
        opened.queue.put([audit, Tick("a", world.due_in(120))])
        assert opened.queue.census(Kind.AUDIT) == Census(delayed=1)
        assert opened.queue.census(Kind.RUN) == Census(delayed=1)
        world.turn(61)
        assert [delivery.tick for delivery in opened.wait_for(1)] == [audit]

    def test_a_tick_that_is_put_twice_stands_there_twice(self, opened: OpenQueue, world: Turned) -> None:
        """The tick's record decides; comparing all ticks would be slow."""
        tick = Tick("a", world.due_in(60))
        first, second = opened.queue.put([tick, tick])
        assert first != second
        assert opened.queue.census(Kind.RUN).total == 2  # noqa: PLR2004 - twice

    def test_a_tick_of_another_century_waits(self, opened: OpenQueue, world: Turned) -> None:
        """Longer than a server can count."""
        tick = Tick("a", world.due_in(300 * 365.25 * 86_400))
        (place,) = opened.queue.put([tick])
        assert place is not None
        (position,) = opened.queue.look([(tick, place)])
        assert position is not None
        assert position.standing is Standing.DELAYED

    def test_nothing_is_put_when_nothing_is_given(self, opened: OpenQueue) -> None:
        assert opened.queue.put([]) == []
        assert opened.queue.cancel([]) == []
        assert opened.queue.look([]) == []

    def test_a_queue_counts_what_it_does(self, opened: OpenQueue, world: Turned) -> None:
        opened.queue.put([Tick(str(number), world.due_in(0)) for number in range(20)])
        for delivery in opened.wait_for(20):
            delivery.done()
        eventually(lambda: opened.queue.statistics().done == 20)  # noqa: PLR2004 - all of them
        statistics = opened.queue.statistics()
        assert (statistics.placed, statistics.delivered, statistics.premature) == (20, 20, 0)

    def test_a_queue_that_is_not_open_says_so(self, make_queue: MakeQueue) -> None:
        with pytest.raises(QueueError, match="not open"):
            make_queue().put([Tick("a", 0)])
        make_queue().close()


class SharedQueueConformance(QueueFixtures):
    """The suite for a queue that several processes use. Each queue object stands for one process."""

    @pytest.fixture
    def beside(self, make_queue: MakeQueue, world: Turned) -> Iterator[OpenQueue]:
        queue = make_queue()
        with closing(queue):
            yield OpenQueue(queue, world)

    def test_each_tick_goes_to_one_of_them(self, opened: OpenQueue, beside: OpenQueue, world: Turned) -> None:
        ticks = [Tick(str(number), world.due_in(-1)) for number in range(200)]
        opened.queue.put(ticks)
        eventually(lambda: len(opened.come_out) + len(beside.come_out) == len(ticks))
        assert sorted(each.job_id for each in opened.ticks() + beside.ticks()) == sorted(each.job_id for each in ticks)

    def test_what_one_has_not_settled_goes_to_the_other(self, make_queue: MakeQueue, world: Turned) -> None:
        first = OpenQueue(make_queue(), world)
        tick = Tick("a", world.due_in(0))
        first.queue.put([tick])
        first.wait_for(1)
        with closing(make_queue()) as queue:
            second = OpenQueue(queue, world)
            first.queue.close()
            assert [delivery.tick for delivery in second.wait_for(1)] == [tick]

    def test_what_one_has_settled_does_not_go_to_the_other(self, make_queue: MakeQueue, world: Turned) -> None:
        first = OpenQueue(make_queue(), world)
        first.queue.put([Tick("a", world.due_in(0))])
        first.wait_for(1)[0].done()
        first.queue.close()
        with closing(make_queue()) as queue:
            assert OpenQueue(queue, world).queue.census(Kind.RUN).total == 0

    def test_a_tick_for_some_labels_comes_out_to_those_who_listen(
        self, opened: OpenQueue, beside: OpenQueue, world: Turned
    ) -> None:
        wheres = ["region=eu", f"region=eu,zone={'z' * 63},rack={'r' * 63},room={'ü' * 63}"]
        opened.queue.listen(wheres)
        beside.queue.listen(["region=us"])
        ticks = [Tick(str(number), world.due_in(-1), where=wheres[number % 2]) for number in range(20)]
        beside.queue.put(ticks)
        assert {each.tick.job_id for each in opened.wait_for(20)} == {each.job_id for each in ticks}
        assert beside.ticks() == []
        for each in opened.come_out:
            each.done()
        for_any = Tick("any", world.due_in(-1))
        beside.queue.put([for_any])
        eventually(lambda: opened.ticks()[20:] + beside.ticks() == [for_any])

    def test_a_tick_for_labels_waits_for_somebody_who_listens(
        self, opened: OpenQueue, beside: OpenQueue, world: Turned
    ) -> None:
        beside.queue.listen([])
        tick = Tick("a", world.due_in(-1), where="region=eu")
        (place,) = opened.queue.put([tick])
        assert place is not None
        assert opened.queue.census(Kind.RUN) == Census(ready=1)
        assert opened.queue.look([(tick, place)]) == [Position(Standing.READY, 0)]
        assert opened.ticks() == beside.ticks() == []
        beside.queue.listen(["region=eu"])
        assert [delivery.tick for delivery in beside.wait_for(1)] == [tick]
        beside.come_out[0].bury()
        eventually(lambda: opened.queue.census(Kind.RUN) == Census(buried=1))
        later = Tick("b", world.due_in(60))
        opened.queue.put([later])
        assert opened.queue.kick(Kind.RUN, 10) == 1
        assert [delivery.tick for delivery in beside.wait_for(2)] == [tick, tick]
        assert opened.queue.census(Kind.RUN).delayed == 1

    def test_a_tick_that_stands_with_others_than_its_own_is_astray(self, opened: OpenQueue, world: Turned) -> None:
        due_us = world.due_in(60)
        tick, eu = Tick("a", due_us), Tick("a", due_us, where="region=eu")
        (place,) = opened.queue.put([tick])
        assert place is not None
        assert tick == eu
        assert [each and each.is_astray for each in opened.queue.look([(tick, place), (eu, place)])] == [False, True]
        assert opened.queue.cancel([(eu, place)]) == [True]

    def test_one_cancels_what_another_has_put(self, opened: OpenQueue, beside: OpenQueue, world: Turned) -> None:
        tick = Tick("a", world.due_in(60))
        (place,) = opened.queue.put([tick])
        assert place is not None
        assert beside.queue.cancel([(tick, place)]) == [True]
        assert opened.queue.look([(tick, place)]) == [None]
