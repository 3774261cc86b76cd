"""An HTTP server with one request per connection. An error ends only its own connection.

So nothing that follows a request is read as another one.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from logging import getLogger
from typing import Final

import anyio
from anyio.abc import SocketStream

from timerqueue import Clock

from .descriptors import SpareDescriptor
from .exchange import (
    LINGER_WITHOUT_PLACE,
    MOST_HEAD,
    Exchange,
    HttpAnswer,
    HttpRequest,
    RequestRefused,
    bytes_of,
    linger,
    read_request,
    send_again,
)
from .peers import Ends, PeerPlace, Peers, peer_of
from .sockets import uid_of

logger = getLogger(__name__)

PAUSE: Final = 0.1
"""Seconds without accepting, when refusing failed too."""

QUIET: Final = 300.0
"""Seconds until a trouble is told again."""

NO_ROOM: Final = send_again("too many connections are open here")

Serve = Callable[[HttpRequest, str], Awaitable[HttpAnswer]]
"""Answers a peer's request."""


Handle = Callable[[Exchange, PeerPlace], Awaitable[None]]
"""Reads the request of an exchange, and answers it."""


def plain(answer: Serve) -> Handle:
    """Make a handler that reads small requests as a whole, and answers each with one line."""

    async def handle(exchange: Exchange, place: PeerPlace) -> None:
        request = await read_request(exchange)
        place.is_heard = True
        await exchange.answer(await answer(request, place.peer))

    return handle


class HttpServer:
    """A server on one port or Unix socket. `handle` may raise any error.

    `say` hears when requests may be lost. `what`, `port`: words for messages.
    """

    def __init__(
        self,
        clock: Clock,
        handle: Handle,
        peers: Peers,
        say: Callable[[str], None],
        *,
        what: str = "requests",
        port: str = "this port",
    ) -> None:
        self._clock = clock
        self._handle = handle
        self._peers = peers
        self._say = say
        self._what = what
        self._port = port
        self._told: dict[str, float] = {}

    async def serve(self, listener: socket.socket) -> None:
        """Answer requests until cancelled."""
        with SpareDescriptor() as spare:
            async with anyio.create_task_group() as group:
                while True:
                    await anyio.wait_readable(listener)
                    accepted = self._accept(listener)
                    if accepted is None:
                        continue
                    if isinstance(accepted, OSError):
                        await self._without_descriptors(listener, spare, accepted)
                        continue
                    scope = anyio.CancelScope()
                    place = self._admit(accepted, scope)
                    if place is not None:
                        group.start_soon(self._attend, accepted, place, scope)

    def _accept(self, listener: socket.socket) -> socket.socket | OSError | None:
        """Returns why none can be accepted. None: it is gone."""
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionError):
            return None
        except OSError as exc:
            return exc
        connection.settimeout(0)
        return connection

    async def _without_descriptors(self, listener: socket.socket, spare: SpareDescriptor, why: OSError) -> None:
        self._peers.deaf()
        self._tell(f"{self._what} cannot be accepted", why.strerror or str(why))
        with spare.lent() as is_there:
            refused = self._accept(listener) if is_there else None
            if isinstance(refused, socket.socket):
                _refuse(refused)
                return
        await self._clock.sleep(PAUSE)

    def _admit(self, connection: socket.socket, scope: anyio.CancelScope) -> PeerPlace | None:
        try:
            peer, ends = _peer_of(connection)
        except OSError:  # it has gone already
            connection.close()
            return None
        lost = self._peers.lost
        place = self._peers.enter(peer, scope.cancel)
        if self._peers.lost > lost:
            self._tell(f"{self._what} may be turned away", f"too many connections are open to {self._port}")
        if place is None:
            _refuse(connection)
            return None
        place.ends = ends
        return place

    async def _attend(self, connection: socket.socket, place: PeerPlace, scope: anyio.CancelScope) -> None:
        """Have one exchange. No error leaves it."""
        try:
            with connection:
                async with await _opened(connection) as stream:
                    await self._exchange(stream, place, scope)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError) as exc:
            logger.debug("a request to %s came to nothing: %s", self._port, exc)
        except Exception as exc:
            if self._is_news(f"a defect: {type(exc).__name__}"):
                logger.exception("a request to %s could not be served; others can", self._port)
        finally:
            self._peers.left(place)

    async def _exchange(self, stream: SocketStream, place: PeerPlace, scope: anyio.CancelScope) -> None:
        exchange = Exchange(stream)
        with scope:
            try:
                await self._handle(exchange, place)
            except RequestRefused as exc:
                await exchange.answer(exc.answer)
            place.is_answered = True
            await linger(stream)
        if not place.is_answered and not exchange.is_begun:  # it had to give way
            await exchange.answer(NO_ROOM)
            await linger(stream, LINGER_WITHOUT_PLACE)

    def _tell(self, what: str, why: str) -> None:
        if self._is_news(what):
            self._say(f"{what}, and their senders are told to send them again: {why}")

    def _is_news(self, trouble: str) -> bool:
        now = self._clock.monotonic()
        before, self._told[trouble] = self._told.get(trouble), now
        return before is None or now - before > QUIET


async def _opened(connection: socket.socket) -> SocketStream:
    """Raises BrokenResourceError if the peer has gone."""
    try:
        # Also for a Unix socket: what anyio has for these fails if one is readable just as its wait is cancelled.
        return await SocketStream.from_socket(connection)
    except ValueError as exc:
        raise anyio.BrokenResourceError from exc


def _peer_of(connection: socket.socket) -> tuple[str, Ends]:
    """Return the peer, and the ends of its connection. Raises OSError if it has gone."""
    if connection.family == socket.AF_UNIX:
        uid = uid_of(connection)
        return "a user" if uid is None else f"uid {uid}", Ends(uid=uid)
    address, local = connection.getpeername()[:2], connection.getsockname()[:2]
    return peer_of(address[0]), Ends(address, local)


def _refuse(connection: socket.socket) -> None:
    """Unread bytes would reset the connection."""
    with connection, suppress(OSError):
        with suppress(BlockingIOError):
            connection.recv(MOST_HEAD)
        connection.send(bytes_of(NO_ROOM))
        connection.shutdown(socket.SHUT_WR)
