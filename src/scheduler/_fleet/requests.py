"""Requests: nodes that share a store ask each other to act.

An act on another node's job is a row, committed with the caller's other changes. That node's poll finds it:

    a run          -> done in the commit that marks its tick, or records why there is no run
    anything else  -> done in the commit of its changes

If it dies, the job's next owner finds the row. On the loop.
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
"""Mends a job or its record. Tells what was wrong, or None."""


class RequestedRun(AskedRun):
    __slots__ = ("_done",)

    def __init__(self, request: StoredRequest, done: Done) -> None:
        super().__init__(request.job_id, set(), number=request.number)
        self._open.discard(self)  # or it would be part of a reference cycle
        self._done = done

    def settle(self, answer: RunEnded | RunMissed) -> None:
        super().settle(answer)
        self._done(self, answer)


class Requests:
    def __init__(self, core: Core, reconciler: Reconciler, audit_job: AuditJob) -> None:
        self._core = core
        self._journal = core.journal
        self._reconciler = reconciler
        self._audit_job = audit_job
        self._begun = WeakValueDictionary[int, RequestedRun]()
        self._audited = set[int]()
        self._carried_out = set[int]()

    def give_way(self, row: StoredJob, on_conflict: str) -> DuplicateJob | None:
        """Replace our job by another node's earlier one. Return the error for a flush."""
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
        logger.error("%s: the one of another node was first, and ours is as that", error)
        return error

    def begun(self) -> list[int]:
        """Return present requests, which the next poll may leave out."""
        self._carried_out.clear()
        return [*self._begun, *self._audited, *self._journal.doing()]

    def carry_out(self, request: StoredRequest) -> bool:
        """False: another node has the job."""
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
            logger.exception("what another node has asked of job %r cannot be done: %r", job.id, request)
            self._journal.done(job, request.number)
        return True

    def _do(self, job: Job, request: StoredRequest, act: Act) -> None:
        logger.info("job %r: another node asks for this: %s", job.id, act.value)
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
        """If our stop prevented the run, the job's next owner starts it."""
        job, number = self._core.jobs.find(asked.job_id), asked.number or 0
        reason = answer.reason if isinstance(answer, RunMissed) else None
        if job is None or reason is MissedReason.STOPPED:
            return
        self._journal.done(job, number, asked.due_us, None if reason is None else reason.value)
        ours = self._journal.awaited.pop(number, None)
        if ours is not None:
            ours.settle(answer)
