"""Blocking calls in threads, with a bounded wait.

A thread that hangs is left behind, and blocks its channel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Generic, TypeVar

import anyio
from anyio.from_thread import run_sync
from anyio.lowlevel import EventLoopToken, current_token

from .channel import Undelivered

T = TypeVar("T")

_busy: Final[set[tuple[str, object]]] = set()
"""Channels whose last call has not returned."""


async def in_thread(whose: tuple[str, object], call: Callable[[], T], give_up: Callable[[], object] | None = None) -> T:
    """Call in a thread. When cancelled, call `give_up` and do not wait.

    `whose`: the channel. Raises the call's errors, and Undelivered if the channel's last call still hangs.
    """
    if whose in _busy:
        raise Undelivered("the message before it still hangs in its thread")
    made = _ThreadCall(whose, call)
    _busy.add(whose)
    thread = threading.Thread(target=made.run, args=(current_token(),), name="channel", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        _busy.discard(whose)
        raise Undelivered("this machine can start no more threads") from None
    try:
        await made.done.wait()
    finally:
        if not made.done.is_set() and give_up is not None:
            give_up()
    return made.answer()


class _ThreadCall(Generic[T]):
    def __init__(self, whose: tuple[str, object], call: Callable[[], T]) -> None:
        self.done = anyio.Event()
        self._whose = whose
        self._call = call
        self._found: list[T] = []
        self._error: BaseException | None = None

    def run(self, token: EventLoopToken) -> None:
        """Make the call, in the thread."""
        try:
            self._found = [self._call()]
        except BaseException as exc:  # noqa: BLE001 - it is raised in the waiting task
            self._error = exc
        _busy.discard(self._whose)
        with suppress(RuntimeError):  # the loop has ended: no task waits
            run_sync(self.done.set, token=token)

    def answer(self) -> T:
        if self._error is not None:
            raise self._error
        return self._found[0]
