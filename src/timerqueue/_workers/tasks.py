"""Tasks of the event loop: how they are made, cancelled and tidied.

On asyncio they are outside any group, each cancelled once as by `task.cancel()`; anyio's shields still hold. On trio
they are in the pool's nursery, each in its own cancel scope.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextvars import Context
from functools import partial
from logging import getLogger
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import getweakrefcount

import anyio
from anyio.abc import TaskGroup

from .worker import Worker

if TYPE_CHECKING:
    import trio

logger = getLogger(__name__)

SERVING: Final = "timerqueue worker"

_LEFT_OPEN: Final = "work has left a cancel scope open: it is closed"

Traces = tuple[int, int, str]
"""Shows whether work used its task: weak and strong reference counts, and name."""


class LoopTasks(Protocol):
    begins_elsewhere: bool
    """Whether a new task can begin while another runs. If not, waiting work begins first in the serving task."""

    def serve(self, worker: Worker, context: Context) -> None:
        """Step the worker soon."""

    def begin(self, worker: Worker, context: Context, name: str) -> None:
        """Step the worker now, in its own task."""

    def are_made_elsewhere(self) -> bool:
        """Whether a task factory must see every task made."""

    def adopt(self, worker: Worker) -> Callable[[], int]:
        """Give it the present task. Returns a function that counts its cancellations."""

    def traces(self, worker: Worker) -> Traces: ...

    def has_callbacks(self, worker: Worker) -> bool: ...

    def rename(self, worker: Worker, name: str) -> None: ...

    def settle(self, worker: Worker, name: str) -> None:
        """Give the task to its work, which waits, as far as still possible."""

    def cancel(self, worker: Worker) -> None:
        """Cancel once; if shielded, at the next wait outside the shield."""

    def kill(self, worker: Worker) -> None: ...

    def is_cut_off(self) -> bool:
        """Whether the present task is being cancelled from outside."""

    def tidy(self, worker: Worker) -> None: ...

    def may_end_with(self, worker: Worker, error: BaseException) -> bool:
        """Whether the task ends with this error too. The work knows it."""


def tasks_of(group: TaskGroup) -> LoopTasks:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return TrioTasks(group)
    return AsyncioTasks(loop)


class AsyncioTasks:
    begins_elsewhere = True

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        from anyio._backends._asyncio import _task_states  # noqa: PLC0415 - only where asyncio runs

        self._loop = loop
        self._scopes: Any = _task_states
        """anyio's innermost `cancel_scope` of each task: no public way shows them."""
        self._are_eager = sys.version_info >= (3, 12)
        self._eager_factory = getattr(asyncio, "eager_task_factory", None)
        self._made_elsewhere = False
        self._referrers = 1 if sys.version_info < (3, 14) else 0
        """Weak references to any task: asyncio's set of all tasks."""

    def serve(self, worker: Worker, context: Context) -> None:
        worker.task = asyncio.Task(worker, loop=self._loop, name=SERVING, context=context)

    def begin(self, worker: Worker, context: Context, name: str) -> None:
        loop = self._loop
        task: Any = None
        try:
            if self._made_elsewhere:
                task = loop.create_task(worker, name=name, context=context)
            elif self._are_eager:
                task = asyncio.Task(worker, loop=loop, name=name, context=context, eager_start=True)  # type: ignore[call-arg,unused-ignore]
            else:
                task = worker.task = asyncio.Task(worker, loop=loop, name=name, context=context)
                self._as(task, context, worker.advance)
            worker.task = None if worker.is_over else task
        finally:
            del worker, context, task  # an exception may hold this frame

    def _as(self, task: asyncio.Task[Any], context: Context | None, func: Callable[[], None]) -> None:
        """Call a function as this task, by calls documented for extensions of asyncio."""
        loop, present = self._loop, asyncio.current_task()
        if present is not None:
            asyncio.tasks._leave_task(loop, present)  # noqa: SLF001
        asyncio.tasks._enter_task(loop, task)  # noqa: SLF001
        try:
            if context is None:
                func()
            else:
                context.run(func)
        finally:
            asyncio.tasks._leave_task(loop, task)  # noqa: SLF001
            if present is not None:
                asyncio.tasks._enter_task(loop, present)  # noqa: SLF001
            del task, context, func, present  # an exception may hold this frame

    def are_made_elsewhere(self) -> bool:
        factory = self._loop.get_task_factory()
        self._made_elsewhere = factory is not None and factory is not self._eager_factory
        return self._made_elsewhere

    def adopt(self, worker: Worker) -> Callable[[], int]:
        task = worker.task = asyncio.current_task()
        assert task is not None
        return task.cancelling

    def traces(self, worker: Worker) -> Traces:
        task = worker.task
        return getweakrefcount(task), getrefcount(task), task.get_name()

    def has_callbacks(self, worker: Worker) -> bool:
        return worker.task._callbacks is not None  # noqa: SLF001 - there is no other way to see them

    def rename(self, worker: Worker, name: str) -> None:
        worker.task.set_name(name)

    settle = rename

    def cancel(self, worker: Worker) -> None:
        task = worker.task or asyncio.current_task()  # it is just being made, and its first step cancels itself
        assert task is not None
        worker.owes_cancel = self._is_shielded(task)
        if not worker.owes_cancel:
            task.cancel()

    def kill(self, worker: Worker) -> None:
        worker.task = worker.task or asyncio.current_task()
        worker.task.cancel()
        self._loop.call_soon(self._force, worker)

    def _force(self, worker: Worker) -> None:
        """Force a task that may not have woken: the object it awaits may ignore cancellations."""
        if not worker.is_over:
            context = None if worker.context is not None or worker.work is None else worker.work.context
            self._as(worker.task, context, worker.force)

    def is_cut_off(self) -> bool:
        return False  # only the workers' owner cancels these tasks

    def tidy(self, worker: Worker) -> None:
        task = worker.task or asyncio.current_task()
        if getweakrefcount(task) <= self._referrers:
            return
        state = self._scopes.get(task)
        if state is None or state.cancel_scope is None:
            return
        logger.warning(_LEFT_OPEN)
        while state.cancel_scope is not None:
            state.cancel_scope.__exit__(None, None, None)

    def may_end_with(self, worker: Worker, error: BaseException) -> bool:
        if issubclass(type(error), SystemExit):  # asyncio would end the loop
            return False
        task = worker.task or asyncio.current_task()
        if task is not None and not issubclass(type(error), asyncio.CancelledError):
            task.add_done_callback(_seen)
        return True

    def _is_shielded(self, task: asyncio.Task[Any]) -> bool:
        state = self._scopes.get(task)
        scope = None if state is None else state.cancel_scope
        while scope is not None:
            if scope.shield:
                return True
            scope = scope._parent_scope  # noqa: SLF001 - as above
        return False


class TrioTasks:
    """Tasks of the pool's nursery, one new at a time: trio steps new ones in random order."""

    begins_elsewhere = False

    def __init__(self, group: TaskGroup) -> None:
        self._group = group

    def serve(self, worker: Worker, context: Context) -> None:
        context.run(partial(self._group.start_soon, _in_a_scope, worker, name=SERVING))

    def begin(self, worker: Worker, context: Context, name: str) -> None:
        raise NotImplementedError

    def are_made_elsewhere(self) -> bool:
        return False

    def adopt(self, worker: Worker) -> Callable[[], int]:
        worker.task = _current_trio_task()
        return _never

    def traces(self, worker: Worker) -> Traces:
        task = worker.task
        return getweakrefcount(task), getrefcount(task), task.name

    def has_callbacks(self, worker: Worker) -> bool:  # noqa: ARG002 - trio has none
        return False

    def rename(self, worker: Worker, name: str) -> None:
        worker.task.name = name

    def settle(self, worker: Worker, name: str) -> None:
        worker.task.name, worker.task.context, worker.context = name, worker.context, None

    def cancel(self, worker: Worker) -> None:
        if worker.scope is not None:
            worker.scope.cancel()

    def kill(self, worker: Worker) -> None:
        self.cancel(worker)

    def is_cut_off(self) -> bool:
        return anyio.current_effective_deadline() == float("-inf")

    def tidy(self, worker: Worker) -> None:
        """Do nothing: trio closes scopes, `_close_nurseries` closes nurseries."""

    def may_end_with(self, worker: Worker, error: BaseException) -> bool:  # noqa: ARG002
        return issubclass(type(error), (KeyboardInterrupt, anyio.get_cancelled_exc_class()))


async def _in_a_scope(worker: Worker) -> None:
    worker.task = _current_trio_task()
    try:
        with anyio.CancelScope() as scope:
            worker.scope = scope
            if worker.is_cancelled:
                scope.cancel()
            try:
                await worker
            finally:
                worker.scope = None
                await _close_nurseries()
    except RuntimeError:
        # Work has left a cancel scope open, or was killed inside one. Other work must not suffer for it.
        logger.exception("work did not leave its task as it found it")


async def _close_nurseries() -> None:
    """End the nurseries that the present task left open: trio would end all other tasks."""
    for nursery in reversed(_current_trio_task().child_nurseries):
        logger.warning("work has left a task group open: what runs in it is cancelled")
        nursery.cancel_scope.cancel()
        await nursery._nested_child_finished(None)  # noqa: SLF001 - as the end of its `async with` does
        nursery.cancel_scope.__exit__(None, None, None)


def _current_trio_task() -> trio.lowlevel.Task:
    import trio  # noqa: PLC0415 - only where trio runs

    return trio.lowlevel.current_task()


def _seen(task: asyncio.Task[Any]) -> None:
    """Mark the error as seen, so that asyncio does not log it again."""
    task.exception()


def _never() -> int:
    return 0
