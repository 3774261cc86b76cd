"""Attempts that are to come: at a failed tick, or at what a death has cut off. They wait in the heap, not for room."""

from __future__ import annotations

from collections.abc import Callable

from timerqueue import Alarm

from ..stores import StoredTick


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


class Owed(Alarm):
    """The ticks that one job owes, as records, oldest first. None starts before `due`, when `start` is called."""

    __slots__ = ("start", "ticks")

    def __init__(self, start: Callable[[], None]) -> None:
        super().__init__()
        self.start = start
        self.ticks: list[StoredTick] = []

    def fire(self) -> None:
        self.start()
