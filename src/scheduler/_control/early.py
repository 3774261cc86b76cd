"""Jobs added before the store has been read, and calls of their handles.

Such a job is listed at once, and begins when the store has been read. If the store has its id, `on_conflict` decides.
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
    job: Job
    first: FirstStart
    on_conflict: OnConflict
    start: Start
    is_late: bool = False
    """If the scheduler ran already, a mistake in the job must not end it."""


class Early:
    def __init__(self, core: Core, jobs: JobList, *, is_waiting: bool) -> None:
        self.is_waiting = is_waiting
        self._core = core
        self._lock = jobs.lock
        self._by_id: dict[str, EarlyJob] = {}
        self._asked: list[Callable[[], object]] = []
        self.renewals = SlicedChanges(core.loop)

    def __len__(self) -> int:
        return len(self._by_id)

    def put(self, early: EarlyJob) -> None:
        """The caller holds the lock of the job list."""
        self._by_id[early.job.id] = early

    def find(self, id: str) -> EarlyJob | None:
        return self._by_id.get(id)

    def holds(self, job: Job) -> bool:
        early = self._by_id.get(job.id)
        return early is not None and early.job is job

    def discard(self, job: Job) -> None:
        with self._lock:
            if self.holds(job):
                del self._by_id[job.id]

    def ask(self, job: Job, func: Callable[..., object], *args: object) -> None:
        """Call `func` on the loop, after the job's begin or its waiting change."""
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
        """Begin up to `most` jobs: the store has been read. False: no more wait."""
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
