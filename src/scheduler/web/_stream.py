"""Answers that go on: sent piece by piece until the caller leaves, loses access, or nothing more can come."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import anyio
from anyio import CancelScope

from timerqueue import Clock

from ._protocol import Stream

LOOK_S: Final = 0.5
"""Seconds between two looks whether the stream may go on."""

FAREWELL_S: Final = 0.2
"""Seconds that a caller has to take the last piece."""

Message = Mapping[str, Any]


async def send_stream(
    stream: Stream,
    *,
    clock: Clock,
    is_allowed: Callable[[], Awaitable[bool]],
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Any], Awaitable[None]],
) -> None:
    """Send the stream. A caller that takes nothing more loses the connection."""

    async def feed(piece: bytes) -> None:
        await send({"type": "http.response.body", "body": piece, "more_body": True})

    has_left = False

    async def listen(scope: CancelScope) -> None:
        nonlocal has_left
        while (await receive())["type"] != "http.disconnect":
            pass
        has_left = True
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(listen, group.cancel_scope)
        group.start_soon(_look, stream.is_over, is_allowed, clock, group.cancel_scope)
        try:
            await stream.feed(feed)
        except OSError:  # some servers say so of a caller who has left
            has_left = True
        group.cancel_scope.cancel()
    if not has_left:
        with anyio.move_on_after(FAREWELL_S), suppress(OSError):  # a caller without access may get nothing more
            await send({"type": "http.response.body", "body": stream.farewell, "more_body": False})


async def _look(
    is_over: Callable[[], bool], is_allowed: Callable[[], Awaitable[bool]], clock: Clock, scope: CancelScope
) -> None:
    while not is_over() and await is_allowed():
        await clock.sleep(LOOK_S)
    scope.cancel()


async def send_head(send: Callable[[Any], Awaitable[None]], status: int, headers: Mapping[str, str]) -> None:
    """Begin an answer that goes on."""
    pairs = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


async def send_nothing(send: Callable[[Any], Awaitable[None]]) -> None:
    """End an answer that is asked for its head alone."""
    await partial(send, {"type": "http.response.body", "body": b"", "more_body": False})()
