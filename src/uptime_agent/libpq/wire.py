"""The wire between libpq and a server: libpq gets what the server sends in counted slices.

Otherwise a fast server fills the memory within one call of libpq, which has no bounds. So once it has connected, we put
one end of a socket pair in its socket's place. Login, TLS and verified names stay libpq's own. Windows cannot replace
sockets: there nothing is bounded.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio
from anyio.lowlevel import checkpoint

from .errors import Unreachable
from .waiting import either

if sys.platform != "win32":
    from select import POLLIN, poll

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn

SLICE: Final = 8192
"""Bytes that libpq gets at a time: the longest stop of the event loop."""

BESIDES: Final = 128 * 1024
"""Bytes besides rows: for the login, certificates included, and each later exchange."""

WORN: Final = 512 * 1024
"""Bytes besides rows that slow libpq down. An honest server sends some 100 per query."""

_WRITTEN: Final = 64 * 1024


class PqWire:
    """One connection's wire. `others`: bytes received besides rows."""

    def __init__(self, connection: PGconn) -> None:
        self._pg = connection
        self._server: socket.socket | None = None
        self._libpq: socket.socket | None = None
        self._place: tuple[int, int] | None = (0, 0)
        self._number = -1
        self._unsent = b""
        self._may_come = BESIDES
        self.others = 0

    @property
    def is_worn(self) -> bool:
        """Whether to replace the connection."""
        return self.others > WORN

    def begin(self) -> None:
        """Allow the bytes of a new exchange."""
        self._may_come = BESIDES

    def allow(self, size: int) -> None:
        """Count `size` received bytes as requested rows."""
        self._may_come += size
        self.others -= size

    async def until(self, *, is_writing: bool) -> None:
        """Wait until libpq can go on. Raises Unreachable."""
        if not self._is_between():
            self._close()
            if is_writing:
                await anyio.wait_writable(self._pg.socket)
                return
            self._step_between()
        await (self._sent() if is_writing else self.exchange())

    async def exchange(self) -> None:
        """Send what libpq wrote, and give it the next slice.

        Raises Unreachable if the connection is lost or the server sends too much.
        """
        if self._server is None or self._libpq is None:
            await anyio.wait_readable(self._pg.socket)
            return
        ready = [number for number, events in self._poll.poll(0) if events & POLLIN]
        has_written = self._unsent or self._libpq.fileno() in ready
        is_sent = not has_written or self._pump(self._server, self._libpq)
        if self._number in ready:  # libpq has not read everything yet: of TLS it reads one record at a time
            await checkpoint()
            return
        await (anyio.wait_readable(self._server) if is_sent else either(self._server.fileno()))
        try:
            found = self._server.recv(SLICE)
        except BlockingIOError:
            return
        except OSError as exc:
            raise Unreachable(f"the connection is lost: {exc.strerror}") from None
        self._count(len(found))
        with suppress(OSError):  # libpq has closed its end: it says why itself
            if found:
                self._libpq.sendall(found)
            else:
                self._libpq.shutdown(socket.SHUT_WR)

    def leave(self) -> socket.socket | None:
        """Have libpq say goodbye. Returns the socket to the server, unless libpq has it."""
        has_another = self._found() is not None and not self._is_between()
        if has_another or self._server is None or self._libpq is None:
            self._close()
            return None
        self._pg.finish()
        self._pump(self._server, self._libpq)
        left, self._server = self._server, None
        self._close()
        return left

    def _is_between(self) -> bool:
        """Whether libpq has our socket. To try without TLS it connects another."""
        return self._found() == self._place

    def _found(self) -> tuple[int, int] | None:
        try:
            found = os.fstat(self._pg.socket)
        except Exception:  # noqa: BLE001 - psycopg says it in its own way
            return None
        return found.st_dev, found.st_ino

    def _step_between(self) -> None:
        if sys.platform == "win32":
            return
        number = self._pg.socket
        anyio.notify_closing(number)  # what the event loop knows of this number was about the other socket
        self._server = socket.socket(fileno=os.dup(number))
        self._server.setblocking(False)  # noqa: FBT003 - the name of the method says what
        self._libpq, theirs = socket.socketpair()
        self._libpq.setblocking(False)  # noqa: FBT003
        with theirs:
            theirs.setblocking(False)  # noqa: FBT003
            os.dup2(theirs.fileno(), number, inheritable=False)
        self._place = self._found()
        self._number = number
        self._poll = poll()
        self._poll.register(number, POLLIN)
        self._poll.register(self._libpq, POLLIN)

    def _pump(self, server: socket.socket, libpq: socket.socket) -> bool:
        try:
            while True:
                self._unsent = self._unsent or libpq.recv(_WRITTEN)
                if not self._unsent:
                    return True
                self._unsent = self._unsent[server.send(self._unsent) :]
        except BlockingIOError:
            return not self._unsent
        except OSError:  # the server is gone: what can still be read says why
            self._unsent = b""
            return True

    async def _sent(self) -> None:
        while self._server is not None and self._libpq is not None and not self._pump(self._server, self._libpq):
            await anyio.wait_writable(self._server)
        await checkpoint()

    def _count(self, size: int) -> None:
        self.others += size
        self._may_come -= size
        if self._may_come < 0:
            raise Unreachable(f"the server sends more than {BESIDES // 1024} KiB that nobody asked for")

    def _close(self) -> None:
        for each in (self._server, self._libpq):
            if each is not None:
                each.close()
        self._server = self._libpq = None
        self._unsent = b""
