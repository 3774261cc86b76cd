"""The only source of real time and of randomness. Everything else is given a Clock and a Random."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Protocol

import anyio

from ._wake import Wake, make_wake

Random = Callable[[], float]
"""Answers another number in [0, 1) at each call."""


def system_random() -> Random:
    """Numbers that nobody can foresee."""
    return random.SystemRandom().random


def seeded_random(seed: int) -> Random:
    """The same numbers for the same seed."""
    return random.Random(seed).random  # noqa: S311 - nothing secret hangs on it


class Clock(Protocol):
    """What a queue, a pool and a scheduler know of time. SystemClock for work, testing.ManualClock for tests.

    One that wakes its waits when it is set may say so by a true `announces_steps`. Any other is looked at now and then.
    """

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back, stands still while the machine is suspended."""

    def wall(self) -> float:
        """Seconds since 1970 in UTC, as the machine believes; may jump either way."""

    def make_wake(self) -> Wake:
        """Make a wait that counts this clock's monotonic seconds, for the event loop of this thread."""

    async def sleep(self, seconds: float) -> None:
        """Return `seconds` of this clock later."""


class SystemClock:
    """Real time."""

    __slots__ = ("monotonic", "wall")

    def __init__(self) -> None:
        # Bound once: a method of our own around each would double the cost of the most frequent call there is.
        self.monotonic = time.monotonic
        self.wall = time.time

    def make_wake(self) -> Wake:
        return make_wake()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)
