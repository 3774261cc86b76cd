"""Requests: what nodes that share a store ask of each other, and what becomes of it.

An act on a job of another node is a row, committed together with whatever else was asked for. That node finds the row
when it polls, and carries it out once:

    a run          -> the request is done in the commit that marks its tick, or that records why it has no run
    anything else  -> done in the commit that holds its changes

If the node dies before that, the row stays open, and the next owner of the job finds it. A caller that waits for the
outcome of a run reads it from the tick's record, whichever node wrote it. On the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from logging import getLogger
from typing import assert_never
from weakref import WeakValueDictionary

from .._control import duplicate, skip, supersede
from .._jobs import AskedRun, Job
from .._loop import Core
from .._restore import Reconciler
from .._values import DuplicateJob, MissedReason, RunEnded, RunMissed
from ..stores import Act, StoredJob, StoredRequest

logger = getLogger(__name__)

Done = Callable[["RequestedRun", RunEnded | RunMissed], None]
Answered = Callable[[str | None], None]
AuditJob = Callable[[Job, bool, Answered], None]
"""Mend a job if it, or a record that says that it runs, is wrong. Tell what was wrong, or None."""


class RequestedRun(AskedRun):
    """A run that another node has asked for. `done`: gets the answer."""

    __slots__ = ("_done",)

    def __init__(self, request: StoredRequest, done: Done) -> None:
        super().__init__(request.job_id, set(), number=request.number)
        self._open.discard(self)  # or it would be part of a reference cycle
        self._done = done

    def settle(self, answer: RunEnded | RunMissed) -> None:
        """Answer the node that asked."""
        super().settle(answer)
        self._done(self, answer)


class Requests:
    """The requests of others for our jobs."""

    def __init__(self, core: Core, reconciler: Reconciler, audit_job: AuditJob) -> None:
        self._core = core
        self._journal = core.journal
        self._reconciler = reconciler
        self._audit_job = audit_job
        self._begun = WeakValueDictionary[int, RequestedRun]()
        """Requested runs that their jobs know of. A job that goes to another node forgets them."""
        self._audited = set[int]()
        """Requests for audits that go on."""
        self._carried_out = set[int]()
        """Requests that were carried out since the last poll: its answer may be older than that."""

    def give_way(self, row: StoredJob, on_conflict: str) -> DuplicateJob | None:
        """Replace a job of ours by the job of its id that another node added first, at the same moment.

        Return the error for callers that wait for a flush.
        """
        job = self._core.jobs.find(row.id)
        if job is None:
            return None
        if on_conflict == "update":
            self._journal.remember(job)
            return None
        self._reconciler.give_way(row.id, row)
        if on_conflict != "error":
            return None
        error = duplicate(row.id)
        logger.error("%s: the one of another agent was first, and ours is as that", error)
        return error

    def begun(self) -> list[int]:
        """Return the requests that are being carried out. The poll that follows need not tell of them again."""
        self._carried_out.clear()
        return [*self._begun, *self._audited, *self._journal.doing()]

    def carry_out(self, request: StoredRequest) -> bool:
        """Carry out a request, unless it is being done. False: another node has the job."""
        job = self._core.jobs.find(request.job_id)
        if job is None or job.task is None or self._core.runs.is_stopping:
            return True
        if job.is_elsewhere:
            return False
        number = request.number
        known = (self._begun, self._audited, self._carried_out, self._journal.doing())
        if any(number in numbers for numbers in known):
            return True
        self._carried_out.add(number)
        try:
            self._do(job, request, Act(request.act))
        except Exception:
            logger.exception("what another agent has asked of job %r cannot be done: %r", job.id, request)
            self._journal.done(job, request.number)
        return True

    def _do(self, job: Job, request: StoredRequest, act: Act) -> None:
        logger.info("job %r: another agent asks for this: %s", job.id, act.value)
        match act:
            case Act.RUN:
                self._run(job, request)
                return
            case Act.BEGIN:
                if not job.is_paused and not job.runs and job.tally is None:  # else we have added it to start now, too
                    self._run(job, request)
                    return
            case Act.START_AT:
                self._core.starts.set_next_start(job, request.at_us or 0)
            case Act.SKIP:
                skip(self._core, job)
            case Act.SUPERSEDE:
                supersede(self._core, job)
            case Act.RESUME:
                self._core.pausing.enable(job)
                counts = job.counts()  # the pause may have ended before the job came here
                counts.consecutive_failures = counts.consecutive_crashes = 0
            case Act.ANEW:
                job = self._reconciler.begin_anew(job)
            case Act.AUDIT:
                self._audit(job, request)
                return
            case _ as never:
                assert_never(never)
        self._journal.done(job, request.number)

    def _run(self, job: Job, request: StoredRequest) -> None:
        self._begun[request.number] = asked = RequestedRun(request, self._run_done)
        self._core.runs.start_now(job, asked)

    def _audit(self, job: Job, request: StoredRequest) -> None:
        def answered(found: str | None) -> None:
            self._audited.discard(request.number)
            self._journal.touch(job)  # so that the row agrees with the heap
            self._journal.done(job, request.number, None, found)

        self._audited.add(request.number)
        self._audit_job(job, request.at_us is not None, answered)

    def _run_done(self, asked: RequestedRun, answer: RunEnded | RunMissed) -> None:
        """Note what has become of a run. If our stop prevented it, the next owner of the job starts it."""
        job, number = self._core.jobs.find(asked.job_id), asked.number or 0
        reason = answer.reason if isinstance(answer, RunMissed) else None
        if job is None or reason is MissedReason.STOPPED:
            return
        self._journal.done(job, number, asked.due_us, None if reason is None else reason.value)
        ours = self._journal.awaited.pop(number, None)
        if ours is not None:
            ours.settle(answer)
