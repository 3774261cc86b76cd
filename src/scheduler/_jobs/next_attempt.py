"""Future attempts, at a failed tick or at a tick that a death has cut off. They wait in the heap, not for room."""

from __future__ import annotations

from collections.abc import Callable

from timerqueue import Alarm

from ..stores import StoredTick


class NextAttempt(Alarm):
    """The next attempt at a tick, and its number. When it is due, it calls `again` with itself."""

    __slots__ = ("again", "attempt", "due_us")

    def __init__(self, again: Callable[[NextAttempt], None], due_us: int, attempt: int) -> None:
        super().__init__()
        self.again = again
        self.due_us = due_us
        self.attempt = attempt

    def fire(self) -> None:
        self.again(self)


class Owed(Alarm):
    """The ticks that one job owes, as records, oldest first. None starts before `due`, when `start` is called."""

    __slots__ = ("start", "ticks")

    def __init__(self, start: Callable[[], None]) -> None:
        super().__init__()
        self.start = start
        self.ticks: list[StoredTick] = []

    def fire(self) -> None:
        self.start()
