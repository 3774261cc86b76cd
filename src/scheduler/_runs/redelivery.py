"""Owed ticks: cut off by a death or a stop, with at-least-once delivery, or left by a node that stopped.

The tick's record says so until its next attempt's mark replaces it. So nothing forgets it: no pause, schedule or other
run, no program without the task. Here ticks wait, oldest first, until the job's rest is over and it may begin another
run. An attempt that does not begin comes back. Only the user gives a tick up, on record.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from functools import partial
from logging import getLogger
from math import inf
from operator import attrgetter
from typing import Final, Protocol

from .._jobs import Job, Owed
from .._journal import Journal
from .._starts import NOT_STORED, REMOVED, Starts, is_owed_by
from .._values import MissedReason
from ..stores import StoredTick
from .overlap import has_place
from .run import MarkedRun

logger = getLogger(__name__)

THREAD_AGAIN: Final = 1.0
"""Seconds between checks whether a thread that outlived its run has ended."""

NEARLY: Final = 0.001
"""Seconds before its end at which a rest counts as over: rounding."""

_BY_DUE: Final = attrgetter("due_us")


class Starter(Protocol):
    is_stopping: bool
    is_on_demand: bool

    def start_unchecked(
        self, job: Job, due: float, due_us: int, attempt: int = 1, owes: StoredTick | None = None
    ) -> None: ...


class Redelivery:
    def __init__(self, runs: Starter, starts: Starts, journal: Journal) -> None:
        self._runs = runs
        self._starts = starts
        self._queue = starts.queue
        self._journal = journal
        self._monotonic = starts.monotonic

    def put(self, job: Job, ticks: Iterable[StoredTick]) -> None:
        owed = job.owed
        if owed is None:
            owed = job.owed = Owed(partial(self.start, job))
            owed.due = self._monotonic()
        for tick in ticks:
            insort(owed.ticks, tick, key=_BY_DUE)

    def start(self, job: Job, before: float = inf) -> None:
        """Start owed ticks that may run now, ranked before those due `before` (monotonic seconds)."""
        owed, runs = job.owed, self._runs
        if owed is None or job.is_paused or job.is_removed or runs.is_stopping or runs.is_on_demand:
            return
        now = self._monotonic()
        if owed.due - now > NEARLY:
            return
        if job.threads and not all(thread.has_ended for thread in job.threads):
            self._starts.arm_owed(job, now + THREAD_AGAIN)
            return
        while owed.ticks and has_place(job):
            tick = owed.ticks.pop(0)
            runs.start_unchecked(job, min(owed.due, before), tick.due_us, tick.attempt + 1, tick)
        if not owed.ticks:
            self._queue.disarm(owed)
            job.owed = None

    def keeps(self, run: MarkedRun, reason: MissedReason) -> bool:
        """Whether the tick of a run that will not begin is owed, and kept here.

        A first attempt's tick is owed at a stop if its mark may be durable or other nodes have its job. A request in
        the store is not.
        """
        journal, job = self._journal, run.job
        if run.dropped_for is not None:
            return self._is_refused(run)
        if run.owes is None and not (reason is MissedReason.STOPPED and self._outlives_stop(run)):
            return False
        if journal.stands_as_request(run):
            if run.is_held:
                journal.withdraw(run)
            return True
        if run.owes is not None and not (run.is_held and not journal.withdraw(run)):
            record = run.owes
        else:
            record = journal.postpone(run, reason)
        if job.is_removed:
            journal.give_up(record, REMOVED)
        else:
            self.put(job, [record])
        return True

    def _outlives_stop(self, run: MarkedRun) -> bool:
        return (self._journal.has_heirs and not run.job.is_removed) or (run.is_held and is_owed_by(run.job))

    def _is_refused(self, run: MarkedRun) -> bool:
        """The store cannot take an owed attempt's mark: the next scheduler tries it again."""
        if run.owes is None or run.dropped_for is not NOT_STORED:
            return False
        run.job.counts().runs -= 1
        return True
