"""Leaving a server: a connection is gone when the server has closed its side, not when we have closed ours.

Until then the server counts it, and whoever opens the next one meanwhile is over the limit for an instant. So we keep a
second descriptor of the socket, let libpq say good-bye and close its own, and wait for the end of what the server
sends. A backend closes its socket when its process ends, after it has left pg_stat_activity. A machine that is gone
altogether is noticed by TCP's keepalives; a server that stands still is not, and keeps its place with us, too.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn


def leave(connection: PGconn) -> socket.socket | None:
    """Say good-bye and close; return what is left to be listened to. None: no server knows of a connection."""
    try:
        left = socket.socket(fileno=os.dup(connection.socket))
    except Exception:  # noqa: BLE001 - libpq has closed it: then nobody is there to wait for
        connection.finish()
        return None
    try:
        left.getpeername()
    except OSError:  # nobody has answered yet: that is over as soon as both descriptors are closed
        left.close()
        connection.finish()
        return None
    left.setblocking(False)  # noqa: FBT003 - the name of the method says what
    connection.finish()
    with suppress(OSError):  # while it logs in libpq says no good-bye, and the server would wait for what we want
        left.shutdown(socket.SHUT_WR)
    return left


async def gone(left: socket.socket) -> None:
    """Return once the server has closed its side. It is for the caller to close ours."""
    with suppress(OSError):
        while True:
            try:
                if not left.recv(65_536):
                    return
            except BlockingIOError:
                await anyio.wait_readable(left)
