"""ICMP echo requests and their answers.

A datagram socket needs a group within the sysctl net.ipv4.ping_group_range. A raw socket needs CAP_NET_RAW, and
receives all messages of the address. So unique bytes, which the answer repeats, identify a request.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from ..contract import Attempt
from .budget import Budget
from .wire import place_of, sent

_HEADER: Final = struct.Struct("!BBHHH")
_REQUEST: Final = {socket.AF_INET: 8, socket.AF_INET6: 128}
_REPLY: Final = {socket.AF_INET: 0, socket.AF_INET6: 129}
_PROTOCOL: Final = {socket.AF_INET: socket.IPPROTO_ICMP, socket.AF_INET6: socket.IPPROTO_ICMPV6}
_TELL_ERRORS: Final = {  # Linux: IP_RECVERR and IPV6_RECVERR, which Python does not name
    socket.AF_INET: (socket.IPPROTO_IP, 11),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 25),
}
_LARGEST: Final = 65_535
_VERSION_4: Final = 4
_NUMBERS: Final = 2**16


class EchoUnsupported(Exception):
    """This process may open neither socket."""


def checksum(data: bytes) -> int:
    """The internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >= _NUMBERS:
        total = (total >> 16) + (total & 0xFFFF)
    return ~total & 0xFFFF


def request(family: int, number: int, mark: bytes) -> bytes:
    """Write an echo request. `mark` identifies its answer."""
    kind = _REQUEST[socket.AddressFamily(family)]
    unsummed = _HEADER.pack(kind, 0, 0, 0, number % _NUMBERS) + mark
    return _HEADER.pack(kind, 0, checksum(unsummed), 0, number % _NUMBERS) + mark


def answered(family: int, data: bytes, mark: bytes) -> int | None:
    """The answered request, if ours. An IP header may precede."""
    if family == socket.AF_INET and data and data[0] >> 4 == _VERSION_4:
        data = data[(data[0] & 0x0F) * 4 :]
    if len(data) < _HEADER.size or data[_HEADER.size :] != mark:
        return None
    kind, code, _, _, number = _HEADER.unpack_from(data)
    return number if kind == _REPLY[socket.AddressFamily(family)] and not code else None


class Echo:
    """A socket for echo requests to one address."""

    def __init__(self, connection: socket.socket, budget: Budget, mark: bytes) -> None:
        self._socket = connection
        self._budget = budget
        self._mark = mark

    async def send(self, number: int) -> None:
        """Send a request. Raises OSError."""
        await sent(self._socket, request(self._socket.family, number, self._mark))

    async def receive(self) -> int:
        """Wait for an answered request's number. Raises OSError, CheckFailed."""
        await checkpoint()
        while True:
            number = self.received()
            if number is not None:
                return number
            await anyio.wait_readable(self._socket)

    def received(self) -> int | None:
        """A request's number, if answered already. Raises OSError, CheckFailed."""
        while True:
            try:
                data = self._socket.recv(_LARGEST)
            except BlockingIOError:
                return None
            self._budget.read(len(data))
            number = answered(self._socket.family, data, self._mark)
            if number is not None:
                return number


@contextmanager
def echo(at: Attempt, budget: Budget, mark: bytes) -> Iterator[Echo]:
    """Open a socket while the body runs. Raises OSError, EchoUnsupported."""
    family, place = place_of(at.address, 0)
    with _opened(family) as connection:
        connection.settimeout(0)
        if sys.platform == "linux":  # or a router's message that the host is unreachable would be lost
            connection.setsockopt(*_TELL_ERRORS[socket.AddressFamily(family)], 1)
        connection.connect(place)
        yield Echo(connection, budget, mark)


def _opened(family: int) -> socket.socket:
    protocol = _PROTOCOL[socket.AddressFamily(family)]
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            return socket.socket(family, kind, protocol)
        except PermissionError:
            continue
    raise EchoUnsupported(
        "unsupported: this process may not send echo requests: let the sysctl net.ipv4.ping_group_range hold its group,"
        " or give it the capability CAP_NET_RAW"
    )
