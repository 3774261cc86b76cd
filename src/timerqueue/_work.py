"""One piece of work, as the pool and its crew see it."""

from __future__ import annotations

import math
from collections.abc import Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final

import anyio

from ._limits import Needs

if TYPE_CHECKING:
    from ._crew import Worker


class Held:
    """The type of HELD, of which there is one."""

    __slots__ = ()


HELD: Final = Held()
"""What `Work.open` answers when it cannot begin yet although it has room: it keeps that and waits for
`TaskPool.let_begin`.
"""


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
        self.worker: Worker | None = None

    def open(self, now: float) -> Coroutine[Any, Any, Any] | Held | None:
        """Begin at `now` (monotonic seconds), in the work's own context. Answer the coroutine to drive, None if all
        has been done already, or HELD to be opened once more later.
        """
        raise NotImplementedError

    def close(self, value: Any, error: BaseException | None, now: float) -> None:
        """The end, in the worker: what the coroutine returned, or what it or `open` raised. Must not raise."""

    def drop(self) -> None:
        """Cancelled before it began: neither `open` nor `close` is called."""


def is_cancellation(error: BaseException) -> bool:
    """Whether the calling task is really being cancelled, and `error` is how it was told.

    Work may raise such an exception without that (asyncio: by awaiting something that was cancelled): then it has
    simply failed.
    """
    return isinstance(error, anyio.get_cancelled_exc_class()) and anyio.current_effective_deadline() == -math.inf
