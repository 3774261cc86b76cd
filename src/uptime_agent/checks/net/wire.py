"""A connection to one address, counted and always closed."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint
from anyio.streams.tls import TLSStream

from ...text import address_family
from ..contract import Attempt, Stopwatch
from .budget import Budget

LARGEST_READ: Final = 65_536
_NUMERIC: Final = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
_UNDER_WAY: Final = {errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EAGAIN, errno.EALREADY}


class SocketWire(ByteStream):
    """A socket as a stream with a budget. Nothing is read ahead."""

    def __init__(self, connection: socket.socket, budget: Budget) -> None:
        self._socket = connection
        self._budget = budget
        self._is_quiet = False
        """Nothing came since we sent."""

    async def receive(self, max_bytes: int = LARGEST_READ) -> bytes:
        """Receive bytes. Raises EndOfStream, OSError, and CheckFailed if the budget is spent."""
        data = None if self._is_quiet else self._read(max_bytes)
        self._is_quiet = False
        if data is not None:
            await checkpoint()  # or a target that sends without a pause would have the event loop for itself
        while data is None:
            await anyio.wait_readable(self._socket)
            data = self._read(max_bytes)
        if not data:
            raise anyio.EndOfStream
        self._budget.read(len(data))
        return data

    def _read(self, max_bytes: int) -> bytes | None:
        try:
            return self._socket.recv(max_bytes)
        except BlockingIOError:
            return None

    async def send(self, item: bytes) -> None:
        """Send all bytes."""
        self._is_quiet = True
        left = memoryview(item)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                await anyio.wait_writable(self._socket)

    async def send_eof(self) -> None:
        """Say that nothing more follows."""
        self._socket.shutdown(socket.SHUT_WR)

    async def aclose(self) -> None:
        """Close at once."""
        self._socket.close()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        """There are none."""
        return {}


@asynccontextmanager
async def dialled(
    at: Attempt, port: int, budget: Budget, *, tls: ssl.SSLContext | None = None, host: str = ""
) -> AsyncIterator[ByteStream]:
    """Connect while the body runs, with `tls` to a peer called `host`.

    Raises OSError, also ssl.SSLError, and TimeoutError if its time is over.
    """
    with at.watch.measure("connect"):
        if at.is_last:
            wire = await connect(at.address, port, budget)
        else:
            with anyio.fail_after(at.connect_within):
                wire = await connect(at.address, port, budget)
    try:
        if tls is None:
            yield wire
            return
        yield await secured(wire, at.watch, tls, host)
    finally:
        await wire.aclose()


async def secured(stream: ByteStream, watch: Stopwatch, tls: ssl.SSLContext, host: str) -> ByteStream:
    """Begin TLS. The stream's opener closes it."""
    with watch.measure("tls"):
        return await TLSStream.wrap(
            stream, server_side=False, hostname=host, ssl_context=tls, standard_compatible=False
        )


async def connect(address: str, port: int, budget: Budget) -> SocketWire:
    """Connect to an address; nothing is looked up."""
    family, place = place_of(address, port)
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(0)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        error = connection.connect_ex(place)
        if error in _UNDER_WAY:
            await anyio.wait_writable(connection)
            error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))  # noqa: TRY301 - with the socket still to be closed
    except BaseException:
        connection.close()
        raise
    return SocketWire(connection, budget)


def place_of(address: str, port: int) -> tuple[int, tuple[Any, ...]]:
    """An address's family and arguments of `connect`."""
    version = address_family(address)
    if version is None or "%" in address:
        family, _, _, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=_NUMERIC)[0]
        return family, place
    return (socket.AF_INET if version == 4 else socket.AF_INET6), (address, port)  # noqa: PLR2004 - of IP


async def sent(connection: socket.socket, data: bytes) -> None:
    """Send a datagram. Raises OSError, also of the datagram before."""
    while True:
        try:
            connection.send(data)
        except BlockingIOError:
            await anyio.wait_writable(connection)
        else:
            return
