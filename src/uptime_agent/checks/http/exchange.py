"""One HTTP request and its response, with h11; phases, bounds and words are ours.

h11 takes quadratic time for long lines (tests/uptime_agent/test_agent_growth.py counts it). So it gets a header in
slices that were looked through.
"""

from __future__ import annotations

import re
from typing import Final

import h11
from anyio import EndOfStream
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint

from ..contract import CheckFailed, Stopwatch
from ..net import Budget

MOST_HEAD: Final = 32 * 1024
"""Bytes of a header, interim responses included."""

MOST_LINES: Final = 300
SLICE: Final = 2048
MOST_LINE: Final = 1024
"""Bytes of a line between chunks."""

TURN: Final = 64
"""Steps after which other tasks get a turn."""

SWITCHING_PROTOCOLS: Final = 101
_QUOTED: Final = 40
_START: Final = b"HTTP/"
_BLANK_LINE: Final = re.compile(rb"\n\r?\n")
_NOT_IN_A_HEAD: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r[^\n]")

Head = h11.Response | h11.InformationalResponse


class Exchange:
    """One request and response. `watch` measures "send", "first_byte" and, until `end`, "receive"."""

    def __init__(self, stream: ByteStream, watch: Stopwatch, budget: Budget) -> None:
        self._stream = stream
        self._watch = watch
        self._budget = budget
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEAD)
        self._guard = HeadGuard()
        self._head: Head | None = None
        self._data = b""
        self._fed = 0
        self._body = 0
        self._length: int | None = None
        self._has_ended = False

    async def send(self, request: h11.Request, body: bytes = b"") -> None:
        """Send a request."""
        data = self._h11.send(request) or b""
        data += (self._h11.send(h11.Data(body)) or b"") if body else b""
        data += self._h11.send(h11.EndOfMessage()) or b""
        with self._watch.measure("send"):
            await self._stream.send(data)
        self._watch.begin("first_byte")

    async def head(self) -> Head:
        """Read the head after interim responses (100, 103). Raises CheckFailed if it is invalid."""
        await self._feed()  # h11 need not be asked what it makes of nothing
        while True:
            event = await self._next()
            if isinstance(event, h11.Response) or (
                isinstance(event, h11.InformationalResponse) and event.status_code == SWITCHING_PROTOCOLS
            ):
                self._head = event
                self._length = _length_of(event)
                return event

    async def part(self, most: int) -> bytes:
        """Read the body's next part. Empty: that was all, or `most` bytes."""
        is_whole = self._body >= most or self._body == self._length
        if is_whole or not isinstance(self._head, h11.Response):
            return b""
        event = await self._next()
        part = bytes(event.data[: most - self._body]) if isinstance(event, h11.Data) else b""
        self._body += len(part)
        return part

    def end(self) -> None:
        """End the measurement."""
        self._watch.end()

    async def _next(self) -> object:
        while True:
            try:
                event = self._h11.next_event()
            except h11.RemoteProtocolError as exc:
                raise CheckFailed(self._words(exc)) from None
            await self._count()
            if event is not h11.NEED_DATA:
                return event
            if self._head is not None and len(self._h11.trailing_data[0]) > MOST_LINE:
                raise CheckFailed("its body makes no sense as HTTP: a line between its chunks does not end")
            await self._feed()

    async def _count(self) -> None:
        """Pieces over TLS may be tiny, and all there already."""
        self._budget.event()
        if not self._budget.events % TURN:
            await checkpoint()

    async def _feed(self) -> None:
        if self._fed == len(self._data) and not self._has_ended:
            self._data, self._fed = await self._receive(), 0
        piece = self._data[self._fed :] if self._has_no_lines() else self._data[self._fed : self._fed + SLICE]
        self._fed += len(piece)
        if self._head is None and piece:
            self._guard.look(piece)
        self._h11.receive_data(piece)

    async def _receive(self) -> bytes:
        try:
            data = await self._stream.receive()
        except EndOfStream:
            self._has_ended = True
            return b""
        if self._watch.phase == "first_byte":
            self._watch.end()
            self._watch.begin("receive")
        return data

    def _has_no_lines(self) -> bool:
        return self._head is not None and (self._length is not None or not _is_chunked(self._head))

    def _words(self, error: h11.RemoteProtocolError) -> str:
        if self._head is not None and self._has_ended:
            expected = next((value for name, value in self._head.headers if name == b"content-length"), b"")
            of = f" of {int(expected):,}" if expected else ""
            return f"broke off in the middle of its body, after {self._body:,}{of} bytes"
        if self._head is not None:
            return "its body makes no sense as HTTP"
        if self._has_ended:
            return "broke off in the middle of its header" if self._guard.size else "closed without an answer"
        too_long = 431
        return _TOO_LONG if error.error_status_hint == too_long else "its header makes no sense as HTTP"


def _is_chunked(head: Head) -> bool:
    return any(name == b"transfer-encoding" for name, _ in head.headers)


def _length_of(head: Head) -> int | None:
    if _is_chunked(head):
        return None
    return next((int(value) for name, value in head.headers if name == b"content-length"), None)


_TOO_LONG: Final = f"its header is longer than {MOST_HEAD // 1024} KiB"


class HeadGuard:
    """Looks through a header. `size`: bytes so far."""

    def __init__(self) -> None:
        self.size = 0
        self._lines = 0
        self._last = b""

    def look(self, piece: bytes) -> None:
        """Raise CheckFailed if it is no header, or too long."""
        if self.size < len(_START):
            self._check_start((self._last + piece)[:_QUOTED])
        seen = self._last + piece
        blank = _BLANK_LINE.search(seen)
        if blank is not None:
            seen = seen[: blank.end()]
        self.size += len(piece)
        self._lines += seen.count(b"\n", len(self._last))
        if _NOT_IN_A_HEAD.search(seen):
            raise CheckFailed("its header makes no sense as HTTP: it holds control characters")
        if self.size > MOST_HEAD + SLICE:
            raise CheckFailed(_TOO_LONG)
        if self._lines > MOST_LINES:
            raise CheckFailed(f"its header has more than {MOST_LINES} lines")
        self._last = (self._last + piece)[-4:]

    def _check_start(self, start: bytes) -> None:
        if not (start.startswith(_START) or _START.startswith(start)):
            raise CheckFailed(f'its answer is not HTTP, it begins with "{start.decode("latin-1")}"')
