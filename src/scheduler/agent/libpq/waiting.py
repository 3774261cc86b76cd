"""Waits of libpq: it says whether it wants to read or to write, and the event loop wakes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import anyio

if TYPE_CHECKING:
    from psycopg.pq.abc import PGcancelConn, PGconn


class Polled(Protocol):
    """A call of libpq that goes on step by step."""

    @property
    def socket(self) -> int:
        """The descriptor to wait for."""


async def polled(connection: PGconn | PGcancelConn, poll: Callable[[], int], stepped: Callable[[], object]) -> bool:
    """Go on until libpq is done. False: it failed. `stepped` is called after each step."""
    from psycopg.pq import PollingStatus  # noqa: PLC0415

    state = PollingStatus.WRITING
    while state not in {PollingStatus.OK, PollingStatus.FAILED}:
        if state == PollingStatus.WRITING:
            await anyio.wait_writable(connection.socket)
        else:
            await anyio.wait_readable(connection.socket)
        state = PollingStatus(poll())
        stepped()
    return state == PollingStatus.OK
