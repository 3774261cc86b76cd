"""Datagrams to and from one address."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from ..contract import Attempt
from .budget import Budget
from .wire import place_of, sent

T = TypeVar("T")

LARGEST: Final = 65_535
ASKED_AGAIN_AFTER: Final = 1.5
"""Seconds after which a datagram counts as lost."""

REST_AFTER: Final = 200
"""Foreign datagrams that may fill a socket."""

REST: Final = 0.01
"""Seconds, for other tasks, when a socket is flooded."""


class Datagrams:
    """A socket that receives from one address and port alone."""

    def __init__(self, connection: socket.socket, at: Attempt, budget: Budget) -> None:
        self._socket = connection
        self._at = at
        self._budget = budget
        self._strays = 0

    async def send(self, data: bytes) -> None:
        """Send a datagram. Raises OSError, also of the datagram before."""
        await sent(self._socket, data)

    async def receive(self) -> bytes:
        """Receive the next datagram. Raises OSError."""
        await checkpoint()  # or a peer that sends without a pause would have the event loop for itself
        while True:
            try:
                return self._socket.recv(LARGEST)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)

    async def ask(self, question: Callable[[], bytes], understood: Callable[[bytes], T | None]) -> T:
        """Send a question, again when it may be lost, until `understood` returns a value. Completes the phase
        "connect".

        Skips other datagrams: the address can be forged. After too many, a timeout says nothing about the server.
        Raises OSError, CheckFailed, and TimeoutError if its time is over and another address follows.
        """
        with self._at.watch.measure("connect"), anyio.fail_after(None if self._at.is_last else self._at.connect_within):
            while True:
                await self.send(question())
                with anyio.move_on_after(ASKED_AGAIN_AFTER):
                    return await self._until(understood)

    async def _until(self, understood: Callable[[bytes], T | None]) -> T:
        while True:
            data = await self.receive()
            found = understood(data)
            if found is not None:
                self._budget.read(len(data))
                return found
            await self._pass_over()

    async def _pass_over(self) -> None:
        self._strays += 1
        if self._strays % REST_AFTER == 0:
            self._at.watch.doubt = f"{self._strays:,} datagrams have come that answer no question of ours"
            with anyio.move_on_after(REST):
                await anyio.sleep_forever()


@contextmanager
def datagrams(at: Attempt, port: int, budget: Budget) -> Iterator[Datagrams]:
    """Open a socket while the body runs. Raises OSError."""
    family, place = place_of(at.address, port)
    with socket.socket(family, socket.SOCK_DGRAM) as connection:
        connection.settimeout(0)
        connection.connect(place)
        yield Datagrams(connection, at, budget)
