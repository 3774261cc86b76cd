from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime
from typing import Final

from attrs import field, frozen

from .._plan import instant_of, some_instant_of
from .job import Job, JobAttempt

RUN: Final[ContextVar[JobAttempt]] = ContextVar("scheduler_run")


@frozen
class CurrentRun:
    """The run that the calling task belongs to.

    `due` and `deadline` are aware, in UTC. `deadline` None: no timeout, or it ends after the year 9999. `attempt`
    counts from 1. `fence` identifies the attempt.

    With one scheduler on the store, `fence` rises with every mark: hand it to a receiver that must refuse late calls.
    If nodes share the store, fences have no order. Then hand over `job_id`, `due` and `attempt`: of two calls for one
    tick, the lower attempt is late.
    """

    job_id: str
    due: datetime
    attempt: int
    fence: int
    deadline: datetime | None
    _job: Job = field(eq=False, repr=False)

    def set_next_start(self, at: datetime) -> None:
        """See Job.set_next_start. The start holds however this run ends."""
        self._job.set_next_start(at)


def current_run() -> CurrentRun:
    """Return the run of the calling task, subtask or worker thread. Raises LookupError outside a run."""
    try:
        run = RUN.get()
    except LookupError:
        msg = "current_run() was called outside a run"
        raise LookupError(msg) from None
    deadline = run.deadline_us
    return CurrentRun(
        run.job.id,
        instant_of(run.due_us),
        run.attempt,
        run.fence,
        None if deadline is None else some_instant_of(deadline),
        run.job,
    )
