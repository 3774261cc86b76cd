from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import Context
from functools import partial
from inspect import iscoroutinefunction
from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple

from .._limits import Needs
from .habits import Habits


class Held:
    __slots__ = ()


HELD: Final = Held()
"""`Work.open` answers it if the work cannot begin yet. It keeps its room until `TaskPool.let_begin`."""


class Runner:
    """A worker, as its work sees it.

    `is_cancelled`: it must cancel its work and begin no other. `is_killed`: it must end its work by force.
    `cancelling()` counts cancellations of its task.
    """

    __slots__ = ("cancelling", "is_cancelled", "is_killed")

    cancelling: Callable[[], int]
    is_cancelled: bool
    is_killed: bool

    def cancel(self) -> None:
        """Cancel its work where it awaits. Repeating is harmless."""
        raise NotImplementedError

    def kill(self) -> None:
        raise NotImplementedError


class Work:
    """A piece of work. Subclass it to learn how it ended.

    `due` (monotonic seconds) and `priority` rank it: one step of priority outweighs AGEING seconds.
    """

    __slots__ = ("context", "due", "is_waiting", "needs", "priority", "worker")

    size = 1
    func: Callable[..., Any] | None = None
    """The function it calls, if known. If that never waits, it needs no task of its own."""

    @property
    def name(self) -> str:
        return type(self).__name__ if self.func is None else _name_of(self.func)

    def __init__(
        self, needs: Needs = (), priority: float = 0, due: float = 0.0, context: Context | None = None
    ) -> None:
        self.needs = needs
        self.priority = priority
        self.due = due
        self.context = context
        self.is_waiting = False
        self.worker: Runner | None = None

    def open(self, now: float) -> Coroutine[Any, Any, Any] | Held | None:
        """Begin at `now` (monotonic seconds), in the work's own context.

        Return the coroutine to drive, None if all is done, or HELD to be opened again.
        """
        raise NotImplementedError

    def close(self, value: Any, error: BaseException | None, now: float) -> None:
        """Note the coroutine's result, or the error from it or `open`. Must not raise."""

    def drop(self) -> None:
        """Cancelled before it began: `open` and `close` are not called."""


class Host:
    monotonic: Callable[[], float]
    context: Context
    """Work that has no context begins in a copy of this one."""
    habits: Habits
    current: Work | None
    """The work whose code runs now. For a watchdog in another thread."""
    steps: int
    """Steps taken by work: tells a watchdog one long step from many short ones."""

    @property
    def begins_elsewhere(self) -> bool:
        raise NotImplementedError


class Detached(NamedTuple):
    """A piece that left its bundle, because it waits or its end needs attention.

    `is_new`: it needs its own task. `is_waiting`: it has yielded `yielded`. Otherwise it has ended.
    """

    work: Work
    context: Context
    running: Coroutine[Any, Any, Any] | None = None
    is_new: bool = False
    is_waiting: bool = False
    yielded: Any = None
    value: Any = None
    error: BaseException | None = None


class Bundle(Work):
    """Many small pieces of work in one, without limits.

    They share one unit. A piece that waits keeps it; the rest asks for another.
    """

    __slots__ = ()

    steps_back = False
    """Whether the rest goes behind the subtasks of the piece just begun."""

    def __len__(self) -> int:
        """Pieces that have not begun."""
        raise NotImplementedError

    @property
    def size(self) -> int:  # type: ignore[override] # changes while it waits
        return len(self)

    def run_on(self, workers: Host, worker: Runner, until: float) -> Detached | None:
        """Run until `until` (monotonic seconds). Return the first piece that needs the worker."""
        raise NotImplementedError


def _name_of(func: Callable[..., Any]) -> str:
    return getattr(func, "__qualname__", None) or type(func).__qualname__


def is_async(func: object) -> bool:
    """Whether calling `func` makes a coroutine: an `async def`, a partial of one, or an async `__call__`."""
    while isinstance(func, partial):
        func = func.func
    if isinstance(func, FunctionType | MethodType):  # the usual ones
        return iscoroutinefunction(func)
    called = type(func) if isinstance(func, type) else func  # the `__call__` of a class is for its objects
    return iscoroutinefunction(func) or iscoroutinefunction(getattr(called, "__call__", None))  # noqa: B004
