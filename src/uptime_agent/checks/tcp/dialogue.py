"""Dialogues: texts to send over a connection, and the answers to expect.

A text is found anywhere; a pattern, with `*` for any text, must match a line; a regular expression is searched in each.
Greetings may have other lines. When TLS begins, no unread byte may be left: an attacker could have put it there.
"""

from __future__ import annotations

import ssl
from typing import Any, ClassVar, Final

import anyio
from anyio.abc import ByteStream
from attrs import field, frozen

from ...toml import Unfit, text
from ..contract import CheckFailed, Stopwatch
from ..http import Pattern, regex
from ..net import secured

MOST_READ: Final = 64 * 1024
"""Bytes searched in a step."""

MOST_STEPS: Final = 50
_LONGEST: Final = 10_000
_QUOTED: Final = 60
_STEPS: Final = 'a list of steps such as [{ expect = "220 *" }, { send = "QUIT\\r\\n" }, { starttls = true }]'


@frozen
class Expect:
    """Wait for a text or, with `is_pattern`, a line in which `*` is anything."""

    word: ClassVar[str] = "expect"

    text: str
    is_pattern: bool = False
    parts: tuple[bytes, ...] = field(init=False, eq=False, repr=False)

    @parts.default
    def _parts(self) -> tuple[bytes, ...]:
        return tuple(self.text.encode().split(b"*")) if self.is_pattern else (self.text.encode(),)

    def fits(self, line: bytes) -> bool:
        """Compare a whole line, in linear time."""
        first, *middle, last = self.parts
        if len(line) < len(first) + len(last) or not (line.startswith(first) and line.endswith(last)):
            return False
        at, end = len(first), len(line) - len(last)
        for part in middle:
            found = line.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True


@frozen
class Search:
    """Wait for a line that matches."""

    word: ClassVar[str] = "regex"

    regex: Pattern

    @property
    def text(self) -> str:
        """The expression as written."""
        return self.regex.text


@frozen
class Send:
    """Send a text."""

    word: ClassVar[str] = "send"

    text: str


@frozen
class StartTls:
    """Begin TLS."""

    word: ClassVar[str] = "starttls"


Step = Expect | Search | Send | StartTls


def dialogue(value: Any) -> tuple[Step, ...]:
    """Read the steps. Raises Unfit."""
    if not isinstance(value, list) or not 0 < len(value) <= MOST_STEPS:
        raise Unfit(f"{_STEPS}, up to {MOST_STEPS}", value)
    return tuple(_step(each) for each in value)


def _step(value: Any) -> Step:
    match value:
        case {"expect": wanted, **others} if not others:
            expected = _short(wanted)
            return Expect(expected, is_pattern="*" in expected)
        case {"regex": sought, **others} if not others:
            return Search(regex(sought))
        case {"send": said, **others} if not others:
            return Send(_short(said))
        case {"starttls": True, **others} if not others:
            return StartTls()
        case _:
            raise Unfit(_STEPS, value)


def _short(value: Any) -> str:
    found = text(value)
    if len(found) > _LONGEST:
        raise Unfit(f"at most {_LONGEST:,} characters", value)
    return found


class Conversation:
    """Keeps received bytes that no step has used."""

    def __init__(self, stream: ByteStream, watch: Stopwatch) -> None:
        self._stream = stream
        self._watch = watch
        self._received = bytearray()
        self._where = ""

    def begin(self, where: str) -> None:
        """Begin a step; `where` precedes its errors."""
        self._where = where
        self._watch.heard = f"{where}no answer" if where else None

    async def send(self, said: str) -> None:
        """Send a text."""
        with self._watch.measure("send"):
            await self._stream.send(said.encode())

    async def start_tls(self, context: ssl.SSLContext, host: str) -> ByteStream:
        """Continue over TLS. Raises CheckFailed if unread bytes are left."""
        if self._received:
            raise self._failed(f"said more before TLS began: {_quoted(bytes(self._received).rstrip())}")
        self._stream = await secured(self._stream, self._watch, context, host)
        return self._stream

    async def expect(self, wanted: Expect | Search) -> None:
        """Read until it comes. Raises CheckFailed."""
        with self._watch.measure("receive"):
            if isinstance(wanted, Expect) and not wanted.is_pattern:
                await self._text(wanted)
            else:
                await self._line(wanted)

    async def _text(self, wanted: Expect) -> None:
        (sought,) = wanted.parts
        looked_through = 0
        while (found := self._received.find(sought, looked_through)) < 0:
            looked_through = max(len(self._received) - len(sought) + 1, 0)
            if not await self._more(wanted):
                raise self._failed(f'closed after {len(self._received):,} bytes without "{wanted.text}"')
            self._watch.heard = f'{self._where}{len(self._received):,} bytes without "{wanted.text}"'
        del self._received[: found + len(sought)]

    async def _line(self, wanted: Expect | Search) -> None:
        begin = looked_through = 0
        last: bytes | None = None
        is_open = True
        while is_open or begin < len(self._received):
            end = self._received.find(b"\n", looked_through)
            if end < 0 and is_open:
                looked_through = len(self._received)
                is_open = await self._more(wanted)
                continue
            end = len(self._received) if end < 0 else end
            last = bytes(self._received[begin:end]).removesuffix(b"\r")
            begin = looked_through = end + 1
            if await _is_found(wanted, last):
                del self._received[:begin]
                return
            self._watch.heard = f'{self._where}{_quoted(last)} instead of "{wanted.text}"'
        said = "closed without a word" if last is None else f"closed after {_quoted(last)}"
        raise self._failed(f'{said}, expected "{wanted.text}"')

    async def _more(self, wanted: Expect | Search) -> bool:
        if len(self._received) > MOST_READ:
            raise self._failed(f'sent more than {MOST_READ:,} bytes without "{wanted.text}"')
        try:
            self._received += await self._stream.receive()
        except anyio.EndOfStream:
            return False
        return True

    def _failed(self, why: str) -> CheckFailed:
        return CheckFailed(f"{self._where}{why}")


async def _is_found(wanted: Expect | Search, line: bytes) -> bool:
    return wanted.fits(line) if isinstance(wanted, Expect) else await wanted.regex.search(line) is not None


def _quoted(said: bytes) -> str:
    shown = said[: _QUOTED + 1].decode(errors="replace")
    return f'"{shown[:_QUOTED]}..."' if len(shown) > _QUOTED else f'"{shown}"'
