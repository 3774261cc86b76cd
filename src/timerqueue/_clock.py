"""The only real time and randomness. All other code is given a Clock and a Random."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, Protocol

import anyio

from ._wake import Wake, make_wake

Random = Callable[[], float]
"""Returns a number in [0, 1)."""

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def system_random() -> Random:
    return random.SystemRandom().random


def seeded_random(seed: int) -> Random:
    return random.Random(seed).random  # noqa: S311 - no secret depends on it


def boottime() -> float:
    """Return seconds, including machine sleep where CLOCK_BOOTTIME exists. For leases."""
    return time.clock_gettime(_CLOCK)


class Clock(Protocol):
    """A clock of a queue, a pool and a scheduler: SystemClock, or testing.ManualClock in tests.

    A true `announces_steps`: setting the clock wakes its waits. Other clocks are polled.
    """

    def monotonic(self) -> float:
        """Seconds since a fixed moment. They never go back, and stop while the machine sleeps."""

    def wall(self) -> float:
        """Seconds since 1970 in UTC, as the machine believes. They may jump."""

    def make_wake(self) -> Wake:
        """Make a wait in this clock's monotonic seconds, for this thread's event loop."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock: real time."""

    __slots__ = ("monotonic", "wall")

    def __init__(self) -> None:
        # Bound once: a method around each would double the cost of the most frequent call of all.
        self.monotonic = time.monotonic
        self.wall = time.time

    def make_wake(self) -> Wake:
        return make_wake()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)
