"""Long work: what the loop does for many jobs, in pieces of some milliseconds, so that whatever is due comes between.

A run that begins needs the loop several times: for its timer, its mark, and the answer of the store, which came in
another thread. Work that only lets the others have one turn each is done a piece further each of these times, and
leaves threads nothing of the interpreter's lock. So it sleeps after each piece, as long as that took.
"""

from __future__ import annotations

from typing import Final

from anyio.lowlevel import checkpoint

from timerqueue import Clock

LONGEST: Final = 0.005
"""Seconds of a piece."""

MOST: Final = 100
"""Jobs of a piece, where a clock that somebody sets stands still meanwhile."""

LONGEST_SLEEP: Final = 4 * LONGEST
"""Seconds between two pieces. One that took longer did not have the processor, and nobody else had the loop."""


class LongWork:
    """Some such work, which begins now. Ask `is_long` before each job, and if so `give_way`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._count = 0

    def is_long(self) -> bool:
        """Whether others are to have their turn before the next job."""
        self._count += 1
        return self._count > MOST or self._clock.monotonic() - self._began >= LONGEST

    def rest(self) -> float:
        """Seconds for which the others come first: as long as this piece took. Of a clock that stands still: 0.0."""
        return min(self._clock.monotonic() - self._began, LONGEST_SLEEP)

    async def give_way(self, *, hurries: bool = False) -> None:
        """Let the others have their turn. `hurries`: one turn, for what comes next is late already."""
        rest = self.rest()
        if hurries or rest <= 0:
            await checkpoint()
        else:
            await self._clock.sleep(rest)
        self._began, self._count = self._clock.monotonic(), 1
