from __future__ import annotations

from contextlib import closing
from typing import cast

from ...queues import Bounded, Census, Kind, Tick
from ._rules_of_queues import MakeQueue, QueueFixtures, eventually
from ._world import OpenQueue, Turned


class BoundedQueueConformance(QueueFixtures):
    """The suite for a queue with the method of `Bounded` that several processes use."""

    def test_no_more_come_out_than_there_is_room_for(self, make_queue: MakeQueue, world: Turned) -> None:
        queue = make_queue()
        with closing(queue):
            _bound(queue, 3)
            opened = OpenQueue(queue, world)
            queue.put([Tick(str(number), world.due_in(-1)) for number in range(10)])
            opened.wait_for(3)
            assert queue.census(Kind.RUN) == Census(ready=7, reserved=3)
            opened.come_out[0].done()
            opened.wait_for(4)
            _bound(queue, 1)
            opened.come_out[1].done()
            eventually(lambda: queue.statistics().done == 2)  # noqa: PLR2004 - both
            assert queue.census(Kind.RUN) == Census(ready=6, reserved=2)
            _bound(queue, None)
            opened.wait_for(10)

    def test_what_one_has_no_room_for_comes_out_to_another(self, make_queue: MakeQueue, world: Turned) -> None:
        with closing(make_queue()) as full, closing(make_queue()) as free:
            _bound(full, 0)
            at_full, at_free = OpenQueue(full, world), OpenQueue(free, world)
            full.put([Tick(str(number), world.due_in(-1)) for number in range(10)])
            at_free.wait_for(10)
            assert at_full.ticks() == []


def _bound(queue: object, most: int | None) -> None:
    cast("Bounded", queue).bound(most)
