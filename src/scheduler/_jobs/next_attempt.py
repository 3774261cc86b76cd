"""The next attempt at a failed tick: it waits in the heap, not in a place of the pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from timerqueue import Alarm

if TYPE_CHECKING:
    from .job import Job


class Starter(Protocol):
    """Who starts it."""

    def start_again(self, attempt: NextAttempt) -> None:
        """It is due."""


class NextAttempt(Alarm):
    """Which tick will be tried again, and which attempt that will be."""

    __slots__ = ("attempt", "due_us", "job", "starter")

    def __init__(self, starter: Starter, job: Job, due_us: int, attempt: int) -> None:
        super().__init__()
        self.starter = starter
        self.job = job
        self.due_us = due_us
        self.attempt = attempt

    def fire(self) -> None:
        if self.job.retry is self and not self.job.is_paused:  # not cancelled by somebody before it in the same batch
            self.starter.start_again(self)
