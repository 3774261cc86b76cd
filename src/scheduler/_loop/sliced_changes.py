"""Changes of many jobs by one call, made a few jobs at a time."""

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

Call = Callable[[], object]


class SlicedChanges:
    """Changes that wait, by job. Another call for a job comes after its change (`settle`). On the loop, except `put`
    and `begin`.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._waiting: dict[Job, list[Call]] = {}
        self._then: list[Call] = []
        self._is_going = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, job: Job, change: Call) -> None:
        """Add a change that waits. Any thread, with the job list's lock held."""
        self._waiting.setdefault(job, []).append(change)

    def begin(self) -> None:
        """Make the changes, from the loop's next turn on. Any thread."""
        if self._waiting:
            self._loop.call(self._begin)

    def settle(self, job: Job) -> None:
        for change in self._waiting.pop(job, ()):
            change()

    def settle_all(self) -> None:
        for job in list(self._waiting):
            self.settle(job)
        self._end()

    def call_after(self, call: Call) -> None:
        if self._waiting:
            self._then.append(call)
        else:
            call()

    def _begin(self) -> None:
        if not self._is_going:
            self._is_going = True
            self._go_on()

    def _go_on(self) -> None:
        queue = self._loop.queue
        work = LongWork(queue.clock)
        for job in list(islice(self._waiting, MAX_JOBS)):  # a copy in one step: another thread may put more
            if work.is_long():
                break
            self.settle(job)
        if not self._waiting:
            self._is_going = False
            self._end()
            return
        rest = work.rest()
        with suppress(LifecycleError):  # the queue has stopped: `settle_all` makes the rest
            queue.push(self._loop.monotonic() + rest if rest > 0 else AT_ONCE, self._go_on)

    def _end(self) -> None:
        then, self._then = self._then, []
        for call in then:
            call()
