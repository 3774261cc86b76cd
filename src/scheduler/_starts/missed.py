"""Ticks that have no run: counted, remembered and told, with the reason."""

from __future__ import annotations

from collections import deque
from logging import getLogger
from typing import TYPE_CHECKING

from .._journal.journal import Journal
from .._journal.rows import stays_due
from .._plan.timeline import Timeline
from .._runs.marks import Marks
from .._runs.overlap import waits_for
from .._runs.owing import Owing
from .._runs.run import MarkedRun, Run
from .._values.events import RunMissed
from .._values.listeners import Listeners
from .._values.outcome import Cause, MissedReason

if TYPE_CHECKING:
    from .._jobs.job import Job

logger = getLogger(__name__)


class Misses:
    """Those of one scheduler. `count`: all of them so far; not `is_exact`: at least so many."""

    def __init__(self, marks: Marks, owing: Owing, timeline: Timeline, journal: Journal, listeners: Listeners) -> None:
        self._marks = marks
        self._journal = journal
        self._owing = owing
        self._listeners = listeners
        self.timeline = timeline
        self.count = 0
        self.is_exact = True

    def miss(
        self, job: Job, first_us: int, last_us: int, count: int, reason: MissedReason, *, is_exact: bool = True
    ) -> None:
        """Ticks have no run."""
        if job.task is not None:
            self._journal.missed(job, first_us, last_us, count, reason, is_exact=is_exact)
        self._count_missed(job, first_us, last_us, count, reason, is_exact=is_exact)

    def miss_run(self, run: Run, reason: MissedReason) -> None:
        """A run that waited will not begin. Another attempt at a tick that has failed is no missed tick."""
        if isinstance(run, MarkedRun) and (
            (reason is MissedReason.STOPPED and self._is_left_due(run)) or self._owing.keeps(run, reason)
        ):
            return
        if isinstance(run, MarkedRun) and run.is_held:
            self._journal.unmark(run, reason)
            if run.attempt == 1:
                self._count_missed(run.job, run.due_us, run.due_us, 1, reason, is_exact=True)
        elif run.attempt == 1:
            self.miss(run.job, run.due_us, run.due_us, 1, reason)

    def _is_left_due(self, run: MarkedRun) -> bool:
        """Whether the next scheduler goes on with the run's tick."""
        is_to_come = run.owes is None and stays_due(run.job, run.due_us, run.attempt, self.timeline)
        return is_to_come and self._marks.leave_due(run)

    def _count_missed(
        self, job: Job, first_us: int, last_us: int, count: int, reason: MissedReason, *, is_exact: bool
    ) -> None:
        if reason is not MissedReason.REPEATED:  # which has its record, and is counted there
            job.counts().missed += count
            self.count += count
        if not is_exact:
            self.is_exact = job.counts().missed_is_exact = False
        logger.debug("job %r missed %d start(s): %s", job.id, count, reason.value)
        if self._listeners.anybody:
            self._listeners.tell(RunMissed(job.id, first_us * 1e-6, last_us * 1e-6, count, reason, is_exact))

    def was_dropped(self, run: Run) -> None:
        """It ended before it began."""
        if isinstance(run, MarkedRun) and run.dropped_for is not None:
            self.miss_run(run, run.dropped_for)
        elif run.cause is Cause.STOPPED:
            self.miss_run(run, MissedReason.STOPPED)
        elif run.cause is Cause.REPLACED:
            self.miss_run(run, waits_for(run))
        elif run.cause is Cause.PAUSED:
            self.miss_run(run, MissedReason.PAUSED)
        elif run.cause is Cause.REMOVED:
            self.miss_run(run, MissedReason.REMOVED)

    def leave_backlog(self, job: Job) -> None:
        """The scheduler stops: what waits for the end of a run is missed, unless the next scheduler goes on with it."""
        left = deque(each for each in job.backlog or () if stays_due(job, *each, self.timeline))
        job.backlog = deque(each for each in job.backlog or () if each not in left) or None
        self.drop_backlog(job, MissedReason.STOPPED)
        job.backlog = left or None

    def drop_backlog(self, job: Job, reason: MissedReason) -> None:
        """Nothing waits for the end of a run any more."""
        waiting, job.backlog = job.backlog, None
        for due_us, attempt in waiting or ():
            if attempt == 1:  # of another attempt's tick there is a record already
                self.miss(job, due_us, due_us, 1, reason)
