"""Overdue executions are looked for in the queue every few seconds, and put again if missing.

A queue may lose an execution, or deliver it late because its clock was set back. A stray reader or a full server may
bury it. Beanstalkd 1.12 does not release some jobs of a silent connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from ..._commits import Writer, in_turn
from ..._loop import Core
from ...queues import Place, Position, Standing, Tick, delay_of
from ...stores import SCHEDULED, Execution
from .dispatch import Dispatch
from .routing import Wheres

SCAN_S: Final = 5.0
"""Seconds."""

OVERDUE: Final = 5_000_000
"""Microseconds after the due instant."""

TOLERANCE: Final = 2
"""Seconds by which a queue's clock may differ from ours."""

AT_ONCE: Final = 1_000
FIRST: Final = (-1, "")
LONGEST_DELAY: Final = 2**32 - 1


class OverdueScan:
    """On the loop."""

    def __init__(self, dispatch: Dispatch, core: Core, *, store_line: Writer, queue_line: Writer) -> None:
        self._dispatch = dispatch
        self._core = core
        self._store_line = store_line
        self._queue_line = queue_line
        self._after = FIRST

    async def overdue(self) -> None:
        """Look for AT_ONCE executions at most. Raises StoreError and QueueUnavailable."""
        before_us, after = self._now_us() - OVERDUE, self._after
        executions = self._dispatch.executions
        with self._dispatch.publisher.reading():
            waiting = partial(executions.waiting, SCHEDULED, before_us=before_us, after=after, limit=AT_ONCE)
            rows, wheres = await in_turn(self._store_line, partial(self._dispatch.routing.read, waiting))
            self._after = (rows[-1].due_us, rows[-1].job_id) if len(rows) == AT_ONCE else FIRST
            if rows:
                await self.look(rows, wheres)

    async def look(self, rows: Sequence[Execution], wheres: Wheres) -> None:
        """Put executions again that will come out late, or only to wrong nodes. Raises QueueUnavailable.

        Call it inside `Publisher.reading`.
        """
        places = [
            (self._dispatch.routing.tick(row, wheres), Place(row.instance, row.number))
            for row in rows
            if row.instance is not None and row.number is not None
        ]
        positions = await in_turn(self._queue_line, lambda: self._dispatch.queue.look(places))
        now_us = self._now_us()
        wrong: list[tuple[Tick, Place | None]] = [
            (tick, None if position is None or position.is_forgotten else place)
            for (tick, place), position in zip(places, positions, strict=True)
            if position is None
            or position.is_forgotten
            or _is_late(tick, position, now_us)
            or (position.is_astray and position.standing is not Standing.RESERVED)
        ]
        self._dispatch.missing += self._dispatch.publisher.put(wrong)

    def _now_us(self) -> int:
        return self._core.timeline.us(self._core.monotonic(), steady=False)


def _is_late(tick: Tick, position: Position, now_us: int) -> bool:
    """A queue is late after its clock was set back. It never delivers a buried tick."""
    if position.standing is not Standing.DELAYED:
        return position.standing is Standing.BURIED
    return position.seconds_left > delay_of(tick.due_us, now_us, LONGEST_DELAY) + TOLERANCE
