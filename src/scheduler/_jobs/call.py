from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from contextvars import copy_context
from functools import partial
from threading import Lock
from types import CodeType
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync

from timerqueue import is_async

from .._values import InvalidJob, NotASubtask, cut
from .current import RUN
from .definition import Call

LONGEST_CALL: Final = 200

_UNSET: Final = object()


class NotLaunched(Exception):
    """No thread or memory: none of the user's code ran, or will."""


class ThreadCall:
    __slots__ = ("call", "context", "entry", "has_ended")

    def __init__(self, call: partial[Any]) -> None:
        self.call = call
        self.context = copy_context()
        self.entry = Lock()
        """Taken once: by the thread that begins, or the loop that forbids it."""
        self.has_ended = False

    def forbid(self) -> bool:
        """False: it has begun."""
        return self.entry.acquire(blocking=False)

    def __call__(self) -> Any:
        if not self.entry.acquire(blocking=False):
            return None
        try:
            return self._without_coroutine(self.context.run(self.call))
        except GeneratorExit as exc:  # in the worker it would close the worker's coroutine, and end all other calls
            msg = f"{self.call.func!r} raised GeneratorExit"
            raise RuntimeError(msg) from exc
        finally:
            self.has_ended = True

    def keep_context(self) -> None:
        """Copy the context, because the thread may outlive its run."""
        for variable, value in self.context.items():
            if variable.get(_UNSET) is not value:
                variable.set(value)

    def _without_coroutine(self, value: Any) -> Any:
        if not inspect.iscoroutine(value):
            return value
        value.close()
        msg = f"{self.call.func!r} is a plain `def` that returned a coroutine: make it `async def`, or use inline=True"
        raise NotASubtask(msg)


def call_of(func: Callable[..., Any], *, inline: bool = False) -> Call:
    """Await an `async def`; run a `def` in a worker thread, or on the loop if `inline`.

    Raises InvalidJob for anything else.
    """
    code = getattr(func, "__code__", None)  # a function's or method's kind is seen at once
    if code is not None and code.co_flags & inspect.CO_COROUTINE:
        return awaited
    if is_async(func):
        return called_and_awaited
    _check(func)
    return on_the_loop if inline else in_a_thread


def check_args(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise InvalidJob for arguments that `func` would refuse. Without a known signature it takes any."""
    code = getattr(func, "__code__", None)
    # the usual callables, in a tenth of the time
    if type(code) is CodeType and not kwargs and not code.co_kwonlyargcount:
        given = len(args) + (getattr(func, "__self__", None) is not None)
        least = code.co_argcount - len(getattr(func, "__defaults__", None) or ())
        if least <= given and (given <= code.co_argcount or code.co_flags & inspect.CO_VARARGS):
            return
    try:
        signature = inspect.signature(func, follow_wrapped=False)
    except Exception:  # noqa: BLE001 - a user's object may raise anything
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as exc:
        name = getattr(func, "__name__", type(func).__name__)
        msg = f"func {cut(f'{name}{signature}', LONGEST_CALL)} cannot be called so: {exc}; look at args and kwargs"
        raise InvalidJob(msg) from None


def awaited(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Coroutine[Any, Any, Any]:
    """Any thread: nothing of its coroutine runs yet."""
    return func(*args, **kwargs) if kwargs else func(*args)  # type: ignore[no-any-return]


def called_and_awaited(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Coroutine[Any, Any, Any]:
    """Call a partial, `__call__` or wrapper declared to return a coroutine."""
    return func(*args, **kwargs)  # type: ignore[no-any-return]


async def on_the_loop(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    value = func(*args, **kwargs)
    return await value if inspect.isawaitable(value) else value


async def in_a_thread(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Nothing can stop a thread: its job lists threads that outlive runs."""
    # The run holds one unit of the pool already: a second limit here could only delay it.
    limiter = anyio.CapacityLimiter(1)
    thread = ThreadCall(partial(func, *args, **kwargs))
    try:
        value = await run_sync(thread, abandon_on_cancel=True, limiter=limiter)
    except BaseException as exc:
        has_begun = not thread.forbid()
        if has_begun and not thread.has_ended:
            job = RUN.get().job
            job.threads = [*(job.threads or ()), thread]  # while the thread goes on, the job counts as running
        if not has_begun and isinstance(exc, (RuntimeError, MemoryError)):
            msg = f"no worker thread: {str(exc) or type(exc).__name__}"
            raise NotLaunched(msg) from exc
        raise
    thread.keep_context()
    return value


def _check(func: object) -> None:
    if not callable(func):
        msg = f"func must be something that can be called, not {func!r}"
        raise InvalidJob(msg)
    while isinstance(func, partial):
        func = func.func
    code = getattr(func, "__code__", None) or getattr(type(func).__call__, "__code__", None)
    if code is not None and _is_generator(code.co_flags):
        msg = f"func must not be a generator function, because calling one runs nothing: let {func!r} return, not yield"
        raise InvalidJob(msg)
    if isinstance(func, type) and is_async(func.__call__):
        msg = f"func must be an instance of {func!r}, whose `__call__` is async: give {func.__name__}(...)"
        raise InvalidJob(msg)


def _is_generator(flags: int) -> bool:
    return (
        bool(flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR)) and not flags & inspect.CO_ITERABLE_COROUTINE
    )
