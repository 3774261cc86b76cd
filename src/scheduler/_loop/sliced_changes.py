"""Changes of many jobs in one call of another thread: a few at a time. The loop has other work.

A verb of a job that waits for its change comes after that change.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import Final

from timerqueue import LifecycleError

from .._jobs import Job
from .._plan import AT_ONCE
from .long_work import LongWork
from .loop import Loop

MAX_JOBS: Final = 100
"""Jobs of a piece, however little time they take."""

Call = Callable[[], object]


class SlicedChanges:
    """The jobs of one scheduler that are about to change. On the loop, but for `put` and `begin`."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._waiting: dict[Job, list[Call]] = {}
        self._then: list[Call] = []
        """Calls that wait until no job is about to change."""
        self._is_going = False

    def __bool__(self) -> bool:
        """Whether any job waits."""
        return bool(self._waiting)

    def put(self, job: Job, change: Call) -> None:
        """Let the job change after `begin`. Any thread, with the lock of the list of jobs held."""
        self._waiting.setdefault(job, []).append(change)

    def begin(self) -> None:
        """Change the jobs that wait, from the next turn of the loop on. Any thread."""
        if self._waiting:
            self._loop.call(self._begin)

    def settle(self, job: Job) -> None:
        """Change the job now, if it waits."""
        for change in self._waiting.pop(job, ()):
            change()

    def settle_all(self) -> None:
        """Change all jobs that wait now: the scheduler stops."""
        for job in list(self._waiting):
            self.settle(job)
        self._end()

    def call_after(self, call: Call) -> None:
        """Call it once no job waits any more."""
        if self._waiting:
            self._then.append(call)
        else:
            call()

    def _begin(self) -> None:
        if not self._is_going:
            self._is_going = True
            self._go_on()

    def _go_on(self) -> None:
        """Change some of the jobs, and give way for as long as that took."""
        queue = self._loop.queue
        work = LongWork(queue.clock)
        for job in list(islice(self._waiting, MAX_JOBS)):  # in one step: another thread may put some more
            if work.is_long():
                break
            self.settle(job)
        if not self._waiting:
            self._is_going = False
            self._end()
            return
        rest = work.rest()
        with suppress(LifecycleError):  # the queue has stopped, and `settle_all` sees to the rest
            queue.push(self._loop.monotonic() + rest if rest > 0 else AT_ONCE, self._go_on)

    def _end(self) -> None:
        then, self._then = self._then, []
        for call in then:
            call()
