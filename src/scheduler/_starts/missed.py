"""Ticks that have no run: counted, remembered and told, with the reason."""

from __future__ import annotations

from collections import deque
from logging import getLogger

from .._jobs import Job
from .._journal import Journal, missed_tick, requested, stays_due
from .._plan import Timeline, instant_of
from .._values import Cause, Listeners, MissedReason, RunMissed
from .answers import answer, answer_given_up
from .why_missed import HAS_RECORD, ended_by

logger = getLogger(__name__)


class MissedTicks:
    """The missed ticks of one scheduler. `total`: how many so far; not `is_exact`: at least so many."""

    def __init__(self, timeline: Timeline, journal: Journal, listeners: Listeners) -> None:
        self._journal = journal
        self._listeners = listeners
        self.timeline = timeline
        self.total = 0
        self.is_exact = True

    def miss(
        self,
        job: Job,
        first_us: int,
        last_us: int,
        count: int,
        reason: MissedReason,
        *,
        is_exact: bool = True,
        why: str | None = None,
    ) -> None:
        """Count ticks that have no run, note them, and tell. `why`: more than the reason says, for people."""
        if job.task is not None:
            tick = missed_tick(job.id, first_us, last_us, count, reason, is_exact=is_exact, why=why)
            self._journal.missed(job, tick)
        self.count(job, first_us, last_us, count, reason, is_exact=is_exact, why=why)

    def count(
        self,
        job: Job,
        first_us: int,
        last_us: int,
        count: int,
        reason: MissedReason,
        *,
        is_exact: bool,
        why: str | None = None,
    ) -> None:
        """Count ticks of which the journal knows already, and tell."""
        if reason is not HAS_RECORD:  # which has its record, and is counted there
            job.counts().missed += count
            self.total += count
        if not is_exact:
            self.is_exact = job.counts().missed_is_exact = False
        logger.debug("job %r missed %d start(s): %s", job.id, count, reason.value)
        is_asked = count == 1 and job.sparse is not None and bool(job.asked)
        if is_asked or self._listeners.anybody:
            missed = RunMissed(job.id, instant_of(first_us), instant_of(last_us), count, reason, is_exact, why)
            self._listeners.tell(missed)
            if is_asked:
                answer(job, first_us, missed)

    def leave_backlog(self, job: Job) -> None:
        """The scheduler stops: what waits for the end of a run is missed, unless the next scheduler goes on with it."""
        waiting = job.backlog or ()
        left = deque(each for each in waiting if stays_due(job, *each, self.timeline))
        job.backlog = left or None
        for due_us, attempt in waiting:
            if attempt == 1 and (due_us, attempt) not in left:  # of another attempt's tick there is a record already
                self.leave(job, due_us)
        answer_given_up(job)

    def leave(self, job: Job, due_us: int) -> None:
        """The scheduler stops: a tick of which the job's state says nothing is owed, if others go on with the job, and
        missed if not. What others have asked for they know.
        """
        if not self._journal.has_heirs or job.task is None:
            self.miss(job, due_us, due_us, 1, ended_by(Cause.STOPPED))
        elif due_us not in requested(job):
            self._journal.owe(job, due_us, ended_by(Cause.STOPPED))

    def drop_backlog(self, job: Job, cause: Cause) -> None:
        """Nothing waits for the end of a run any more, because of that."""
        reason = ended_by(cause)
        waiting, job.backlog = job.backlog, None
        for due_us, attempt in waiting or ():
            if attempt == 1:  # of another attempt's tick there is a record already
                self.miss(job, due_us, due_us, 1, reason)
        answer_given_up(job)
