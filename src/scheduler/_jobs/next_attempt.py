"""Future attempts wait in the heap, not for room."""

from __future__ import annotations

from collections.abc import Callable

from timerqueue import Alarm

from ..stores import StoredTick


class NextAttempt(Alarm):
    __slots__ = ("again", "attempt", "due_us")

    def __init__(self, again: Callable[[NextAttempt], None], due_us: int, attempt: int) -> None:
        super().__init__()
        self.again = again
        self.due_us = due_us
        self.attempt = attempt

    def fire(self) -> None:
        self.again(self)


class Owed(Alarm):
    """Records of owed ticks, oldest first. None starts before `due`."""

    __slots__ = ("start", "ticks")

    def __init__(self, start: Callable[[], None]) -> None:
        super().__init__()
        self.start = start
        self.ticks: list[StoredTick] = []

    def fire(self) -> None:
        self.start()
