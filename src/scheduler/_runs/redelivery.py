"""Owed ticks, which must be tried again. A death or a stop cut them off, and their delivery is at least once.

Ticks that never began are owed too, if a node that stopped has left them to the others of its fleet.

The record of such a tick says that it is owed, until the mark of its next attempt replaces it. So nothing that happens
to its job forgets the tick: no pause, no other schedule, no other run, no program without the task. Here only waiting
is done. The owed ticks of one job, oldest first, wait until the rest after a crash is over and the job may begin
another run. An attempt that does not begin comes back. Only a verb of the user's gives a tick up, and its record says
so.
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
"""Seconds until the next check whether a thread that outlived a run of the job has ended."""

NEARLY: Final = 0.001
"""Seconds before the end of a rest at which it counts as over, because of rounding."""

_BY_DUE: Final = attrgetter("due_us")


class Starter(Protocol):
    """Starts the next attempts."""

    is_stopping: bool
    is_on_demand: bool

    def start_unchecked(
        self, job: Job, due: float, due_us: int, attempt: int = 1, owes: StoredTick | None = None
    ) -> None: ...


class Redelivery:
    """The owed ticks of one scheduler's jobs."""

    def __init__(self, runs: Starter, starts: Starts, journal: Journal) -> None:
        self._runs = runs
        self._starts = starts
        self._queue = starts.queue
        self._journal = journal
        self._monotonic = starts.monotonic

    def put(self, job: Job, ticks: Iterable[StoredTick]) -> None:
        """Add ticks to what the job owes. They wait until `start`."""
        owed = job.owed
        if owed is None:
            owed = job.owed = Owed(partial(self.start, job))
            owed.due = self._monotonic()
        for tick in ticks:
            insort(owed.ticks, tick, key=_BY_DUE)

    def start(self, job: Job, before: float = inf) -> None:
        """Start the job's owed ticks that may run now, ranked before what is due `before` (monotonic seconds)."""
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
        """Whether the tick of a run that will not begin is owed, and has been taken care of here.

        The tick of a first attempt is owed if the scheduler stops, and if its mark may be durable or other nodes have
        its job. It is not while it is a request in the store.
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
        """Whether the store cannot take the mark of an owed attempt: the next scheduler tries it again."""
        if run.owes is None or run.dropped_for is not NOT_STORED:
            return False
        run.job.counts().runs -= 1
        return True
