from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from threading import Condition, Lock
from typing import Final

from attrs import define

from timerqueue import Clock

from ...queues import Delivery, Queue, Tick

PATIENCE: Final = 60.0
"""Seconds to wait for other threads and servers."""


@define(eq=False)
class Turned:
    """A clock, and a function that lets seconds pass for queues and server."""

    clock: Clock
    turn: Callable[[float], object]

    def due_in(self, seconds: float) -> int:
        """Return the instant `seconds` from now, in UTC microseconds."""
        return int((self.clock.wall() + seconds) * 1_000_000)


class OpenQueue:
    """An open queue. `come_out`: deliveries in their order."""

    def __init__(self, queue: Queue, world: Turned) -> None:
        self.queue = queue
        self.come_out: list[Delivery] = []
        self._clock = world.clock
        self._changed = Condition()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._lock = Lock()
        queue.open(world.clock, self._call_at, self._deliver)

    def comes(self, how_many: int, within: float) -> bool:
        self.fire()
        with self._changed:
            return self._changed.wait_for(lambda: len(self.come_out) >= how_many, within)

    def wait_for(self, how_many: int) -> list[Delivery]:
        self.fire()
        with self._changed:
            came = self._changed.wait_for(lambda: len(self.come_out) >= how_many, PATIENCE)
            assert came, f"{len(self.come_out)} of {how_many} ticks have come out, and no more do"
            return list(self.come_out)

    def ticks(self) -> list[Tick]:
        with self._changed:
            return [delivery.tick for delivery in self.come_out]

    def fire(self) -> None:
        while (function := self._next_due()) is not None:
            function()

    def _next_due(self) -> Callable[[], None] | None:
        with self._lock:
            if not self._timers or self._timers[0][0] > self._clock.monotonic() + 1e-6:
                return None
            return heapq.heappop(self._timers)[2]

    def _call_at(self, instant: float, function: Callable[[], None]) -> None:
        with self._lock:
            heapq.heappush(self._timers, (instant, next(self._order), function))

    def _deliver(self, deliveries: list[Delivery]) -> None:
        with self._changed:
            self.come_out += deliveries
            self._changed.notify_all()
