"""Datagrams to and from the very address that was chosen: asked, asked again, counted, and closed whatever happens."""

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
"""Seconds without an answer after which a datagram is taken for lost."""

REST_AFTER: Final = 200
"""Datagrams of others, as many as wait in a socket. Among more of them an answer may have got lost."""

REST: Final = 0.01
"""Seconds in which none are received then, which would cost others their turns."""


class Datagrams:
    """A datagram socket that is connected to one address and port: what comes from elsewhere is not received."""

    def __init__(self, connection: socket.socket, at: Attempt, budget: Budget) -> None:
        self._socket = connection
        self._at = at
        self._budget = budget
        self._strays = 0

    async def send(self, data: bytes) -> None:
        """Send a datagram. Raises OSError, also for the one before it."""
        await sent(self._socket, data)

    async def receive(self) -> bytes:
        """Receive the next datagram. Raises OSError."""
        await checkpoint()  # or one who sends without a pause would have the event loop for itself
        while True:
            try:
                return self._socket.recv(LARGEST)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)

    async def ask(self, question: Callable[[], bytes], understood: Callable[[bytes], T | None]) -> T:
        """Send a question, again each time it may have been lost, until something is `understood`, which is not None.

        That completes the phase "connect". Anybody may send what is not understood, under the server's address: it is
        passed over. If it is so much that an answer may have got lost in it, a timeout says nothing about the server.
        Raises OSError, CheckFailed, and TimeoutError if there is another address to try and this one has had its time.
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
        """Count a datagram that answers nothing of ours. After many of them others have their turn for a moment."""
        self._strays += 1
        if self._strays % REST_AFTER == 0:
            self._at.watch.doubt = f"{self._strays:,} datagrams have come that answer no question of ours"
            with anyio.move_on_after(REST):
                await anyio.sleep_forever()


@contextmanager
def datagrams(at: Attempt, port: int, budget: Budget) -> Iterator[Datagrams]:
    """Open a socket for datagrams to and from the address for as long as the body runs. Raises OSError."""
    family, place = place_of(at.address, port)
    with socket.socket(family, socket.SOCK_DGRAM) as connection:
        connection.settimeout(0)
        connection.connect(place)
        yield Datagrams(connection, at, budget)
