"""Writers call a store, one call after another, so that the loop never waits for a driver."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from logging import getLogger
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

import anyio
from attrs import frozen

logger = getLogger(__name__)
T = TypeVar("T")

Call = Callable[[], Any]
Done = Callable[[Any, Exception | None], object]

OnLoop = Callable[..., object]
"""Calls a function on the loop, soon; from any thread."""


class Writer(Protocol):
    def submit(self, call: Call, done: Done) -> None:
        """Make the call after earlier calls, then call `done` on the loop with its result or error. Returns at once."""

    def close(self, wait: float, let_go: Callable[[], object]) -> bool:
        """Take no more calls, and wait up to `wait` seconds for the others.

        False: a call hangs. If it returns later, `let_go` is called in a thread of its own.
        """


@frozen
class _Task:
    call: Call
    done: Done


async def in_turn(writer: Writer, call: Callable[[], T]) -> T:
    """Make a call after earlier calls, and wait for it. Raises the call's errors."""
    done, answer, trouble = anyio.Event(), list[T](), list[Exception]()

    def answered(found: T, error: Exception | None) -> None:
        (answer.append(found) if error is None else trouble.append(error))
        done.set()

    writer.submit(call, answered)
    await done.wait()
    if trouble:
        raise trouble[0]
    return answer[0]


class InlineWriter:
    """For a store that never waits: calls are made at once. A call that a `done` submits is made after that `done`."""

    def __init__(self) -> None:
        self._tasks: deque[_Task] = deque()
        self._is_busy = False

    def submit(self, call: Call, done: Done) -> None:
        self._tasks.append(_Task(call, done))
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._tasks:
                task = self._tasks.popleft()
                task.done(*_result(task.call))
        finally:
            self._is_busy = False

    def close(self, wait: float, let_go: Callable[[], object]) -> bool:  # noqa: ARG002 - there is nothing to wait for
        return True


class ThreadWriter:
    """For a store that waits for a disk or a network.

    Its thread does not delay the end of the process: a driver's call may never return.
    """

    def __init__(self, on_loop: OnLoop) -> None:
        self._on_loop = on_loop
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._thread: Thread | None = None

    def submit(self, call: Call, done: Done) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._serve, name="scheduler store", daemon=True)
            self._thread.start()
        self._tasks.put(_Task(call, done))

    def close(self, wait: float, let_go: Callable[[], object]) -> bool:
        if self._thread is None:
            return True
        self._tasks.put(None)
        self._thread.join(wait)
        if not self._thread.is_alive():
            return True
        Thread(target=_afterwards, args=(self._thread, let_go), name="scheduler store end", daemon=True).start()
        return False

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._on_loop(task.done, *_result(task.call))
            del task  # its objects must not stay until the next call


def _afterwards(thread: Thread, let_go: Callable[[], object]) -> None:
    thread.join()
    try:
        let_go()
    except Exception:
        logger.exception("a store that answered after the end of its scheduler could not be closed")


def _result(call: Call) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except Exception as exc:  # noqa: BLE001 - a driver may raise anything, and callers judge it
        return None, exc
