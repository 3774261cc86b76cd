"""The next attempt at a failed tick: it waits in the heap, not in a place of the pool."""

from __future__ import annotations

from collections.abc import Callable

from timerqueue import Alarm


class NextAttempt(Alarm):
    """Which tick will be tried again, and which attempt that will be. `again` is called with it when it is due."""

    __slots__ = ("again", "attempt", "due_us")

    def __init__(self, again: Callable[[NextAttempt], None], due_us: int, attempt: int) -> None:
        super().__init__()
        self.again = again
        self.due_us = due_us
        self.attempt = attempt

    def fire(self) -> None:
        self.again(self)
