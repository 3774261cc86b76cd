"""TCP: something accepts connections there and, where asked to, says what it should."""

from __future__ import annotations

from typing import Final

import anyio
from anyio.abc import ByteStream
from attrs import frozen

from ..text import Url
from ..toml import text
from .contract import Attempt, CheckFailed, Finding, Kind, Stopwatch
from .net import Budget, dialled

MOST_READ: Final = 64 * 1024
"""Bytes that are looked through for the expected text."""

_LAST_READ: Final = 65_536
"""Bytes that may come with the last of the bytes that are looked through."""


@frozen(kw_only=True)
class TcpCheck:
    """A TCP check: it connects; sends `send` if there is any; reads until `expect` turns up if it is given."""

    url: Url
    send: str | None = None
    expect: str | None = None

    @property
    def secrets(self) -> frozenset[str]:
        """Texts that must not be shown or logged."""
        return self.url.secrets

    async def attempt(self, at: Attempt) -> Finding:
        """Ask: up if the target accepts the connection and, where asked to, answers as expected."""
        async with dialled(at, self.url.port, Budget(MOST_READ + _LAST_READ)) as stream:
            if self.send is not None:
                with at.watch.measure("send"):
                    await stream.send(self.send.encode())
            if self.expect is not None:
                with at.watch.measure("receive"):
                    await _read_until(stream, self.expect, at.watch)
        return Finding()


async def _read_until(stream: ByteStream, expected: str, watch: Stopwatch) -> None:
    """Read until the text has come. Raises CheckFailed if it does not."""
    received, wanted = bytearray(), expected.encode()
    looked_through = 0
    while received.find(wanted, looked_through) < 0:
        looked_through = max(len(received) - len(wanted) + 1, 0)
        try:
            received += await stream.receive()
        except anyio.EndOfStream:
            raise CheckFailed(f'closed after {len(received):,} bytes without "{expected}"') from None
        watch.heard = f'{len(received):,} bytes without "{expected}"'
        if len(received) > MOST_READ:
            raise CheckFailed(f'sent more than {MOST_READ:,} bytes without "{expected}"')


TCP: Final = Kind("tcp", {"tcp": None}, TcpCheck, {"send": text, "expect": text})
