"""Work on many jobs in pieces of some milliseconds, with due ticks between.

A run that begins needs the loop several times. If work gave way for one turn only, a piece would come before each, and
other threads would lack the interpreter's lock. So it sleeps as long as the piece took.
"""

from __future__ import annotations

from typing import Final

from anyio.lowlevel import checkpoint

from timerqueue import Clock

PIECE_S: Final = 0.005
"""Seconds of a piece."""

PIECE_JOBS: Final = 100
"""Jobs of a piece, for a manual clock."""

MAX_PAUSE_S: Final = 4 * PIECE_S
"""Seconds. A longer piece was waiting for the processor."""


class LongWork:
    """Ask `is_long` before each job, and if so `give_way`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._count = 0

    def is_long(self) -> bool:
        self._count += 1
        return self._count > PIECE_JOBS or self._clock.monotonic() - self._began >= PIECE_S

    def rest(self) -> float:
        return min(self._clock.monotonic() - self._began, MAX_PAUSE_S)

    async def give_way(self, *, hurries: bool = False) -> None:
        """`hurries`: one turn only, because the next job is late already."""
        rest = self.rest()
        if hurries or rest <= 0:
            await checkpoint()
        else:
            await self._clock.sleep(rest)
        self._began, self._count = self._clock.monotonic(), 1
