"""HTTP for signals: a request on a connection of its own, and the same answer whatever it says.

    /push/TOKEN         it is well              /push/TOKEN/start    it has begun
    /push/TOKEN/fail    it is not               /push/TOKEN/log      a line for its history
    /push/TOKEN/3       it exited with 3        ?rid=ID              which run of it: then its duration is known

POST and PUT do the same. GET and HEAD do so only where the configuration says it: browsers, crawlers and previews of
links send them unasked. Else they are a line for the history, which says why they do not count. The beginning of a body
is kept with the signal. The answer comes once the signal is stored, with what follows from it: who has heard OK need
not send it again, whatever happens to us. A token that nobody has is answered like one that somebody has, so that
nobody learns which there are.

Whatever comes in over a connection, and whatever goes wrong with it, ends its own exchange and nothing else.
"""

from __future__ import annotations

import math
import os
import re
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from logging import getLogger
from typing import Final

import anyio
from anyio.abc import SocketStream

from timerqueue import Clock

from ..checks import Said, Signal, log_of
from .descriptors import Spare
from .exchange import (
    LINGER_WITHOUT_PLACE,
    MOST_HEAD,
    Answer,
    Refused,
    Request,
    bytes_of,
    linger,
    read_request,
    send_again,
    send_answer,
)
from .peers import Peers, Place, peer_of

logger = getLogger(__name__)

BACKLOG: Final = 1_024
PAUSE: Final = 0.1
"""Seconds after which connections are accepted again that could not even be refused."""

STEP: Final = 0.05
"""Seconds: answers to signals leave at multiples of them after their requests."""

QUIET: Final = 300.0
"""Seconds without such trouble, after which it is told of anew."""

_POSTS: Final = frozenset({"POST", "PUT"})
_GETS: Final = frozenset({"GET", "HEAD"})
_PATH: Final = re.compile(r"/push/([A-Za-z0-9_-]{1,200})(?:/(start|fail|log|[0-9]{1,3}))?")
_RUN: Final = re.compile(r"(?:^|&)rid=([A-Za-z0-9_-]{1,64})(?:&|$)")
_HIGHEST_CODE: Final = 255

_OK: Final = Answer(200, "OK")
_NOT_FOUND: Final = Answer(404, "there is nothing here: signals go to /push/TOKEN")
_NO_SUCH_METHOD: Final = Answer(405, "signals are sent by POST", (("Allow", "POST, PUT"),))
NOT_BY_GET: Final = "a GET, which is no signal: send it by POST, or say get = true in [push]"
NO_ROOM: Final = send_again("too many connections are open here")

Take = Callable[[str, Signal, str], Awaitable[bool]]
"""Takes a signal that came with a token from a peer, and returns once it is stored: whether a target has that token.
Raises NotKept.
"""


class NotKept(Exception):
    """A signal could not be stored. Whoever sent it should send it again."""


class NotListening(Exception):
    """Signals cannot come in there. The text says why."""


def listen(host: str, port: int) -> socket.socket:
    """Listen at an address of this machine. Raises NotListening."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as exc:
        reason = (os.strerror(exc.errno) if exc.errno else str(exc)).lower()  # its own text repeats the address
        raise NotListening(f"cannot listen for signals at {host} port {port}: {reason}") from None
    listener.settimeout(0)
    return listener


class Server:
    """The push port. `take` is awaited with each signal. `say` is told when signals may be lost. `takes_get`: whether a
    GET is a signal.
    """

    def __init__(
        self, clock: Clock, take: Take, peers: Peers, say: Callable[[str], None], *, takes_get: bool = False
    ) -> None:
        self._clock = clock
        self._take = take
        self._peers = peers
        self._say = say
        self._takes_get = takes_get
        self._took = 0.0
        """Seconds that the last signal of a target took."""
        self._told: dict[str, float] = {}
        """When each trouble came last, by the clock that is never set."""

    async def serve(self, listener: socket.socket) -> None:
        """Take signals until cancelled."""
        with Spare() as spare:
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

    # -- connections ---------------------------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> socket.socket | OSError | None:
        """Accept a connection: it, or why none can be accepted. None: there is none after all."""
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionError):
            return None
        except OSError as exc:
            return exc
        connection.settimeout(0)
        return connection

    async def _without_descriptors(self, listener: socket.socket, spare: Spare, why: OSError) -> None:
        """Refuse a connection with the descriptor that is kept for that, or wait a moment if even that is gone."""
        self._peers.deaf()
        self._tell("signals of push targets cannot be accepted", why.strerror or str(why))
        with spare.lent() as is_there:
            refused = self._accept(listener) if is_there else None
            if isinstance(refused, socket.socket):
                _refuse(refused)
                return
        await self._clock.sleep(PAUSE)

    def _admit(self, connection: socket.socket, scope: anyio.CancelScope) -> Place | None:
        """Find a place for a connection. None: there was none, and it has been told so."""
        try:
            peer = peer_of(connection.getpeername()[0])
        except OSError:  # it has gone already
            connection.close()
            return None
        lost = self._peers.lost
        place = self._peers.enter(peer, scope.cancel)
        if self._peers.lost > lost:
            self._tell("signals of push targets may be turned away", "too many connections are open to the push port")
        if place is None:
            _refuse(connection)
        return place

    async def _attend(self, connection: socket.socket, place: Place, scope: anyio.CancelScope) -> None:
        """Have one exchange. This is the boundary: nothing that happens in there goes any further."""
        try:
            with connection:
                async with await _opened(connection) as stream:
                    await self._exchange(stream, place, scope)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError) as exc:
            logger.debug("a request for a push target came to nothing: %s", exc)
        except Exception as exc:
            if self._is_news(f"a defect: {type(exc).__name__}"):
                logger.exception("a request for a push target could not be served; others can")
        finally:
            self._peers.left(place)

    async def _exchange(self, stream: SocketStream, place: Place, scope: anyio.CancelScope) -> None:
        answer, is_head = NO_ROOM, False
        with scope:
            try:
                request = await read_request(stream)
                if not scope.cancel_called:
                    place.is_heard = True
                    is_head = request.method == "HEAD"
                    answer = await self._answer(request, place.peer)
            except Refused as exc:
                answer = exc.answer
            await send_answer(stream, answer, is_head=is_head)
            place.is_answered = True
            await linger(stream)
        if not place.is_answered:  # it had to give way
            await send_answer(stream, NO_ROOM)
            await linger(stream, LINGER_WITHOUT_PLACE)

    def _tell(self, what: str, why: str) -> None:
        if self._is_news(what):
            self._say(f"{what}, and their senders are told to send them again: {why}")

    def _is_news(self, trouble: str) -> bool:
        """Whether a trouble is to be told of: it has not been there for a while."""
        now = self._clock.monotonic()
        before, self._told[trouble] = self._told.get(trouble), now
        return before is None or now - before > QUIET

    # -- signals -------------------------------------------------------------------------------------------------------

    async def _answer(self, request: Request, peer: str) -> Answer:
        """Take the signal of a request, and answer it."""
        path, _, query = request.target.partition("?")
        found = _PATH.fullmatch(path)
        said, code = (None, None) if found is None else _said(found[2])
        if found is None or said is None:
            return _NOT_FOUND
        if request.method not in _POSTS | _GETS:
            return _NO_SUCH_METHOD
        run, now = _RUN.search(query), self._clock.wall()
        counts = self._takes_get or request.method in _POSTS
        signal = Signal(said=Said.LOG, at=now, log=NOT_BY_GET)
        if counts:
            signal = Signal(said=said, at=now, run=run and run[1], code=code, log=log_of(request.body))
        began, is_ours = self._clock.monotonic(), False
        try:
            is_ours = await self._take(found[1], signal, peer)
            answer = _OK if counts else _NO_SUCH_METHOD
        except NotKept as exc:
            answer = send_again(str(exc))
        await self._wait(began, is_ours=is_ours)
        return answer

    async def _wait(self, began: float, *, is_ours: bool) -> None:
        """Wait until an answer may leave: the time that it takes tells nobody whether a target has the token. One that
        nobody has takes as long as the last one that a target had, and all are rounded up.
        """
        took = self._clock.monotonic() - began
        if is_ours:
            self._took = took
        await self._clock.sleep(math.ceil(max(took, self._took, STEP) / STEP) * STEP - took)


async def _opened(connection: socket.socket) -> SocketStream:
    """Make a stream of an accepted connection. Raises BrokenResourceError if its peer has gone meanwhile."""
    try:
        return await SocketStream.from_socket(connection)
    except ValueError as exc:
        raise anyio.BrokenResourceError from exc


def _refuse(connection: socket.socket) -> None:
    """Tell a connection, without waiting for it, that there is no room. What it has sent is read, or it is reset."""
    with connection, suppress(OSError):
        with suppress(BlockingIOError):
            connection.recv(MOST_HEAD)
        connection.send(bytes_of(NO_ROOM))
        connection.shutdown(socket.SHUT_WR)


def _said(word: str | None) -> tuple[Said | None, int | None]:
    if word is None:
        return Said.SUCCESS, None
    if not word.isdigit():
        return Said(word), None
    code = int(word)
    if code > _HIGHEST_CODE:
        return None, None
    return (Said.FAIL if code else Said.SUCCESS), code
