"""Jobs that are added before the store has been read, and the calls of their handles until then.

Such a job is in the list at once, and begins when the store has been read. The store may have the job already; then
`on_conflict` decides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice

from attrs import define

from .._jobs import Job, JobList
from .._loop import Core, SlicedChanges
from .._plan import FirstStart, Start
from .conflict import OnConflict


@define
class EarlyJob:
    """A stored job that was added before the store was read, and how it would start."""

    job: Job
    first: FirstStart
    on_conflict: OnConflict
    start: Start
    is_late: bool = False
    """Whether the scheduler ran already when the job was added. A mistake in the job must not end the scheduler."""


class Early:
    """The early jobs of one scheduler, by id. `is_waiting`: there is a store, and it has not been read yet."""

    def __init__(self, core: Core, jobs: JobList, *, is_waiting: bool) -> None:
        self.is_waiting = is_waiting
        self._core = core
        self._lock = jobs.lock
        self._by_id: dict[str, EarlyJob] = {}
        self._asked: list[Callable[[], object]] = []
        """Calls that wait for their jobs to begin, in this order."""
        self.renewals = SlicedChanges(core.loop)

    def __len__(self) -> int:
        return len(self._by_id)

    def put(self, early: EarlyJob) -> None:
        """Let the job wait. Call it with the lock of the list of jobs held."""
        self._by_id[early.job.id] = early

    def find(self, id: str) -> EarlyJob | None:
        """Return the early job of that id, or None."""
        return self._by_id.get(id)

    def holds(self, job: Job) -> bool:
        """Return whether this very job waits."""
        early = self._by_id.get(job.id)
        return early is not None and early.job is job

    def discard(self, job: Job) -> None:
        """Take the job out, if it waits."""
        with self._lock:
            if self.holds(job):
                del self._by_id[job.id]

    def ask(self, job: Job, func: Callable[..., object], *args: object) -> None:
        """Call `func` on the loop: when an early job has begun, or after a change of the job."""
        if self.is_waiting:
            with self._lock:
                if self.holds(job):
                    self._asked.append(partial(func, *args))
                    return
        if self.renewals:
            self._core.loop.call(self._after_change, job, func, *args)
        else:
            self._core.loop.call(func, *args)

    def _after_change(self, job: Job, func: Callable[..., object], *args: object) -> None:
        self.renewals.settle(job)
        func(*args)

    def begin(self, most: int, begin: Callable[[EarlyJob], None]) -> bool:
        """Call `begin` for up to `most` waiting jobs, now that the store has been read. False: there are no more."""
        with self._lock:
            for id in list(islice(self._by_id, most)):
                begin(self._by_id.pop(id))
            if self._by_id:
                return True
            self.is_waiting = False
            asked, self._asked = self._asked, []
        for ask in asked:
            ask()
        return False
