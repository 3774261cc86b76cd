"""Waits of libpq on the event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

import anyio

if TYPE_CHECKING:
    from psycopg.pq.abc import PGcancelConn


class Until(Protocol):
    """Waits until libpq can continue."""

    def __call__(self, *, is_writing: bool) -> Awaitable[None]:
        """Wait to write, or else to read."""


async def polled(poll: Callable[[], int], until: Until, stepped: Callable[[], object] = lambda: None) -> bool:
    """Poll until libpq is done. Returns False if it failed."""
    from psycopg.pq import PollingStatus  # noqa: PLC0415

    state = PollingStatus.WRITING
    while state not in {PollingStatus.OK, PollingStatus.FAILED}:
        await until(is_writing=state == PollingStatus.WRITING)
        state = PollingStatus(poll())
        stepped()
    return state == PollingStatus.OK


def on_socket_of(request: PGcancelConn) -> Until:
    """Wait on a cancel request's socket, which may change."""

    async def until(*, is_writing: bool) -> None:
        await (anyio.wait_writable if is_writing else anyio.wait_readable)(request.socket)

    return until


async def either(socket: int) -> None:
    """Wait to read or to write."""
    async with anyio.create_task_group() as group:

        async def end_with(wait: Callable[[int], Awaitable[None]]) -> None:
            await wait(socket)
            group.cancel_scope.cancel()

        group.start_soon(end_with, anyio.wait_readable)
        group.start_soon(end_with, anyio.wait_writable)
