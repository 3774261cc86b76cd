"""Work is what a pool runs: one piece, or a bundle of small pieces that share a unit.

`Runner` is what work may ask of its worker, `Host` what a bundle sees of all workers.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import Context
from functools import partial
from inspect import iscoroutinefunction
from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple

from ._habits import Habits
from ._needs import Needs


class Held:
    """The type of HELD. HELD is its only value."""

    __slots__ = ()


HELD: Final = Held()
"""`Work.open` returns HELD if the work has room but cannot begin yet. It keeps its room until `TaskPool.let_begin`."""


class Runner:
    """A worker, as its work sees it.

    `is_cancelled`: it must cancel its work, and begins no other. `is_killed`: it must end its work by force.
    `cancelling()` counts the cancellations of its task, by any caller.
    """

    __slots__ = ("cancelling", "is_cancelled", "is_killed")

    cancelling: Callable[[], int]
    is_cancelled: bool
    is_killed: bool

    def cancel(self) -> None:
        """Cancel its work, where that stands. Twice is harmless."""
        raise NotImplementedError

    def kill(self) -> None:
        """End its work by force, without waiting for that."""
        raise NotImplementedError


class Work:
    """A piece of work: what runs, what it needs, and how it ranks. Subclass it to be told how it went.

    `due` (monotonic seconds) and `priority` give its rank among waiting work: one step of priority outweighs AGEING
    seconds.
    """

    __slots__ = ("context", "due", "is_waiting", "needs", "priority", "worker")

    size = 1
    """How many pieces of work this counts as while it waits."""
    func: Callable[..., Any] | None = None
    """The function that it calls. If that is known never to wait, it needs no task of its own. None: not known."""

    @property
    def name(self) -> str:
        """The name of its task."""
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

        Return the coroutine to drive, None if everything is done already, or HELD to be opened again later.
        """
        raise NotImplementedError

    def close(self, value: Any, error: BaseException | None, now: float) -> None:
        """Note the end: what the coroutine returned, or what it or `open` raised. Must not raise."""

    def drop(self) -> None:
        """Note that the work was cancelled before it began. `open` and `close` are not called."""


class Host:
    """The workers of a pool, as a bundle sees them."""

    monotonic: Callable[[], float]
    """Seconds of the pool's clock."""
    context: Context
    """Work without a context of its own begins in a copy of this one."""
    habits: Habits
    current: Work | None
    """The work whose code runs at this moment. For a watchdog in another thread."""
    steps: int
    """How often work has taken a step. It tells a watchdog one long step from many short ones."""

    @property
    def begins_elsewhere(self) -> bool:
        """Whether work that may wait can begin although the present task has run other work."""
        raise NotImplementedError


class Detached(NamedTuple):
    """A piece that has left its bundle, because it waits for something, or its end needs attention.

    `context`: the copy that it runs in. `running`: its coroutine, if any. `is_new`: it has not begun, and needs a task
    of its own. `is_waiting`: it has yielded `yielded`. Otherwise it has ended.
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
    """Many small pieces of work in one. They need no limit.

    They run one after another in one worker and share one unit. A piece that has to wait keeps the unit; the rest asks
    for another.
    """

    __slots__ = ()

    steps_back = False
    """Whether the rest goes behind the subtasks of the piece that has just begun."""

    def __len__(self) -> int:
        """Count the pieces that have not begun."""
        raise NotImplementedError

    @property
    def size(self) -> int:  # type: ignore[override] # changes while it waits
        return len(self)

    def run_on(self, workers: Host, worker: Runner, until: float) -> Detached | None:
        """Run what is left until `until` (monotonic seconds). Return the first piece that needs the worker."""
        raise NotImplementedError


def _name_of(func: Callable[..., Any]) -> str:
    return getattr(func, "__qualname__", None) or type(func).__qualname__


def is_async(func: object) -> bool:
    """Whether calling `func` makes a coroutine: an `async def`, a partial of one, or a class with such a `__call__`."""
    while isinstance(func, partial):
        func = func.func
    if isinstance(func, FunctionType | MethodType):  # the usual ones
        return iscoroutinefunction(func)
    called = type(func) if isinstance(func, type) else func  # the `__call__` of a class is for its objects
    return iscoroutinefunction(func) or iscoroutinefunction(getattr(called, "__call__", None))  # noqa: B004
