"""TaskPool: a task group with room for so many at a time.

A task, a cancel scope and a semaphore per piece of work cost 200 us in a burst. Here work that waits is an entry in
a queue (see _limits.py), and what runs it is one of a few long-lived *workers*. A worker drives the coroutine of
each piece of work by hand (`_drive`), inside a context of its own, so that

- work that never has to wait costs no task and no switch: one worker runs thousands of them in a row;
- as soon as one does wait, its worker waits with it and another takes over the queue (`_hand_over`);
- context variables that it sets are gone when it ends, although the worker lives on;
- what ignores its cancellation can be closed by force, because nobody else holds the coroutine (`Work.kill`).

Each worker has one cancel scope. Cancelling work cancels its worker's scope; that worker ends and is replaced when
needed.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from contextvars import Context, copy_context
from logging import getLogger
from types import TracebackType, coroutine
from typing import Any, Final, Self

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import cancel_shielded_checkpoint
from attrs import define, frozen

from ._clock import Clock, SystemClock
from ._lifecycle import Lifecycle
from ._limits import Limits, LimitStatistics, Needs, needs_of
from ._wake import Wake, cancelling, make_wake

logger = getLogger(__name__)

SLICE: Final = 0.005
"""Seconds for which one worker may run work after work before others on the event loop have their turn."""

SPARE_WORKERS: Final = 1_000
"""Workers kept waiting for work. More than that end when they have none."""

FORCE: Final = 10
"""How often killed work is told to end before its coroutine is let go as it stands."""

CALLED_AT_ONCE: Final = 8
"""Workers called when one has to wait: probably what is behind it in the queue will wait too."""

AGEING: Final = 10.0
"""Seconds of waiting that weigh as much as one step of priority."""


class Work:
    """One piece of work: what runs, what it needs, how it ranks. Subclass it to be told how it went.

    `due` (monotonic seconds) and `priority` give its place among what waits: a step of priority outweighs AGEING
    seconds.
    """

    __slots__ = ("context", "due", "is_waiting", "needs", "priority", "worker")

    def __init__(
        self, needs: Needs = (), priority: float = 0, due: float = 0.0, context: Context | None = None
    ) -> None:
        self.needs = needs
        self.priority = priority
        self.due = due
        self.context = context
        self.is_waiting = False
        self.worker: _Worker | None = None

    def open(self) -> Coroutine[Any, Any, Any] | None:
        """Begin, in the work's own context. Answer the coroutine to drive, or None if all has been done already."""
        raise NotImplementedError

    def close(self, value: Any, error: BaseException | None) -> None:
        """The end, in the worker: what the coroutine returned, or what it or `open` raised. Must not raise."""

    def drop(self) -> None:
        """Cancelled before it began: neither `open` nor `close` is called."""


@define(eq=False)
class _Worker:
    """One task of the group."""

    scope: anyio.CancelScope
    cancelling: Callable[[], int]
    deadline: float
    wake: Wake | None = None
    is_cancelled: bool = False
    is_killed: bool = False


class _Call(Work):
    """What `start_soon` starts."""

    __slots__ = ("args", "func")

    def __init__(
        self, func: Callable[..., Awaitable[Any]], args: tuple[Any, ...], needs: Needs, priority: float, due: float
    ) -> None:
        super().__init__(needs, priority, due, copy_context())
        self.func = func
        self.args = args

    def open(self) -> Coroutine[Any, Any, Any]:
        return _as_coroutine(self.func(*self.args))

    def close(self, value: Any, error: BaseException | None) -> None:  # noqa: ARG002 - what it returns is nobody's
        if error is not None and not is_cancellation(error):
            logger.error("a task of the pool raised; the others go on: %r", self.func, exc_info=error)


@frozen
class PoolStatistics:
    """A moment of a pool. `capacity` is math.inf when there is no limit."""

    capacity: float
    active: int
    waiting: int
    workers: int
    limits: Mapping[str, LimitStatistics]


class TaskPool:
    """At most `capacity` pieces of work at a time, and at most so many of each named limit that they need.

    `limits` maps names to units; a name like "server:*" gives every name that begins with "server:" a limit of its own,
    made when first needed. Use it as an async context manager: leaving it waits for everything that was started.
    Only for the thread of its event loop. (A TimerQueue in front of it takes calls from any thread.)
    """

    def __init__(
        self, capacity: float = 100, limits: Mapping[str, float] | None = None, *, clock: Clock | None = None
    ) -> None:
        self.check_sizes(capacity, limits)
        self._clock: Clock = SystemClock() if clock is None else clock
        self._limits: Limits[Work] = Limits(capacity, limits or {})
        self._lifecycle = Lifecycle("TaskPool")
        self._sequence = itertools.count()
        self._ready: deque[Work] = deque()
        self._awake = 0  # workers that will look at `_ready` without being told
        self._is_yielding = False
        self._workers = 0
        self._parked: list[_Worker] = []
        self._context = Context()
        self._group: TaskGroup | None = None
        self._emptied: anyio.Event | None = None
        self.current: Work | None = None
        """The work whose code runs at this very moment. For a watchdog in another thread."""
        self.steps = 0
        """How often work has been taken up, so that a watchdog can tell one long step from many short ones."""

    async def __aenter__(self) -> Self:
        self._lifecycle.start()
        self._context = copy_context()
        self._group = await anyio.create_task_group().__aenter__()
        self._call_worker()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        assert self._group is not None
        try:
            if exc is None:
                await self.drained()
        finally:
            self._lifecycle.stop()
            self._drop_waiting()
            self._group.cancel_scope.cancel()
            suppressed = await self._group.__aexit__(exc_type, exc, traceback)
        return suppressed

    @property
    def active(self) -> int:
        """Pieces of work that hold a unit: running, or about to."""
        return self._limits.used

    @property
    def waiting(self) -> int:
        """Pieces of work that wait for room."""
        return self._limits.waiting

    def start_soon(
        self,
        func: Callable[..., Awaitable[Any]],
        *args: Any,
        priority: float = 0,
        needs: str | Iterable[str] | Mapping[str, int] = (),
    ) -> Work:
        """Run `await func(*args)` as soon as there is room for it and for all that it needs. Never blocks.

        What it raises is logged and ends it alone. Raises UnknownLimit or ValueError for needs that can never be met,
        LifecycleError after the end. The answer can be given to `cancel`.
        """
        work = _Call(func, args, needs_of(needs), priority, self._clock.monotonic())
        self._limits.check(work.needs)
        self.submit(work)
        return work

    def submit(self, *works: Work) -> None:
        """Run Work of your own, whose needs have been checked, as `start_soon` does."""
        self._lifecycle.refuse_if_stopped("start anything")
        limits, ready = self._limits, self._ready
        for work in works:
            work.is_waiting = True
            if not work.needs and limits.used < limits.capacity and not limits.waiting:
                limits.used += 1
                ready.append(work)
            elif limits.take(work):
                ready.append(work)
            else:
                limits.wait(work, (work.due - AGEING * work.priority, next(self._sequence)))
                ready.extend(limits.admit())
        if not self._awake and ready:
            self._call_worker()

    def cancel(self, work: Work) -> None:
        """Cancel it: what waits is dropped, what runs is cancelled where it stands. Twice is harmless."""
        if work.worker is not None:
            work.worker.is_cancelled = True
            work.worker.scope.cancel()
        elif work.is_waiting:
            work.is_waiting = False
            if work in self._ready:
                self._ready.remove(work)
                self._limits.give_back(work)
            else:
                self._limits.forget(work)
            work.drop()
            self._fill()

    def kill(self, work: Work) -> None:
        """Give up on running work that ignored its cancellation: its units are free now, and its coroutine is
        closed by force when it next lets go of the loop. Nothing that it does afterwards is waited for.
        """
        worker = work.worker
        if worker is None:
            self.cancel(work)
            return
        if worker.is_killed:
            return
        worker.is_cancelled = worker.is_killed = True
        worker.scope.cancel()
        self._release(work)
        if not self._awake and self._ready:
            self._call_worker()

    def check(self, needs: Needs) -> None:
        """Raise UnknownLimit or ValueError for needs that could never be met here."""
        self._limits.check(needs)

    def resize(self, capacity: float | None = None, limits: Mapping[str, float] | None = None) -> None:
        """Change the capacity, limits, or both, and add new limits. What runs goes on: a smaller limit drains."""
        self.check_sizes(capacity, limits)
        self._limits.resize(capacity, limits or {})
        self._fill()

    @staticmethod
    def check_sizes(capacity: float | None = None, limits: Mapping[str, float] | None = None) -> None:
        """Raise ValueError for a size that is neither a whole number from 1 nor math.inf."""
        for name, size in {**({} if capacity is None else {"capacity": capacity}), **(limits or {})}.items():
            _check_size(name, size)

    async def drained(self) -> None:
        """Return when nothing runs and nothing waits."""
        while self._limits.used or self._limits.waiting:
            if self._emptied is None or self._emptied.is_set():
                self._emptied = anyio.Event()
            await self._emptied.wait()

    def statistics(self) -> PoolStatistics:
        limits = self._limits
        return PoolStatistics(limits.capacity, limits.used, limits.waiting, self._workers, limits.statistics())

    def _drop_waiting(self) -> None:
        """Nothing more begins: tell those that waited."""
        ready, waiting = list(self._ready), self._limits.clear()
        self._ready.clear()
        for work in ready:
            self._limits.give_back(work)
        for work in [*ready, *waiting]:
            work.is_waiting = False
            work.drop()

    def _release(self, work: Work) -> None:
        limits = self._limits
        if work.needs:
            limits.give_back(work)
        else:
            limits.used -= 1
            if limits.plain and not limits.open_lines and limits.used < limits.capacity:
                following = limits.next_plain()
                if following is not None:
                    self._ready.append(following)
                    return  # the worker that released takes it next
        if limits.waiting:
            self._fill()
        elif not limits.used and self._emptied is not None:
            self._emptied.set()

    def _fill(self) -> None:
        self._ready.extend(self._limits.admit())
        if not self._awake and self._ready:
            self._call_worker()
        if not self._limits.used and not self._limits.waiting and self._emptied is not None:
            self._emptied.set()

    def _call_worker(self) -> None:
        if self._group is None:
            return
        self._awake += 1
        if self._parked:
            worker = self._parked.pop()
            assert worker.wake is not None
            worker.wake.set()
        else:
            self._workers += 1
            self._group.start_soon(self._work, name="timerqueue worker")

    async def _work(self) -> None:
        worker: _Worker | None = None
        try:
            with anyio.CancelScope() as scope:
                worker = _Worker(scope, cancelling(), anyio.current_effective_deadline())
                while not worker.is_cancelled:
                    if self._ready and not self._is_yielding:
                        await self._run_slice(worker)
                    elif not await self._park(worker):
                        break
        except anyio.get_cancelled_exc_class() as exc:
            if is_cancellation(exc):
                raise
            logger.warning("work has cancelled the task that it ran in; another takes its place")
        except RuntimeError:
            # Work has left a cancel scope open, or was killed inside one. That is for it to mend, not for all the others.  # noqa: E501
            logger.exception("work has left its worker in disorder; another takes its place")
        finally:
            self._workers -= 1
            self._awake -= 1
            if self._ready and not self._awake:
                self._call_worker()

    async def _park(self, worker: _Worker) -> bool:
        """Wait for work. False: there are enough spare workers."""
        if len(self._parked) >= SPARE_WORKERS:
            return False
        if worker.wake is None:
            worker.wake = make_wake()
        self._awake -= 1
        self._parked.append(worker)
        try:
            await worker.wake.wait(None)
        except BaseException:
            if worker in self._parked:
                self._parked.remove(worker)
                self._awake += 1
            raise
        return True

    async def _run_slice(self, worker: _Worker) -> None:
        """Run what is ready, for a slice of time.

        The busiest loop of all: what it does per piece of work is written out.
        """
        ready, monotonic = self._ready, self._clock.monotonic
        until = monotonic() + SLICE
        while ready and not worker.is_cancelled:
            work = ready.popleft()
            work.is_waiting = False
            work.worker = worker
            context = work.context = (self._context if work.context is None else work.context).copy()
            self.current = work
            self.steps += 1
            value: Any = None
            error: BaseException | None = None
            running: Coroutine[Any, Any, Any] | None = None
            try:
                running = context.run(work.open)
                if running is not None:
                    yielded = context.run(running.send, None)
                    value = await self._drive(running, yielded, context, worker)
                    until = monotonic() + SLICE  # while it waited the others had their turn
                    if anyio.current_effective_deadline() != worker.deadline:  # it has left a cancel scope open
                        worker.is_cancelled = True
            except StopIteration as stop:  # it has ended without ever waiting
                value, error = (None, stop) if running is None else (stop.value, None)
            except BaseException as exc:  # noqa: BLE001 - whatever it was, it is this work's outcome and is handed to it
                error = exc
            self.current = None
            work.worker = None
            self._end(work, worker, value, error)
            if error is not None or worker.cancelling():
                await self._let_out(worker, error)
            # An exception holds this frame by its traceback: what this frame holds must let go of it.
            del work, context, value, error, running
            if self._is_yielding:
                return
            if monotonic() >= until:
                await self._yield()
                return

    @coroutine
    def _drive(
        self, running: Coroutine[Any, Any, Any], yielded: Any, context: Context, worker: _Worker
    ) -> Generator[Any, Any, Any]:
        """Await the rest of `running`, which has just yielded, inside `context`.

        The queue is let go of while it waits.
        """
        work, attempts = self.current, 0
        while True:
            self.current = None
            self._hand_over()
            step: Callable[[Any], Any] = running.send
            sent: Any
            try:
                sent = yield yielded
            except BaseException as exc:  # noqa: BLE001 - passed on into the work
                sent, step = exc, running.throw
            self._awake += 1
            self.current = work
            self.steps += 1
            if worker.is_killed and (not attempts or step == running.throw):
                attempts += 1
                if attempts > FORCE:
                    logger.error("work that ignores every way of ending it is let go: %r", running)
                    _keep_for_ever(running)
                    return None
                sent, step = GeneratorExit("killed"), running.throw
            try:
                yielded = context.run(step, sent)
            except StopIteration as stop:
                return stop.value
            finally:
                del sent, step  # an exception holds this frame by its traceback, and must not be held by it

    def _end(self, work: Work, worker: _Worker, value: Any, error: BaseException | None) -> None:
        """Tell the work how it went, and take its units back whatever it says to that."""
        try:
            work.close(value, error)
        except Exception:
            logger.exception("work raised when it was told of its end")
        finally:
            work.context = None  # it may hold the work itself, and garbage in a circle waits for the collector
            if not worker.is_killed:
                self._release(work)

    async def _let_out(self, worker: _Worker, error: BaseException | None) -> None:
        """End the worker if it is being cancelled, and pass on what is not the work's own."""
        if worker.cancelling():
            await self._absorb_cancellation(worker)
        if error is not None and (isinstance(error, KeyboardInterrupt) or is_cancellation(error)):
            raise error

    def _hand_over(self) -> None:
        """This worker is about to wait: somebody else must look after the queue."""
        self._awake -= 1
        if self._ready and not self._awake:
            for _ in range(min(len(self._ready), CALLED_AT_ONCE)):
                self._call_worker()

    async def _yield(self) -> None:
        """Let the others on the event loop have their turn, workers that come back from waiting excepted.

        They would each take a slice of their own before anybody else is heard: they rest, and this worker goes on
        for them.
        """
        self._is_yielding = True
        try:
            await cancel_shielded_checkpoint()
        finally:
            self._is_yielding = False

    async def _absorb_cancellation(self, worker: _Worker) -> None:
        """Let the worker's task, which is being cancelled by us or by the work (asyncio), end before the next work."""
        worker.is_cancelled = True
        await cancel_shielded_checkpoint()


def _as_coroutine(awaitable: Awaitable[Any]) -> Coroutine[Any, Any, Any]:
    if isinstance(awaitable, Coroutine):
        return awaitable
    return _await(awaitable)


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def is_cancellation(error: BaseException) -> bool:
    """Whether the calling task is really being cancelled, and `error` is how it was told.

    Work may raise such an exception without that (asyncio: by awaiting something that was cancelled): then it has
    simply failed.
    """
    return isinstance(error, anyio.get_cancelled_exc_class()) and anyio.current_effective_deadline() == -math.inf


def _keep_for_ever(running: Coroutine[Any, Any, Any]) -> None:
    """Never let it be finalized, not even at the end of the process.

    Python would close it then, and what answers every exception with another try would do so for ever.
    """
    import ctypes  # noqa: PLC0415 - almost never needed

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(running))


def _check_size(name: str, size: float) -> None:
    if (
        isinstance(size, bool)
        or not isinstance(size, (int, float))
        or not size >= 1
        or (size != math.inf and size != int(size))
    ):
        msg = f"{name} must be a whole number from 1, or math.inf for no limit, not {size!r}"
        raise ValueError(msg)
