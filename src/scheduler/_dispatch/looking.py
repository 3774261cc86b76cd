"""Looking: executions that should stand in the queue are looked for there, and put again where they do not.

A queue may have lost an execution, or give it out too late because its clock was set back, or not at all: a program
that reads our tube by mistake has buried it, or the server has, which had no room; or whoever took it has not been
heard of for longer than its time to run. A beanstalkd 1.12 does that to some of what a connection holds that is silent
and does not end. An audit looks for all of them. It is minutes away, so those that are overdue are looked for every few
seconds: one statement that an index answers, and nearly always there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from .._commits import Writer, in_turn
from .._loop import Core
from ..queues import Place, Position, Standing, Tick, delay_of
from ..stores import SCHEDULED, Execution
from .dispatch import Dispatch
from .fitting import Wheres

EVERY: Final = 5.0
"""Seconds from one look for what is overdue to the next."""

OVERDUE: Final = 5_000_000
"""Microseconds after its due instant at which an execution that nobody has taken is looked for."""

TOLERANCE: Final = 2
"""Seconds by which a queue's clock may differ from ours."""

AT_ONCE: Final = 1_000
FIRST: Final = (-1, "")
LONGEST_DELAY: Final = 2**32 - 1


class Looking:
    """The looks of one scheduler at its queue. Lives on the loop; the store and the queue are asked in their lines."""

    def __init__(self, dispatch: Dispatch, core: Core, *, store_line: Writer, queue_line: Writer) -> None:
        self._dispatch = dispatch
        self._core = core
        self._store_line = store_line
        self._queue_line = queue_line
        self._after = FIRST

    async def overdue(self) -> None:
        """Look for what should have come out by now, some of it if that is much: the rest comes with the next looks.

        Raises StoreError and QueueUnavailable.
        """
        before_us, after = self._now_us() - OVERDUE, self._after
        executions = self._dispatch.executions
        with self._dispatch.puts.reading():
            waiting = partial(executions.waiting, SCHEDULED, before_us=before_us, after=after, limit=AT_ONCE)
            rows, wheres = await in_turn(self._store_line, partial(self._dispatch.fitting.read, waiting))
            self._after = (rows[-1].due_us, rows[-1].job_id) if len(rows) == AT_ONCE else FIRST
            if rows:
                await self.look(rows, wheres)

    async def look(self, rows: Sequence[Execution], wheres: Wheres) -> None:
        """Look for scheduled executions, and put those again that will not come out in time, or only to others than
        those that they are for. Raises QueueUnavailable.

        Call it while `Puts.reading`.
        """
        places = [
            (self._dispatch.fitting.tick(row, wheres), Place(row.instance, row.number))
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
        self._dispatch.missing += self._dispatch.puts.put(wrong)

    def _now_us(self) -> int:
        return self._core.timeline.us(self._core.monotonic(), steady=False)


def _is_late(tick: Tick, position: Position, now_us: int) -> bool:
    """Whether a queue would give a tick out too late: its clock was set back since it was put. Or not at all: it was
    put aside.
    """
    if position.standing is not Standing.DELAYED:
        return position.standing is Standing.BURIED
    return position.seconds_left > delay_of(tick.due_us, now_us, LONGEST_DELAY) + TOLERANCE
