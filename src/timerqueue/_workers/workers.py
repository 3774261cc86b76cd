"""The workers of a pool run what is ready.

A task costs more than most work does, a cancel scope far more. So a worker drives trusted work (_habits.py) by hand for
a slice of time, each in its own context. Other work gets its own task (_worker.py, _tasks.py).

Only workers hold the coroutines, so they can end by force work that ignores its cancellation. What work leaves at a
serving task is gone after a slice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from logging import getLogger
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from .habits import Habits
from .tasks import LoopTasks, Traces, tasks_of
from .work import HELD, Bundle, Detached, Host, Runner, Work
from .worker import Worker, never

logger = getLogger(__name__)

CALLED_AT_ONCE: Final = 8
"""Workers called together where each can begin only one work that waits."""

SLICE: Final = 0.005
"""Seconds for which a worker runs before other tasks have their turn."""


class Workers(Host):
    """`release` takes back the units of ended work. `submit_rest` gets a bundle whose unit went to a piece of it."""

    def __init__(
        self, monotonic: Callable[[], float], release: Callable[[Work], None], submit_rest: Callable[[Bundle], None]
    ) -> None:
        self.monotonic = monotonic
        self._release = release
        self._submit_rest = submit_rest
        self.begins: Callable[[Work], None] | None = None
        self.habits = Habits()
        self.context = Context()
        self._tasks: LoopTasks | None = None
        self._workers: set[Worker] = set()
        self._awake = 0
        self.ready: deque[Work] = deque()
        self.held: set[Work] = set()
        self.current = None
        self._serving: Worker | None = None
        """The worker that runs a bundle. The bundle's pieces do not know it."""
        self._ending: Worker | None = None
        self.steps = 0
        self.is_cut_off = False
        """Everything is being cancelled from outside."""
        self._has_changed = anyio.Event()

    @property
    def size(self) -> int:
        return len(self._workers)

    def begin(self, group: TaskGroup) -> None:
        self._tasks = tasks_of(group)
        self.context = copy_context()
        group.start_soon(self._watch, name="timerqueue workers")
        self.call_if_needed()

    async def _watch(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.is_cut_off = True
            for worker in tuple(self._workers):
                self.cancel(worker)
            with anyio.CancelScope(shield=True):
                while self._workers:
                    self._has_changed = anyio.Event()
                    await self._has_changed.wait()

    def worker_of(self, work: Work) -> Runner | None:
        return self._serving if work.worker is None and work is self.current else work.worker

    def call_if_needed(self) -> None:
        if not self._awake and self.ready and self._tasks is not None and not self.is_cut_off:
            for _ in range(1 if self._tasks.begins_elsewhere else min(self._pieces(), CALLED_AT_ONCE)):
                self._awake += 1
                worker = Worker(self)
                self._workers.add(worker)
                self._tasks.serve(worker, self.context.copy())

    def _pieces(self) -> int:
        first = self.ready[0]
        return len(self.ready) + (len(first) if isinstance(first, Bundle) else 0)

    def cancel(self, worker: Worker) -> None:
        if not worker.is_cancelled:
            worker.is_cancelled = True
            self.deliver(worker)

    def kill(self, worker: Worker) -> None:
        assert self._tasks is not None
        worker.is_cancelled = worker.is_killed = True
        self._workers.discard(worker)
        self._tasks.kill(worker)

    def deliver(self, worker: Worker) -> None:
        assert self._tasks is not None
        self._tasks.cancel(worker)

    def is_cancellation(self, error: BaseException) -> bool:
        """Whether `error` is the cancellation of the work being closed.

        Uncancelled work that raises it (asyncio: by awaiting a cancelled future) has failed.
        """
        return self._is_cancelled(error) and (
            self.is_cut_off or (self._ending is not None and self._ending.is_cancelled)
        )

    # -- what workers ask for ------------------------------------------------------------------------------------------

    def serve(self, worker: Worker) -> Any:
        assert self._tasks is not None
        tasks, ready, monotonic = self._tasks, self.ready, self.monotonic
        cancelling = worker.cancelling = tasks.adopt(worker)
        self.habits.are_trusted = not tasks.are_made_elsewhere()
        now = monotonic()  # read once for each work: where one ends the next begins
        until = now + SLICE
        try:
            while ready and now < until and not worker.is_cancelled and not cancelling():
                if not (tasks.begins_elsewhere or worker.is_fresh or self.habits.of(ready[0].func).is_quiet):
                    break  # it may wait, and needs a task that no other work has used
                work = ready.popleft()
                if isinstance(work, Bundle):
                    detached = self._run_bundle(work, worker, until)
                else:
                    detached = self._run(work, worker, now)
                now = monotonic()
                if detached is not None:
                    if detached.is_waiting:
                        return self._keep(worker, detached)
                    self._tell(worker, detached.work, detached.value, detached.error, now)
                    self._pass_on(detached.error)
                del work, detached
                if worker.ahead is not None:  # it has begun work of its own
                    break
            return None
        finally:
            self.current = self._serving = None
            self._awake -= 1
            worker.cancelling = never  # it holds the task, as the next line does, and the task holds the worker
            if worker.running is None:
                worker.task = None
                self._leave(worker)
            self.call_if_needed()

    def settle(self, worker: Worker) -> None:
        assert self._tasks is not None
        assert worker.work is not None
        self._tasks.settle(worker, worker.work.name)

    @property
    def begins_elsewhere(self) -> bool:
        return self._tasks is None or self._tasks.begins_elsewhere

    def adopted(self, worker: Worker) -> Traces:
        assert self._tasks is not None
        self._tasks.adopt(worker)
        return self._tasks.traces(worker)

    def left_alone(self, worker: Worker, before: Traces) -> bool:
        assert self._tasks is not None
        return self._tasks.traces(worker) == before and not self._tasks.has_callbacks(worker)

    def ended(self, worker: Worker, work: Work, value: Any, error: BaseException | None) -> bool:
        tasks = self._tasks
        assert tasks is not None
        tasks.tidy(worker)
        # Not in the work's own context: what begins or is armed here does not belong to the work.
        self.context.copy().run(self._tell, worker, work, value, error, self.monotonic())
        self._leave(worker)
        self.call_if_needed()
        ends_with_it = error is not None and tasks.may_end_with(worker, error)
        worker.task = None  # the task holds the error, whose traceback holds the worker
        return ends_with_it

    def gone(self, worker: Worker) -> None:
        self._awake -= 1
        self._leave(worker)
        self.call_if_needed()

    # -- their steps ---------------------------------------------------------------------------------------------------

    def _run(self, work: Work, worker: Worker, now: float) -> Detached | None:
        work.is_waiting = False
        work.worker = worker
        self.current = work
        context = work.context = (self.context if work.context is None else work.context).copy()
        running: Any = None
        value: Any = None
        try:
            running = context.run(work.open, now)
            if running is HELD:
                work.worker = self.current = None
                self.held.add(work)
                return None
            if running is not None:
                if work.needs and self.begins is not None:
                    self.begins(work)
                if not self.habits.of(work.func).is_quiet:
                    self._begin(worker, work, context, running)
                    return None
                worker.is_fresh = False
                yielded = context.run(running.send, None)
                return Detached(work, context, running, is_waiting=True, yielded=yielded)
        except StopIteration as stop:
            if running is None:
                return Detached(work, context, error=stop)
            value = stop.value
        except BaseException as exc:  # noqa: BLE001 - whatever it was, it is this work's outcome
            try:
                return Detached(work, context, running, error=exc)
            finally:  # the exception holds this frame by its traceback; the frame must not hold these in turn
                del work, context, running
        self._tell(worker, work, value, None, self.monotonic())
        return None

    def _run_bundle(self, bundle: Bundle, worker: Worker, until: float) -> Detached | None:
        bundle.is_waiting = False
        self._serving = worker
        detached = bundle.run_on(self, worker, until)
        try:
            if detached is None:
                self._release(bundle)
            if len(bundle) and not bundle.steps_back:  # others may rank before it now
                self._submit_rest(bundle)
            if detached is not None and detached.is_new:
                assert detached.running is not None
                self._begin(worker, detached.work, detached.context, detached.running)
            worker.is_fresh = False
            if bundle.steps_back and len(bundle):
                self._submit_rest(bundle)
            return None if detached is not None and detached.is_new else detached
        finally:  # an exception in `detached` may hold this frame; the frame must not hold these in turn
            del detached, bundle

    def _begin(self, worker: Worker, work: Work, context: Context, running: Coroutine[Any, Any, Any]) -> None:
        assert self._tasks is not None
        self.current = None
        habit = self.habits.of(work.func)
        try:
            if self._tasks.begins_elsewhere:
                is_cancelled, worker = worker.is_cancelled, Worker(self, work, running, habit)
                worker.is_cancelled = worker.owes_cancel = is_cancelled  # as it was opened
                work.worker = worker
                self._workers.add(worker)
                self._tasks.begin(worker, context, work.name)
            else:
                work.worker = worker
                worker.keep(work, running, context)
                self._tasks.rename(worker, work.name)
                worker.habit = habit
                worker.advance()
        finally:  # as above
            del work, context, running, worker

    def _keep(self, worker: Worker, detached: Detached) -> Any:
        assert self._tasks is not None
        work = detached.work
        assert detached.running is not None
        self.habits.of(work.func).broke_it()
        worker.keep(work, detached.running, detached.context)
        self._tasks.settle(worker, work.name)
        if worker.owes_cancel:
            self.deliver(worker)
        return detached.yielded

    def _tell(self, worker: Worker, work: Work, value: Any, error: BaseException | None, now: float) -> None:
        work.worker = self.current = None
        if error is not None:
            self._ending = worker
            if self._is_cancelled(error) and self._tasks is not None and self._tasks.is_cut_off():
                self.is_cut_off |= not worker.is_cancelled
        try:
            work.close(value, error, now)
        except Exception:
            logger.exception("work raised when it was told of its end")
        finally:
            self._ending = None
            work.context = None  # the context may hold the work itself, and garbage in a circle waits for the collector
            if not worker.is_killed:
                self._release(work)

    def _leave(self, worker: Worker) -> None:
        self._workers.discard(worker)
        if self.is_cut_off and not self._workers:
            self._has_changed.set()

    def _pass_on(self, error: BaseException | None) -> None:
        if error is not None and (issubclass(type(error), KeyboardInterrupt) or self._is_cancelled(error)):
            raise error

    @staticmethod
    def _is_cancelled(error: BaseException | None) -> bool:
        return issubclass(type(error), anyio.get_cancelled_exc_class())  # whatever its `__class__` says
