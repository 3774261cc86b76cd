"""TCP: something accepts connections there and, where asked to, says what it should."""

from __future__ import annotations

from typing import Final

import anyio
from anyio.abc import ByteStream
from attrs import frozen

from ..readers import text
from ..result import Finding
from ..trouble import CheckFailed
from ..url import Url
from .check import Attempt, Kind

MOST_READ: Final = 64 * 1024
"""Bytes that are looked through for the expected text."""


@frozen(kw_only=True)
class TcpCheck:
    """Connects; sends `send` if there is any; reads until `expect` turns up if it is given."""

    url: Url
    send: str | None = None
    expect: str | None = None

    @property
    def secrets(self) -> frozenset[str]:
        """What must not be shown or logged."""
        return self.url.secrets

    async def attempt(self, at: Attempt) -> Finding:
        """Up if it accepts the connection and, where asked to, answers as expected."""
        with at.watch.measure("connect"), anyio.fail_after(at.connect_within):
            stream = await anyio.connect_tcp(at.address, self.url.port)
        async with stream:
            if self.send is not None:
                with at.watch.measure("send"):
                    await stream.send(self.send.encode())
            if self.expect is not None:
                with at.watch.measure("receive"):
                    await _read_until(stream, self.expect)
        return Finding()


async def _read_until(stream: ByteStream, expected: str) -> None:
    """Return once the text has come. Raises CheckFailed if it does not."""
    received = bytearray()
    while expected.encode() not in received:
        try:
            received += await stream.receive()
        except anyio.EndOfStream:
            raise CheckFailed(f'closed after {len(received):,} bytes without "{expected}"') from None
        except anyio.BrokenResourceError as exc:
            raise CheckFailed(f'broke off after {len(received):,} bytes without "{expected}"') from exc
        if len(received) > MOST_READ:
            raise CheckFailed(f'sent more than {MOST_READ:,} bytes without "{expected}"')


TCP: Final = Kind("tcp", {"tcp": None}, TcpCheck, {"send": text, "expect": text})
