"""A call in a worker thread, which may outlive the run that it works for; and what any call of a job looks like."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from contextvars import copy_context
from functools import partial
from threading import Lock
from typing import Any, Final

from .._values import NotASubtask

_UNSET: Final = object()

Call = Callable[[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]], Coroutine[Any, Any, Any]]
"""From a callable and its arguments to the coroutine that does it."""


class NotLaunched(Exception):
    """There was no thread, or no memory, to begin in: no line of the user's code has run, and none will."""


class ThreadCall:
    """A call in a thread, with a flag that says whether the thread is done with it."""

    __slots__ = ("call", "context", "entry", "has_ended")

    def __init__(self, call: partial[Any]) -> None:
        self.call = call
        self.context = copy_context()
        self.entry = Lock()
        """Taken once and for ever, by the thread that begins or by the loop that forbids it."""
        self.has_ended = False

    def forbid(self) -> bool:
        """Let it not begin any more. False: it has begun already."""
        return self.entry.acquire(blocking=False)

    def __call__(self) -> Any:
        if not self.entry.acquire(blocking=False):
            return None
        try:
            return self._without_coroutine(self.context.run(self.call))
        except GeneratorExit as exc:  # thrown into the worker it would close its coroutine, and end all the others
            msg = f"{self.call.func!r} raised GeneratorExit"
            raise RuntimeError(msg) from exc
        finally:
            self.has_ended = True

    def keep_context(self) -> None:
        """Set here what was set there, in a copy because a thread may outlive its run, for the subtasks to see."""
        for variable, value in self.context.items():
            if variable.get(_UNSET) is not value:
                variable.set(value)

    def _without_coroutine(self, value: Any) -> Any:
        if not inspect.iscoroutine(value):
            return value
        value.close()
        msg = f"{self.call.func!r} is a plain `def` that returned a coroutine: make it `async def`, or use inline=True"
        raise NotASubtask(msg)
