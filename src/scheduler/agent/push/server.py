"""HTTP for signals: a request on a connection of its own, and the same answer whatever it says.

    /push/TOKEN         it is well              /push/TOKEN/start    it has begun
    /push/TOKEN/fail    it is not               /push/TOKEN/log      a line for its history
    /push/TOKEN/3       it exited with 3        ?rid=ID              which run of it: then its duration is known

GET, HEAD, POST and PUT do the same. The beginning of a body is kept with the signal. The answer comes once the signal
is stored, with what follows from it: who has heard OK need not send it again, whatever happens to us. A token that
nobody has is answered like one that somebody has, so that nobody learns which there are.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from logging import getLogger
from typing import Final
from urllib.parse import parse_qs

import anyio
import h11
from anyio.abc import Listener, SocketStream
from attrs import frozen

from timerqueue import Clock

from ..checks import LONGEST_LOG, Said, Signal, log_of

logger = getLogger(__name__)

MOST_HEAD: Final = 16 * 1024
MOST_BODY: Final = 16 * 1024
"""Bytes of a body that are read; what comes after that is not."""

MOST_CONNECTIONS: Final = 100
MOST_WAITING: Final = 200
"""Connections that wait until fewer are open. Those beyond are closed: checks need descriptors too."""

WITHIN: Final = 5.0
"""Seconds that a whole request may take, with its wait."""

_PIECE: Final = 2048
_METHODS: Final = frozenset({b"GET", b"HEAD", b"POST", b"PUT"})
_PATH: Final = re.compile(r"/push/([A-Za-z0-9_-]{1,200})(?:/(start|fail|log|[0-9]{1,3}))?")
_RUN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HIGHEST_CODE: Final = 255

Take = Callable[[str, Signal], Awaitable[None]]
"""A call that returns once a signal is stored. Raises NotKept."""


class NotKept(Exception):
    """A signal could not be stored. Whoever sent it should send it again."""


class NotListening(Exception):
    """Signals cannot come in there. The text says why."""


async def listen(host: str, port: int) -> Listener[SocketStream]:
    """Listen at an address of this machine. Raises NotListening."""
    try:
        return await anyio.create_tcp_listener(local_host=host, local_port=port)
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        raise NotListening(f"cannot listen for signals at {host} port {port}: {reason}") from None


@frozen
class _Request:
    method: bytes
    target: str
    body: bytes


async def serve(listener: Listener[SocketStream], clock: Clock, take: Take) -> None:
    """Take signals until cancelled. `take` is awaited with each, and with the token that came with it."""
    room = anyio.CapacityLimiter(MOST_CONNECTIONS)

    async def handle(stream: SocketStream) -> None:
        async with stream:
            if room.statistics().tasks_waiting >= MOST_WAITING:
                return
            with anyio.move_on_after(WITHIN):
                try:
                    async with room:
                        await _exchange(stream, clock, take)
                except (anyio.BrokenResourceError, anyio.EndOfStream, h11.ProtocolError, OSError) as exc:
                    logger.debug("a request for a push target came to nothing: %s", exc)

    await listener.serve(handle)


async def _exchange(stream: SocketStream, clock: Clock, take: Take) -> None:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD)
    try:
        request = await _read(stream, connection)
    except h11.RemoteProtocolError as exc:
        await _answer(stream, connection, exc.error_status_hint, b"")
        return
    code = 405 if request.method not in _METHODS else await _taken(request, clock.wall(), take)
    await _answer(stream, connection, code, b"" if request.method == b"HEAD" else b"OK\n" if code == 200 else b"")  # noqa: PLR2004


async def _taken(request: _Request, now: float, take: Take) -> int:
    """Take the signal of a request, and say with which status to answer."""
    path, _, query = request.target.partition("?")
    found = _PATH.fullmatch(path)
    if found is None:
        return 404
    said, code = _said(found[2])
    if said is None:
        return 404
    run = next(iter(parse_qs(query, max_num_fields=10).get("rid", ())), None) if len(query) <= LONGEST_LOG else None
    run = run if run is not None and _RUN.fullmatch(run) else None
    try:
        await take(found[1], Signal(said=said, at=now, run=run, code=code, log=log_of(request.body)))
    except NotKept:
        return 503
    return 200


def _said(word: str | None) -> tuple[Said | None, int | None]:
    if word is None:
        return Said.SUCCESS, None
    if not word.isdigit():
        return Said(word), None
    code = int(word)
    if code > _HIGHEST_CODE:
        return None, None
    return (Said.FAIL if code else Said.SUCCESS), code


async def _read(stream: SocketStream, connection: h11.Connection) -> _Request:
    """Read one request, up to MOST_BODY of its body."""
    request: h11.Request | None = None
    body = b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive(_PIECE))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        if request is not None and (isinstance(event, h11.EndOfMessage) or len(body) >= MOST_BODY):
            return _Request(request.method, request.target.decode("latin-1"), body[:MOST_BODY])
        if isinstance(event, h11.ConnectionClosed):
            raise anyio.EndOfStream


async def _answer(stream: SocketStream, connection: h11.Connection, status: int, body: bytes) -> None:
    headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body))), ("Connection", "close")]
    data = connection.send(h11.Response(status_code=status, headers=headers)) or b""
    data += connection.send(h11.Data(data=body)) or b""
    await stream.send(data)
