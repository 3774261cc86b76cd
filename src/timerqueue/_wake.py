"""The one wait of a loop, and what other threads see of the loop.

Only this file and _tasks.py know the event loop. asyncio's `call_later` with a bare future costs a fifth of anyio's
`Event` inside `move_on_after`.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from threading import get_ident
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
from anyio.lowlevel import current_token

if TYPE_CHECKING:
    import trio

WHOLE_MILLISECOND: Final = 0.001
"""Some loops (uvloop) count whole milliseconds and may fire early. Waits are rounded up, or the loop would spin."""


PACE: Final = 0.0005
"""The least seconds between two looks at the timers.

Without this pace a busy loop would wake up for every few timers. At 40,000 runs a second, a run costs 22 us without the
pace, and 15 us with it.
"""

_ASLEEP: Final = {
    ("selectors", "asyncio.base_events"),
    *((f"trio._core._io_{os}", "trio._core._run") for os in ("epoll", "kqueue", "windows")),
}
"""The modules of the innermost two frames of a waiting loop."""


class Wake(Protocol):
    """A task's wait that any thread may end."""

    pace: float
    """Seconds: the loop looks at entries due within this time together."""

    async def wait(self, seconds: float | None) -> None:
        """Return after `seconds`, or at once when `set` was or is called. None: wait only for `set`."""

    def set(self) -> None:
        """End the wait, or else the next one. Any thread."""


def make_wake() -> Wake:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return TrioWake()
    return AsyncioWake(loop)


class AsyncioWake:
    pace = PACE

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = get_ident()
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None
        self._rounds_up = not isinstance(loop, asyncio.BaseEventLoop)

    async def wait(self, seconds: float | None) -> None:
        if not self._is_set:
            self._waiter = self._loop.create_future()
            handle = None if seconds is None else self._loop.call_later(self._rounded(seconds), self._release)
            try:
                await self._waiter
            finally:
                self._waiter = None
                if handle is not None:
                    handle.cancel()
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        if get_ident() == self._thread:
            self._release()
        else:
            with suppress(RuntimeError):  # the loop has closed, and the wait with it
                self._loop.call_soon_threadsafe(self._release)

    def _release(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _rounded(self, seconds: float) -> float:
        return math.ceil(seconds / WHOLE_MILLISECOND) * WHOLE_MILLISECOND if self._rounds_up else seconds


class TrioWake:
    pace = PACE

    def __init__(self) -> None:
        self._token: trio.lowlevel.TrioToken = current_token().native_token  # type: ignore[assignment]
        self._thread = get_ident()
        self._event = anyio.Event()

    async def wait(self, seconds: float | None) -> None:
        with anyio.move_on_after(seconds):
            await self._event.wait()
        self._event = anyio.Event()

    def set(self) -> None:
        if get_ident() == self._thread:
            self._event.set()
        else:
            with suppress(RuntimeError):  # the loop has closed, and the wait with it
                self._token.run_sync_soon(self._set_on_loop)

    def _set_on_loop(self) -> None:
        self._event.set()


@contextmanager
def others_watched() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells, after a turn of the loop, whether all other tasks are idle.

    False if the loop hides that (uvloop). Other threads do not count.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        with _trio_watched() as is_quiet:
            yield is_quiet
    else:
        ready = getattr(loop, "_ready", None)
        yield lambda: ready is not None and not ready


@contextmanager
def _trio_watched() -> Iterator[Callable[[], bool]]:
    from trio.lowlevel import add_instrument, remove_instrument  # noqa: PLC0415 - it may not be installed

    rounds = _Rounds()
    add_instrument(rounds)  # type: ignore[arg-type] # it has some of an Instrument's hooks, which is enough
    try:
        yield lambda: rounds.last == 1  # the task that asks
    finally:
        remove_instrument(rounds)  # type: ignore[arg-type]


class _Rounds:
    """A trio instrument that counts the tasks stepped in the `last` round of the loop. Their order is random."""

    def __init__(self) -> None:
        self.last = self._now = math.inf  # the round in which it begins is not counted

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - trio calls it so
        self.last, self._now = self._now, 0

    def before_task_step(self, task: object) -> None:  # noqa: ARG002
        self._now += 1


class Pulse:
    """Shows a watchdog whether a loop moves, and in whose code. Make it in the loop's thread.

    An idle loop's answer costs a wake-up, so ask `is_asleep` first.
    """

    def __init__(self) -> None:
        self._thread = get_ident()
        self._asyncio: asyncio.AbstractEventLoop | None = None
        try:
            self._asyncio = asyncio.get_running_loop()
            self._call: Callable[[Callable[[], None]], object] = self._asyncio.call_soon_threadsafe
        except RuntimeError:
            token: trio.lowlevel.TrioToken = current_token().native_token  # type: ignore[assignment]
            self._call = token.run_sync_soon
        self._trio: dict[str, Any] = {} if self._asyncio is not None else _of_trio()
        self.beats = 0
        self._asked = 0

    def ask(self) -> None:
        if self._asked == self.beats:
            self._asked += 1
            with suppress(RuntimeError):  # the loop has closed
                self._call(self._beat)

    def _beat(self) -> None:
        self.beats += 1

    def frame(self) -> FrameType | None:
        """The loop's present frame. Do not keep it: it keeps alive what it holds."""
        return sys._current_frames().get(self._thread)  # noqa: SLF001 - the documented way to another thread's stack

    def is_asleep(self) -> bool:
        """Whether the loop waits. Always False if it hides its frames (uvloop): then `ask`."""
        frame = self.frame()
        return frame is None or (_module(frame), _module(frame.f_back)) in _ASLEEP

    def context(self) -> Context | None:
        if self._asyncio is None:
            return getattr(self._trio.get("task"), "context", None)
        frame = self.frame()
        while frame is not None:
            if frame.f_code.co_name == "_run" and _module(frame) == "asyncio.events":
                return getattr(frame.f_locals.get("self"), "_context", None)
            frame = frame.f_back
        get_context: Callable[[], Context] | None = getattr(asyncio.current_task(self._asyncio), "get_context", None)
        return None if get_context is None else get_context()  # there is none before Python 3.12


def _of_trio() -> dict[str, Any]:
    """Return trio's data for this thread, such as the present `task`.

    Frames are not asked: before Python 3.13 an inspected frame keeps its locals alive, and trio's frames live long.
    """
    kept = getattr(sys.modules.get("trio._core._run"), "GLOBAL_RUN_CONTEXT", None)
    return {} if kept is None else vars(kept)


def _module(frame: FrameType | None) -> str:
    return "" if frame is None else frame.f_globals.get("__name__", "")
