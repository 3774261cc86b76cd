"""One HTTP request and its answer, within bounds.

A body is read to its end: closing over unread bytes might lose the answer. With 100-continue, long bodies are refused
unsent.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

import anyio
import h11
from anyio.abc import SocketStream
from attrs import frozen

MOST_HEAD: Final = 16 * 1024
MOST_BODY: Final = 16 * 1024
"""Bytes kept."""

MOST_READ: Final = 16 * 1024 * 1024
"""Bytes of a body. Longer bodies are refused."""

WITHIN: Final = 10.0
"""Seconds for a whole request."""

LINGER: Final = 1.0
"""Seconds to read on, so that the answer arrives."""

LINGER_WITHOUT_PLACE: Final = 0.1
"""Seconds, for a connection that gave way."""

AGAIN_AFTER: Final = 5
"""Seconds to wait after 503."""

_PIECE: Final = 64 * 1024
_PIECE_OF_HEAD: Final = 2 * 1024
"""A head may exceed its bound by one piece."""


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


def send_again(why: str) -> HttpAnswer:
    """Answer why a request must be sent again."""
    return HttpAnswer(503, f"{why}: send it again", (("Retry-After", str(AGAIN_AFTER)),))


async def read_request(stream: SocketStream) -> HttpRequest:
    """Read one request. Raises Refused, or EndOfStream or OSError if the peer has gone."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD)
    with anyio.move_on_after(WITHIN):
        try:
            return await _read(stream, connection)
        except h11.RemoteProtocolError as exc:
            raise RequestRefused(HttpAnswer(exc.error_status_hint, "this is no request")) from exc
    raise RequestRefused(HttpAnswer(408, f"the request did not end within {WITHIN:g} s"))


async def _read(stream: SocketStream, connection: h11.Connection) -> HttpRequest:
    request: h11.Request | None = None
    body, length = bytearray(), 0
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:
                proceed = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
                await stream.send(connection.send(proceed) or b"")
            connection.receive_data(await _received(stream, _PIECE_OF_HEAD if request is None else _PIECE))
        elif isinstance(event, h11.Request):
            request = event
            _refuse_long(max(_lengths(event), default=0))
        elif isinstance(event, h11.Data):
            length += len(event.data)
            body += event.data[: MOST_BODY - len(body)]
            _refuse_long(length)
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            return HttpRequest(request.method.decode("ascii"), request.target.decode("latin-1"), bytes(body))
        else:
            raise anyio.EndOfStream


async def _received(stream: SocketStream, most: int = _PIECE) -> bytes:
    try:
        return await stream.receive(most)
    except anyio.EndOfStream:
        return b""


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
