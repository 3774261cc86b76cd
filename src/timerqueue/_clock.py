"""The only source of real time and of randomness. All other code is given a Clock and a Random."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, Protocol

import anyio

from ._wake import Wake, make_wake

Random = Callable[[], float]
"""Returns another number in [0, 1) at each call."""

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def system_random() -> Random:
    """Return a source of unpredictable random numbers."""
    return random.SystemRandom().random


def seeded_random(seed: int) -> Random:
    """Return a source of random numbers that are the same for the same seed."""
    return random.Random(seed).random  # noqa: S311 - no secret depends on it


def boottime() -> float:
    """Return seconds that count while the machine sleeps, too, where it tells. For leases."""
    return time.clock_gettime(_CLOCK)


class Clock(Protocol):
    """A clock is what a queue, a pool and a scheduler know of time: SystemClock, or testing.ManualClock in tests.

    A clock that wakes its waits when it is set may say so with a true `announces_steps`. Others are checked now and
    then.
    """

    def monotonic(self) -> float:
        """Return seconds since some fixed moment. They never go back, and stand still while the machine sleeps."""

    def wall(self) -> float:
        """Return seconds since 1970 in UTC, as the machine believes. They may jump either way."""

    def make_wake(self) -> Wake:
        """Make a wait that counts this clock's monotonic seconds, for the event loop of this thread."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock."""


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
