"""The crew: long-lived workers that run what is ready.

A task and a cancel scope per piece of work cost far more than most work does. So a few workers, each a task with
one cancel scope, take work from a queue, and drive its coroutine by hand (`_drive`), inside a context of its own:

- work that never has to wait costs no task and no switch: one worker runs thousands of them in a row;
- as soon as one does wait, its worker waits with it and others take over the queue (`_hand_over`);
- context variables that it sets are gone when it ends, although the worker lives on;
- what ignores its cancellation can be ended by force, because nobody else holds the coroutine.

Cancelling work cancels its worker's scope; that worker ends and is replaced when needed. The same becomes of a
worker that work leaves in disorder: with a cancel scope left open, or with a task that is being cancelled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from logging import getLogger
from types import coroutine
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import cancel_shielded_checkpoint
from attrs import define

from ._wake import Wake, cancelling, close_scopes_within, make_wake, scope_watch
from ._work import HELD, Begun, Volley, Work, is_cancellation

logger = getLogger(__name__)

SLICE: Final = 0.005
"""Seconds for which one worker may run work after work before others on the event loop have their turn."""

SPARE_WORKERS: Final = 1_000
"""Workers kept waiting for work. More than that end when they have none."""

FORCE: Final = 10
"""How often killed work is told to end before its coroutine is let go as it stands."""

CALLED_AT_ONCE: Final = 8
"""Workers called when one has to wait: probably what is behind it in the queue will wait too."""


@define(eq=False)
class Worker:
    """One task of the crew."""

    scope: anyio.CancelScope
    cancelling: Callable[[], int]
    has_open_scopes: Callable[[], bool]
    wake: Wake | None = None
    is_cancelled: bool = False
    is_killed: bool = False


class Crew:
    """The workers of a pool.

    `release` is called with work that has ended, to take back what it held; `submit_rest` with a volley whose unit has
    gone to one of its pieces.
    """

    def __init__(
        self, monotonic: Callable[[], float], release: Callable[[Work], None], submit_rest: Callable[[Volley], None]
    ) -> None:
        self.monotonic = monotonic
        self._release = release
        self._submit_rest = submit_rest
        self.context = Context()
        """What work begins in a copy of, if it brings no context of its own."""
        self._group: TaskGroup | None = None
        self._parked: list[Worker] = []
        self._is_yielding = False
        self.ready: deque[Work] = deque()
        self.held: set[Work] = set()
        """What has room and may not begin yet."""
        self.awake = 0
        """Workers that will look at `ready` without being told."""
        self.size = 0
        self.current: Work | None = None
        """The work whose code runs at this very moment. For a watchdog in another thread."""
        self._busy: Worker | None = None
        """The worker that runs a volley, whose pieces do not know it."""
        self.steps = 0
        """How often work has gone on after a wait, so that a watchdog can tell one long step from many short ones."""

    def begin(self, group: TaskGroup) -> None:
        """Work in this task group, and by default in the caller's context."""
        self._group = group
        self.context = copy_context()
        self.call()

    def worker_of(self, work: Work) -> Worker | None:
        """Who runs it, if anybody does."""
        return self._busy if work.worker is None and work is self.current else work.worker

    def call_if_needed(self) -> None:
        """See to it that somebody looks at what is ready."""
        if not self.awake and self.ready:
            self.call()

    def call(self) -> None:
        """Call one more worker: one that waits for work, or a new one."""
        if self._group is None:
            return
        self.awake += 1
        if self._parked:
            worker = self._parked.pop()
            assert worker.wake is not None
            worker.wake.set()
        else:
            self.size += 1
            self._group.start_soon(self._serve, name="timerqueue worker")

    async def _serve(self) -> None:
        worker: Worker | None = None
        try:
            with anyio.CancelScope() as scope:
                worker = Worker(scope, cancelling(), scope_watch(scope))
                try:
                    while not worker.is_cancelled:
                        if self.ready and not self._is_yielding:
                            await self._run_slice(worker)
                        elif not await self._park(worker):
                            break
                finally:
                    close_scopes_within(scope)
        except anyio.get_cancelled_exc_class() as exc:
            if is_cancellation(exc):
                raise
            logger.warning("work has cancelled the task that it ran in; another takes its place")
        except RuntimeError:
            # Work has left a cancel scope open, or was killed inside one. All the others are not to suffer for it.
            logger.exception("work has left its worker in disorder; another takes its place")
        finally:
            self.size -= 1
            self.awake -= 1
            self.call_if_needed()

    async def _park(self, worker: Worker) -> bool:
        """Wait for work. False: there are enough spare workers."""
        if len(self._parked) >= SPARE_WORKERS:
            return False
        if worker.wake is None:
            worker.wake = make_wake()
        self.awake -= 1
        self._parked.append(worker)
        try:
            await worker.wake.wait(None)
        except BaseException:
            if worker in self._parked:
                self._parked.remove(worker)
                self.awake += 1
            raise
        return True

    async def _run_slice(self, worker: Worker) -> None:  # noqa: C901, PLR0912, PLR0915 - a call for each step would cost a tenth of a run
        """Run what is ready, for a slice of time.

        The busiest loop of all: what it does per piece of work is written out.
        """
        ready, monotonic, base = self.ready, self.monotonic, self.context
        now = monotonic()  # read once for a piece of work: where one ends the next begins
        until = now + SLICE
        while ready:
            work = ready.popleft()
            value: Any = None
            error: BaseException | None = None
            running: Any = None
            if isinstance(work, Volley):
                begun = self._run_volley(work, worker, until)
                now = monotonic()
                if begun is None:
                    if now < until:
                        continue
                    await self._yield()
                    return
                work, context, running, is_waiting, yielded, value, error = begun
                is_new = False
                del begun
            else:
                is_new = True
                work.is_waiting = False
                work.worker = worker
                context = work.context = (base if work.context is None else work.context).copy()
                self.current = work
            try:
                if is_new:
                    running = context.run(work.open, now)
                    is_waiting = running is not None and running is not HELD
                    if is_waiting:
                        yielded = context.run(running.send, None)
                if is_waiting:
                    value = await self._drive(running, yielded, context, worker)
                    until = monotonic() + SLICE  # while it waited the others had their turn
                    self._look_at_scopes(worker)
            except StopIteration as stop:  # it has ended without ever waiting
                if running is None:
                    error = stop
                else:
                    value = stop.value
            except BaseException as exc:  # noqa: BLE001 - whatever it was, it is this work's outcome and is handed to it
                error = exc
            now = monotonic()
            work.worker = self.current = None
            if running is HELD and error is None:
                self.held.add(work)
            else:
                try:
                    work.close(value, error, now)
                except Exception:
                    logger.exception("work raised when it was told of its end")
                finally:
                    work.context = None  # it may hold the work itself, and garbage in a circle waits for the collector
                    if not worker.is_killed:
                        self._release(work)
                if error is not None or worker.cancelling():
                    # An exception holds this frame by its traceback: what this frame holds must let go of it.
                    del work, context, value, running
                    await self._let_out(worker, error)
                    del error
            if self._is_yielding or worker.is_cancelled:
                break
            if now >= until:
                await self._yield()
                break

    def _look_at_scopes(self, worker: Worker) -> None:
        """Work that has waited may have left a cancel scope open in its worker's task."""
        if worker.has_open_scopes():
            logger.warning("work has left a cancel scope open: another worker takes over from its own")
            worker.is_cancelled = True

    def _run_volley(self, volley: Volley, worker: Worker, until: float) -> Begun | None:
        """Run what it has for this slice. What comes out of it keeps its unit; the rest asks for another."""
        volley.is_waiting = False
        self._busy = worker
        begun = volley.run_on(self, worker, until)
        try:
            if begun is None:
                self._release(volley)
            if len(volley):  # others may rank before it by now
                self._submit_rest(volley)
            return begun
        finally:  # an exception in `begun` may hold this frame, and is not to hold what this frame holds
            del begun, volley

    @coroutine
    def _drive(
        self, running: Coroutine[Any, Any, Any], yielded: Any, context: Context, worker: Worker
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
            self.awake += 1
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

    async def _let_out(self, worker: Worker, error: BaseException | None) -> None:
        """End the worker if it is being cancelled, and pass on what is not the work's own."""
        if worker.cancelling():
            await self._absorb_cancellation(worker)
        if error is not None and (issubclass(type(error), KeyboardInterrupt) or is_cancellation(error)):
            raise error

    def _hand_over(self) -> None:
        """This worker is about to wait: somebody else must look after the queue."""
        self.awake -= 1
        if self.ready and not self.awake:
            first = self.ready[0]
            count = len(self.ready) + (len(first) if isinstance(first, Volley) else 0)
            for _ in range(min(count, CALLED_AT_ONCE)):
                self.call()

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

    async def _absorb_cancellation(self, worker: Worker) -> None:
        """Let the worker's task, which is being cancelled by us or by the work (asyncio), end before the next work."""
        worker.is_cancelled = True
        await cancel_shielded_checkpoint()


def _keep_for_ever(running: Coroutine[Any, Any, Any]) -> None:
    """Never let it be finalized, not even at the end of the process.

    Python would close it then, and what answers every exception with another try would do so for ever.
    """
    import ctypes  # noqa: PLC0415 - almost never needed

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(running))
