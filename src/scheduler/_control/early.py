"""Jobs that are added before it is known what the store holds, and what their handles are asked for until then.

Such a job is in the list at once, and begins when the store has been read: it may stand there already, and then the
answer is in how it was added (`on_conflict`).
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
    """A stored job that was added before it was known what the store holds, and how it would start."""

    job: Job
    first: FirstStart
    on_conflict: OnConflict
    start: Start
    is_late: bool = False
    """The scheduler ran already when it was added: a mistake of who added it is not to end that."""


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
        """The early job of that id; None: there is none."""
        return self._by_id.get(id)

    def holds(self, job: Job) -> bool:
        """Whether this very job waits."""
        early = self._by_id.get(job.id)
        return early is not None and early.job is job

    def discard(self, job: Job) -> None:
        """Take the job out, if it waits."""
        with self._lock:
            if self.holds(job):
                del self._by_id[job.id]

    def ask(self, job: Job, func: Callable[..., object], *args: object) -> None:
        """Call `func` on the loop: for a job that waits when it has begun, and for one that changes after that."""
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
        """Call `begin` for some of those that wait, now that the store has been read. False: there are no more."""
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
