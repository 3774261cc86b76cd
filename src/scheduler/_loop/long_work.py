"""Long work: the loop's work on many jobs, in pieces of some milliseconds, so that due ticks come between.

A run that begins needs the loop several times: for its timer, its mark, and the store's answer from another thread. If
long work gave way for one turn only, a piece of it would come before each of these. Other threads would starve for the
interpreter's lock. So it sleeps after each piece, as long as the piece took.
"""

from __future__ import annotations

from typing import Final

from anyio.lowlevel import checkpoint

from timerqueue import Clock

LONGEST: Final = 0.005
"""Seconds of a piece."""

MOST: Final = 100
"""Jobs of a piece, for a manual clock, which stands still."""

LONGEST_SLEEP: Final = 4 * LONGEST
"""Seconds between two pieces. A piece that took longer did not have the processor, and other tasks did not need the
loop.
"""


class LongWork:
    """Work that begins now. Ask `is_long` before each job, and if so `give_way`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._count = 0

    def is_long(self) -> bool:
        """Whether other tasks should have their turn before the next job."""
        self._count += 1
        return self._count > MOST or self._clock.monotonic() - self._began >= LONGEST

    def rest(self) -> float:
        """Seconds for which the others come first: as long as this piece took. Of a clock that stands still: 0.0."""
        return min(self._clock.monotonic() - self._began, LONGEST_SLEEP)

    async def give_way(self, *, hurries: bool = False) -> None:
        """Give other tasks their turn. `hurries`: one turn only, for the next job is late already."""
        rest = self.rest()
        if hurries or rest <= 0:
            await checkpoint()
        else:
            await self._clock.sleep(rest)
        self._began, self._count = self._clock.monotonic(), 1
