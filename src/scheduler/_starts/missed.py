"""Ticks without a run: counted, recorded and told."""

from __future__ import annotations

from collections import deque
from logging import getLogger

from .._jobs import Job
from .._journal import Journal, missed_tick, requested, stays_due
from .._plan import Timeline, instant_of
from .._shape import Waited
from .._values import Cause, Listeners, MissedReason, RunMissed
from .answers import answer, answer_given_up
from .why_missed import HAS_RECORD, ended_by

logger = getLogger(__name__)


class MissedTicks:
    """The missed ticks so far, by reason: a lower bound unless `is_exact`."""

    def __init__(self, timeline: Timeline, journal: Journal, listeners: Listeners) -> None:
        self._journal = journal
        self._listeners = listeners
        self.timeline = timeline
        self.by_reason: dict[MissedReason, int] = {}
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
        waited: Waited | None = None,
    ) -> None:
        """Count and record ticks, and tell listeners. `why`: more than the reason says."""
        if job.task is not None:
            tick = missed_tick(job.id, first_us, last_us, count, reason, is_exact=is_exact, why=why, waited=waited)
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
        """Count ticks that the journal has already, and tell listeners."""
        if reason is not HAS_RECORD:  # its record counts it
            job.counts().missed += count
            self.by_reason[reason] = self.by_reason.get(reason, 0) + count
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
        """Leave waiting ticks to the next scheduler. Ticks it cannot continue are missed."""
        waiting = job.backlog or ()
        left = deque(each for each in waiting if stays_due(job, *each, self.timeline))
        job.backlog = left or None
        for due_us, attempt in waiting:
            if attempt == 1 and (due_us, attempt) not in left:  # a retried tick has a record already
                self.leave(job, due_us)
        answer_given_up(job)

    def leave(self, job: Job, due_us: int) -> None:
        """At a stop, leave a tick to the schedulers that continue the job; without any, it is missed.

        Requests of other nodes stand in the store.
        """
        if not self._journal.has_heirs or job.task is None:
            self.miss(job, due_us, due_us, 1, ended_by(Cause.STOPPED))
        elif due_us not in requested(job):
            self._journal.owe(job, due_us, ended_by(Cause.STOPPED))

    def drop_backlog(self, job: Job, cause: Cause) -> None:
        reason = ended_by(cause)
        waiting, job.backlog = job.backlog, None
        for due_us, attempt in waiting or ():
            if attempt == 1:  # a retried tick has a record already
                self.miss(job, due_us, due_us, 1, reason)
        answer_given_up(job)
