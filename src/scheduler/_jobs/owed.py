"""Ticks that a death or a stop has cut off, and that will be tried again: they wait in the heap."""

from __future__ import annotations

from collections.abc import Callable

from timerqueue import Alarm

from ..stores._rows import StoredTick


class Owed(Alarm):
    """The ticks that one job owes, as records, oldest first. None starts before `due`, when `start` is called."""

    __slots__ = ("start", "ticks")

    def __init__(self, start: Callable[[], None]) -> None:
        super().__init__()
        self.start = start
        self.ticks: list[StoredTick] = []

    def fire(self) -> None:
        self.start()
