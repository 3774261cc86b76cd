"""Work is what a pool runs: one piece, or a bundle of small ones that share a place.

It knows its workers as little as it can: `Runner` is what a piece of work may ask of the worker that runs it, `Host`
what a bundle may see of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import Context
from functools import partial
from inspect import iscoroutinefunction
from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple

from ._habits import Habits
from ._limits import Needs


class Held:
    """The type of HELD, of which there is one."""

    __slots__ = ()


HELD: Final = Held()
"""What `Work.open` answers when it cannot begin yet although it has room: it keeps that and waits for
`TaskPool.let_begin`.
"""


class Runner:
    """A worker, as the work that it runs sees it.

    `is_cancelled`: it has been told to cancel that, and will not begin anything else. `is_killed`: it is to end that by
    force. `cancelling()` answers how often its task has been told to cancel itself, by whomever.
    """

    __slots__ = ("cancelling", "is_cancelled", "is_killed")

    cancelling: Callable[[], int]
    is_cancelled: bool
    is_killed: bool

    def cancel(self) -> None:
        """Cancel what it runs, where that stands. Twice is once."""
        raise NotImplementedError

    def kill(self) -> None:
        """End what it runs by force, without waiting for that."""
        raise NotImplementedError


class Work:
    """A piece of work: what runs, what it needs, and how it ranks. Subclass it to be told how it went.

    `due` (monotonic seconds) and `priority` give its place among what waits: a step of priority outweighs AGEING
    seconds.
    """

    __slots__ = ("context", "due", "is_waiting", "needs", "priority", "worker")

    size = 1
    """As how many pieces it counts while it waits."""
    func: Callable[..., Any] | None = None
    """What it calls. What is known to wait for nothing is run without a task of its own; None: nothing is known."""

    @property
    def name(self) -> str:
        """The name of its task, for those who look at tasks."""
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
        """Begin at `now` (monotonic seconds), in the work's own context. Answer the coroutine to drive, None if all
        has been done already, or HELD to be opened once more later.
        """
        raise NotImplementedError

    def close(self, value: Any, error: BaseException | None, now: float) -> None:
        """The end, in the worker: what the coroutine returned, or what it or `open` raised. Must not raise."""

    def drop(self) -> None:
        """Cancelled before it began: neither `open` nor `close` is called."""


class Host:
    """The workers of a pool, as a bundle that they run sees them."""

    monotonic: Callable[[], float]
    """Seconds of the pool's clock."""
    context: Context
    """What work begins in a copy of, if it brings no context of its own."""
    habits: Habits
    current: Work | None
    """The work whose code runs at this very moment. For a watchdog in another thread."""
    steps: int
    """How often work has taken a step, so that a watchdog can tell one long step from many short ones."""

    @property
    def begins_elsewhere(self) -> bool:
        """Whether what may wait can begin although the present task has run something else."""
        raise NotImplementedError


class Detached(NamedTuple):
    """One of a bundle's pieces that is no small one: it waits for something, or has ended with something to say.

    `context`: the copy that it runs in. `running`: its coroutine, if there is one. It has not begun if `is_new`, and
    needs a task of its own; it has yielded `yielded` if `is_waiting`; else it has ended.
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
    """Many small pieces of work in one, which need no limit.

    They are run one after another, without what a worker does for each, for as long as none has to wait. All of them
    share one unit; the one that has to wait keeps it, and the rest asks for another.
    """

    __slots__ = ()

    steps_back = False
    """Its rest goes behind what the piece that has just begun asks for."""

    def __len__(self) -> int:
        """How many have not begun."""
        raise NotImplementedError

    @property
    def size(self) -> int:  # type: ignore[override] # here it is another at each time that it waits
        return len(self)

    def run_on(self, workers: Host, worker: Runner, until: float) -> Detached | None:
        """Run what is left until `until` (monotonic seconds). Answer the first that the worker has to look after."""
        raise NotImplementedError


def _name_of(func: Callable[..., Any]) -> str:
    return getattr(func, "__qualname__", None) or type(func).__qualname__


def is_async(func: object) -> bool:
    """Whether a call of `func` makes a coroutine: it is an `async def`, a partial of one, or its `__call__` is one."""
    while isinstance(func, partial):
        func = func.func
    if isinstance(func, FunctionType | MethodType):  # the usual ones
        return iscoroutinefunction(func)
    called = type(func) if isinstance(func, type) else func  # the `__call__` of a class is for its objects
    return iscoroutinefunction(func) or iscoroutinefunction(getattr(called, "__call__", None))  # noqa: B004
