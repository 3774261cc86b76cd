"""Leaving a server: a connection is gone when the server has closed its side.

Until then the server counts it against the limit. So we wait for the end of the stream, after the backend has left
pg_stat_activity. TCP keepalives notice a dead machine, but not a stalled server.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio

from .wire import PqWire

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn

MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes. A server that sends more does not mean to close."""
_PIECE: Final = 64 * 1024


def leave(connection: PGconn, wire: PqWire) -> socket.socket | None:
    """Say goodbye and close. Returns the socket to listen to, if any."""
    left = wire.leave() or _leave_alone(connection)
    if left is None:
        return None
    left.setblocking(False)  # noqa: FBT003 - the name of the method says what
    with suppress(OSError):  # while it logs in libpq says no good-bye, and the server would wait for what we want
        left.shutdown(socket.SHUT_WR)
    return left


def _leave_alone(connection: PGconn) -> socket.socket | None:
    left: socket.socket | None = None
    try:
        left = socket.socket(fileno=os.dup(connection.socket))
    except Exception:  # noqa: BLE001 - libpq has closed it: no server is there to wait for
        connection.finish()
        return None
    try:
        left.getpeername()
    except OSError:  # no server has answered yet: closing both descriptors ends it
        left.close()
        left = None
    connection.finish()
    return left


async def gone(left: socket.socket) -> None:
    """Return when the server has closed its side, or sent MAX_BYTES."""
    read = 0
    with suppress(OSError):
        while read < MAX_BYTES:
            await anyio.wait_readable(left)  # first of all: the loop goes on, however fast the server is
            try:
                found = left.recv(_PIECE)
            except BlockingIOError:
                continue
            if not found:
                return
            read += len(found)
