"""One HTTP request and its answer, within bounds. A connection has one exchange.

A body is read to its end: closing over unread bytes might lose the answer. With 100-continue, long bodies are refused
unsent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Final

import anyio
import h11
from anyio.abc import SocketStream
from attrs import frozen

MOST_HEAD: Final = 16 * 1024
MOST_FIELDS: Final = 64
MOST_BODY: Final = 16 * 1024
"""Bytes kept."""

MOST_READ: Final = 16 * 1024 * 1024
"""Bytes of a body. Longer bodies are refused."""

WITHIN: Final = 10.0
"""Seconds for a whole request. Where the body is read piece by piece, for the head."""

BODY_WITHIN: Final = 40.0
"""Seconds for a body that is read piece by piece."""

SENT_WITHIN: Final = 30.0
"""Seconds in which the peer must take a piece of an answer."""

LINGER: Final = 1.0
"""Seconds to read on, so that the answer arrives."""

LINGER_WITHOUT_PLACE: Final = 0.1
"""Seconds, for a connection that gave way."""

AGAIN_AFTER: Final = 5
"""Seconds to wait after 503."""

_PIECE: Final = 64 * 1024
_PIECE_OF_HEAD: Final = 2 * 1024
"""A head may exceed its bound by one piece."""

Headers = Sequence[tuple[bytes, bytes]]


@frozen
class HttpRequest:
    """A request. `body`: its beginning."""

    method: str
    target: str
    body: bytes


@frozen
class HttpAnswer:
    """An answer. `text`: one line."""

    status: int
    text: str
    fields: tuple[tuple[str, str], ...] = ()


class RequestRefused(Exception):
    """A request cannot be read. `answer` says why."""

    def __init__(self, answer: HttpAnswer) -> None:
        super().__init__(answer.text)
        self.answer = answer


class PeerSlow(OSError):
    """The peer does not take the answer."""


def send_again(why: str) -> HttpAnswer:
    """Answer why a request must be sent again."""
    return HttpAnswer(503, f"{why}: send it again", (("Retry-After", str(AGAIN_AFTER)),))


class Exchange:
    """One request and its answer over a connection. Call `head` first."""

    def __init__(self, stream: SocketStream) -> None:
        self.stream = stream
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD)
        self._read = 0
        self._is_head = False
        self.is_read = False
        """Whether the whole request was read."""
        self.is_begun = False
        """Whether an answer was begun."""

    async def head(self) -> h11.Request:
        """Read the head. Raises RequestRefused, or EndOfStream or OSError if the peer has gone."""
        event = await self._next(_PIECE_OF_HEAD)
        if not isinstance(event, h11.Request):
            raise anyio.EndOfStream
        self._is_head = event.method == b"HEAD"
        _check(event)
        if not any(_lengths(event)) and b"transfer-encoding" not in {name for name, _ in event.headers}:
            self._http.next_event()  # its end
            self.is_read = True
        return event

    async def piece(self) -> bytes | None:
        """Read a piece of the body. None: its end. Raises as `head`."""
        if self.is_read:
            return None
        event = await self._next(_PIECE)
        if isinstance(event, h11.Data):
            self._read += len(event.data)
            _refuse_long(self._read)
            return bytes(event.data)
        if isinstance(event, h11.EndOfMessage):
            self.is_read = True
            return None
        raise anyio.EndOfStream

    async def _next(self, most: int) -> object:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as exc:
                raise RequestRefused(HttpAnswer(exc.error_status_hint, "this is no request")) from exc
            if event is not h11.NEED_DATA:
                return event
            if self._http.they_are_waiting_for_100_continue:
                proceed = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
                await self.stream.send(self._http.send(proceed) or b"")
            self._http.receive_data(await _received(self.stream, most))

    async def begin(self, status: int, headers: Headers, data: bytes, *, is_whole: bool) -> None:
        """Send the head of the answer, and its first piece. `is_whole`: no other piece follows."""
        self.is_begun = True
        named = {name.lower() for name, _ in headers}
        fields = [*headers, (b"connection", b"close")]
        if is_whole and not named & {b"content-length", b"transfer-encoding"} and not _has_no_body(status):
            fields.append((b"content-length", str(len(data)).encode()))
        head = h11.Response(status_code=status, headers=fields, reason=_reason(status))
        await self._send(self._http.send(head) or b"", data, is_whole=is_whole)

    async def go_on(self, data: bytes, *, is_last: bool) -> None:
        """Send another piece of the answer."""
        await self._send(b"", data, is_whole=is_last)

    async def _send(self, before: bytes, data: bytes, *, is_whole: bool) -> None:
        sent = before
        if data and not self._is_head:
            sent += self._http.send(h11.Data(data=data)) or b""
        if is_whole and not self._is_head:
            sent += self._http.send(h11.EndOfMessage()) or b""
        for start in range(0, len(sent), _PIECE):
            with anyio.move_on_after(SENT_WITHIN) as waiting:
                await self.stream.send(sent[start : start + _PIECE])
            if waiting.cancelled_caught:
                msg = f"the peer has taken nothing for {SENT_WITHIN:g} s"
                raise PeerSlow(msg)
        if is_whole:
            await self.stream.send_eof()

    async def answer(self, answer: HttpAnswer) -> None:
        """Send a whole answer of text, unless one was begun."""
        if not self.is_begun:
            self.is_begun = True
            await send_answer(self.stream, answer, is_head=self._is_head)


async def read_request(exchange: Exchange) -> HttpRequest:
    """Read one small request as a whole. Raises as `Exchange.head`."""
    with anyio.move_on_after(WITHIN):
        request = await exchange.head()
        body = bytearray()
        while (piece := await exchange.piece()) is not None:
            body += piece[: MOST_BODY - len(body)]
        return HttpRequest(request.method.decode("ascii"), request.target.decode("latin-1"), bytes(body))
    raise RequestRefused(HttpAnswer(408, f"the request did not end within {WITHIN:g} s"))


async def _received(stream: SocketStream, most: int = _PIECE) -> bytes:
    try:
        return await stream.receive(most)
    except anyio.EndOfStream:
        return b""


def _check(request: h11.Request) -> None:
    """Raise RequestRefused for what a proxy in front might read in another way."""
    names = [name for name, _ in request.headers]
    if len(names) > MOST_FIELDS:
        raise RequestRefused(HttpAnswer(431, f"a request may have {MOST_FIELDS} fields"))
    if b"transfer-encoding" in names and b"content-length" in names:
        raise RequestRefused(HttpAnswer(400, "a request has Content-Length or Transfer-Encoding, not both"))
    _refuse_long(max(_lengths(request), default=0))


def _lengths(request: h11.Request) -> Iterable[int]:
    return (int(value) for name, value in request.headers if name == b"content-length")


def _refuse_long(length: int) -> None:
    if length > MOST_READ:
        raise RequestRefused(HttpAnswer(413, f"a body may have {MOST_READ // 2**20} MiB"))


async def send_answer(stream: SocketStream, answer: HttpAnswer, *, is_head: bool = False) -> None:
    """Send the only answer. `is_head`: without a body."""
    await stream.send(bytes_of(answer, is_head=is_head))
    await stream.send_eof()


async def linger(stream: SocketStream, seconds: float = LINGER) -> None:
    """Read on: closing at once might revoke the answer."""
    with anyio.move_on_after(seconds):
        for _ in range(MOST_READ // _PIECE):
            if not await _received(stream):
                return


def bytes_of(answer: HttpAnswer, *, is_head: bool = False) -> bytes:
    """Write an answer."""
    body = f"{answer.text}\n".encode()
    fields = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body)), "Connection": "close"}
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in (*fields.items(), *answer.fields)]
    return "\r\n".join([*lines, "", ""]).encode() + (b"" if is_head else body)


def _has_no_body(status: int) -> bool:
    return status in {204, 304} or status < 200  # noqa: PLR2004 - as RFC 9110 says


def _reason(status: int) -> bytes:
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b""
