"""The audit of a queue by a process that is not a node and claims no ticks. Nodes use audit.py.

An execution is the row of a job's next tick. If a node puts it into the queue too, one of the two copies is dropped
when it comes out. New executions are left to the nodes that planned them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ...queues import Place, Position, Queue, Standing, Tick
from ...stores import PARTS, PENDING, SCHEDULED, Audited, Decide, Execution, Placed, Planned, Standing as At, Visit

SETTLED: Final = 2_000_000
"""Microseconds after which no node will still put a pending execution into the queue."""

TOLERANCE: Final = 3_000_000
"""Microseconds by which a queue may be late."""

PAGE: Final = 1_000
FOREVER: Final = 2**62


class QueueVisit:
    def __init__(self, visit: Visit, queue: Queue, plan: Decide) -> None:
        self._visit = visit
        self._queue = queue
        self._plan = plan
        self._now_us = 0
        self.jobs = self.busy = 0
        self.planned = self.requeued = self.withdrawn = self.failed = 0

    def audit(self) -> None:
        """Audit each part, then the executions that wait. Raises StoreError and QueueUnavailable."""
        self._now_us = self._visit.now_us()
        self._queue.instance()  # raises if the queue does not answer, before anything is written
        for part in range(PARTS):
            found = self._visit.executions.audit(part, now_us=self._now_us, instance=None, decide=self._decide)
            if found is None:
                self.busy += 1
            else:
                self._mended(found)
        for rows in self._pages(PENDING):
            orphans = [row for row in rows if row.made_us < self._now_us - SETTLED]
            self.requeued += self._put(orphans)
        for rows in self._pages(SCHEDULED):
            self.requeued += self._put(self._wrong(rows))

    def _decide(self, standing: At) -> Planned | None:
        plan, job = self._plan(standing), standing.job
        self.failed += plan is None and standing.live is None and job is not None and job.paused is None
        return plan

    def _mended(self, found: Audited) -> None:
        self.jobs += found.jobs
        self.planned += len(found.planned)
        self.withdrawn += len({row.job_id for row in found.gone} - {row.job_id for row in found.planned})
        places = [(Tick(row.job_id, row.due_us), place) for row in found.gone if (place := _place(row)) is not None]
        if places:
            self._queue.cancel(places)
        self._put(found.planned)

    def _pages(self, status: str) -> Iterator[list[Execution]]:
        after = (-1, "")
        while True:
            rows = self._visit.executions.waiting(status, before_us=FOREVER, after=after, limit=PAGE)
            yield rows
            if len(rows) < PAGE:
                return
            after = (rows[-1].due_us, rows[-1].job_id)

    def _wrong(self, rows: Sequence[Execution]) -> list[Execution]:
        """Return executions that the queue has lost, buried, delayed too long or given to the wrong nodes. Cancel all
        but the lost.
        """
        ticks = zip(rows, self._ticks(rows), strict=True)
        places = [(row, tick, place) for row, tick in ticks if (place := _place(row)) is not None]
        positions = self._queue.look([(tick, place) for _, tick, place in places])
        missing = [
            row
            for (row, _, _), position in zip(places, positions, strict=True)
            if position is None or position.is_forgotten
        ]
        late = [
            (row, tick, place)
            for (row, tick, place), position in zip(places, positions, strict=True)
            if position is not None
            and not position.is_forgotten
            and (self._is_late(row, position) or (position.is_astray and position.standing is not Standing.RESERVED))
        ]
        if late:
            self._queue.cancel([(tick, place) for _, tick, place in late])
        return missing + [row for row, _, _ in late]

    def _is_late(self, row: Execution, position: Position) -> bool:
        if position.standing is Standing.BURIED:
            return True
        comes_us = self._now_us + position.seconds_left * 1_000_000
        return position.standing is Standing.DELAYED and comes_us > max(row.due_us, self._now_us) + TOLERANCE

    def _ticks(self, rows: Sequence[Execution]) -> list[Tick]:
        wheres = self._visit.executions.wheres([row.job_id for row in rows]) if rows else {}
        return [Tick(row.job_id, row.due_us, where=wheres.get(row.job_id)) for row in rows]

    def _put(self, rows: Sequence[Execution]) -> int:
        """Put executions into the queue. Return how many it took; refused executions stay pending."""
        if not rows:
            return 0
        places = self._queue.put(self._ticks(rows))
        placed = [
            Placed(row.job_id, row.due_us, place.instance, place.number, self._now_us)
            for row, place in zip(rows, places, strict=True)
            if place is not None
        ]
        if placed:
            self._visit.placed(placed)
        return len(placed)


def _place(row: Execution) -> Place | None:
    return None if row.instance is None or row.number is None else Place(row.instance, row.number)
