"""A document over HTTP, from a third party."""

from __future__ import annotations

import ssl
from typing import Final

import h11
from attrs import frozen

from ...text import Url, our_version
from ..contract import Attempt, CheckFailed
from ..net import Budget, dialled
from .exchange import Exchange

OVERHEAD: Final = 128 * 1024
"""Bytes of header, handshake, chunks."""


@frozen
class Document:
    """A response. `location`: its redirect, or b""."""

    status: int
    location: bytes
    body: bytes


async def fetch(at: Attempt, url: Url, accept: str, most: int, tls: ssl.SSLContext) -> Document:
    """Get a document. Raises OSError, and CheckFailed, also if it exceeds `most` bytes."""
    budget, host = Budget(OVERHEAD + 2 * most), url.seen_by_servers
    context = tls if url.scheme == "https" else None
    async with dialled(at, url.port, budget, tls=context, host=host.host) as stream:
        exchange = Exchange(stream, at.watch, budget)
        await exchange.send(_request(host, accept))
        head = await exchange.head()
        body = bytearray()
        while part := await exchange.part(most + 1):
            body += part
        exchange.end()
    if len(body) > most:
        raise CheckFailed(f"its answer is longer than {most:,} bytes")
    location = next((value for name, value in head.headers if name == b"location"), b"")
    return Document(head.status_code, bytes(location), bytes(body))


def _request(url: Url, accept: str) -> h11.Request:
    fields = {
        "Host": url.authority,
        "User-Agent": f"timerqueue/{our_version()}",
        "Accept": accept,
        "Accept-Encoding": "identity",
        "Connection": "close",
    }
    return h11.Request(method="GET", target=url.target or "/", headers=list(fields.items()))
