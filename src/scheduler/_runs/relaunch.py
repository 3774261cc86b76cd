"""Relaunches of work that could not begin for want of a thread or memory. That counts as no run and no failure.

The work keeps its position, due instant and attempt. The time between tries grows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from logging import getLogger
from typing import Final

from timerqueue import Alarm, LifecycleError, TimerQueue, Work

from .._jobs import JobAttempt
from .._plan import instant_of
from .._values import Backoff, Listeners, RunNotLaunched

logger = getLogger(__name__)

RETRY: Final = Backoff(1.0, 60.0)


class Relaunch(Alarm):
    __slots__ = ("again", "context", "count", "error", "is_pending", "run", "work")

    def __init__(self, run: JobAttempt, work: Work, again: Callable[[Work], None]) -> None:
        super().__init__()
        self.run = run
        self.work = work
        self.again = again
        self.context: Context | None = None
        self.count = 0
        self.error = ""
        self.is_pending = False
        """The work waits here for its next try, and is not in the pool."""

    def fire(self) -> None:
        if self.is_pending:
            self.is_pending = False
            self.work.context = self.context
            if self.work is self.run:
                self.run.ask_as_job()
            self.again(self.work)


class Relaunches:
    def __init__(self, queue: TimerQueue, submit: Callable[[Work], None], listeners: Listeners) -> None:
        self._queue = queue
        self._submit = submit
        self._listeners = listeners
        self.waiting: dict[Work, Relaunch] = {}

    def failed(self, run: JobAttempt, work: Work, error: BaseException) -> None:
        """Try the work again later. Only the first failure is logged."""
        relaunch = self.waiting.get(work)
        if relaunch is None:
            relaunch = self.waiting[work] = Relaunch(run, work, self._submit)
            logger.warning("a run of job %r cannot be launched and is tried again until it can: %s", run.job.id, error)
        relaunch.count += 1
        relaunch.error = str(error)
        relaunch.context = work.context
        relaunch.is_pending = True
        with suppress(LifecycleError):  # the queue has stopped: the run is about to be cancelled
            self._queue.arm(relaunch, self._queue.clock.monotonic() + RETRY.after(relaunch.count))

    def withdraw(self, work: Work) -> bool:
        """Stop trying. False: the work was not waiting for a try."""
        relaunch = self.waiting.get(work)
        if relaunch is None or not relaunch.is_pending:
            return False
        relaunch.is_pending = False
        self._queue.disarm(relaunch)
        return True

    def run_ended(self, run: JobAttempt) -> None:
        for work, relaunch in list(self.waiting.items()):
            if relaunch.run is run:
                self.withdraw(work)
                del self.waiting[work]
                due = instant_of(run.due_us)
                self._listeners.tell(RunNotLaunched(run.job.id, due, relaunch.error, relaunch.count))
