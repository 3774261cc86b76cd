"""How long this process was held up: a late answer may be our own fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import anyio

from timerqueue import Clock

TICK: Final = 0.05
"""Seconds between ticks."""


class Holdups:
    """Ticks while `needed`, if `watch` runs. A late tick: the event loop was busy or the machine stood still."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._total = 0.0
        self._due: float | None = None
        self._needs = 0
        self._wanted: anyio.Event | None = None

    @property
    def seconds(self) -> float:
        """Lateness of all ticks, an overdue one included."""
        overdue = 0.0 if self._due is None else self._clock.monotonic() - self._due
        return self._total + max(overdue, 0.0)

    @contextmanager
    def needed(self) -> Iterator[None]:
        """Tick while the body runs."""
        self._needs += 1
        if self._wanted is not None:
            self._wanted.set()
        try:
            yield
        finally:
            self._needs -= 1

    async def watch(self) -> None:
        """Tick until cancelled."""
        try:
            while True:
                if not self._needs:
                    self._wanted = anyio.Event()
                    await self._wanted.wait()
                await self._tick()
        finally:
            self._due = self._wanted = None

    async def _tick(self) -> None:
        self._due = self._clock.monotonic() + TICK
        await self._clock.sleep(TICK)
        self._total = self.seconds
        self._due = None
