"""Which jobs of a scheduler are stored: what befalls them reaches the journal, and what happens in the store them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._journal.pending import with_pause
from .._journal.rows import job_pause, row_of, stored_pause
from .._values.pauses import JOB, Pause

if TYPE_CHECKING:
    from .._jobs.job import Job
    from .._loop.loop import Loop
    from ..stores._rows import StoredJob
    from .early import Early


class StoredJobs:
    """Those of one scheduler."""

    def __init__(self, loop: Loop, early: Early) -> None:
        self._loop = loop
        self._early = early
        self._journal = loop.journal
        self.unreadable: dict[str, StoredJob] = {}
        """Rows that no job can be made of. Their jobs are parked."""
        self.without_task: dict[str, StoredJob] = {}
        """Jobs that wait for their task to be registered, by id."""

    def mended(self, job: Job) -> None:
        """Somebody has said anew what the job is: what stands in the store does not count any more."""
        self.unreadable.pop(job.id, None)
        self.without_task.pop(job.id, None)
        job.unfit = None

    # -- to the store, on the loop -------------------------------------------------------------------------------------

    def remember(self, job: Job, row: StoredJob | None = None) -> None:
        """Let the store know the job's definition, `row` if that has been made already."""
        if job.task is None or job.is_removed or self._early.holds(job):
            return
        raw = self.unreadable.get(job.id)
        if raw is not None:
            paused = None if job.paused_by is None else job.paused_by.reason
            row = raw._replace(paused=paused, paused_until_us=job.paused_until_us)
        row = row_of(job) if row is None else row
        job.schedule_text = row.schedule
        self._journal.put(row)
        self._journal.touch(job)

    def remember_pause(self, job: Job) -> None:
        """Let the store know that the job is paused, or is not any more. Whatever else others have written into its row
        stays, and is followed when it is seen.
        """
        if job.task is None or job.is_removed or self._early.holds(job):
            return
        pause = job_pause(job)
        if (row := self.unreadable.get(job.id)) is not None:
            self.unreadable[job.id] = with_pause(row, pause)
        self._journal.pause_job(job.id, pause)
        self._journal.touch(job)

    def forget(self, job: Job) -> None:
        """The job is gone, and no other has taken its place: so is its row."""
        self.unreadable.pop(job.id, None)
        self.without_task.pop(job.id, None)
        self._journal.removed(job)

    def pause_changed(self, scope: str, pause: Pause | None, job: Job | None) -> None:
        """A pause has come or gone: of `job`, if it is the scope."""
        if job is not None:
            self.remember_pause(job)
        elif not scope.startswith(JOB):
            self._journal.pause(scope, None if pause is None else stored_pause(pause))
