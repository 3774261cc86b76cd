"""What the servers of servers.py say, one after another: when they work, and broken in each of their ways.

Each function speaks over one connection, or answers one datagram. `broken` is the name of a fault; None: it works.
"""

import itertools
import json
import ssl
import struct
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import dns.message
import dns.rcode
import dns.rrset
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSStream

CERTIFICATES = Path(__file__).resolve().parent / "certificates"
TOKEN = "the-token-of-the-backup"  # noqa: S105 - nothing to hide, uptime.toml has it too
SINCE_1900 = 2_208_988_800


# -- HTTP --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: bytes


async def request(stream: ByteStream) -> Request:
    """Read one."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += await stream.receive()
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += await stream.receive()
    return Request(first.split(" ")[1], headers, body)


async def respond(stream: ByteStream, status: int, content: str | dict[str, object] = "") -> None:
    """Answer one request with text, or with JSON."""
    kind, text = ("text/html", content) if isinstance(content, str) else ("application/json", json.dumps(content))
    body = text.encode()
    head = f"HTTP/1.1 {status} Demo\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    await stream.send(head.encode() + body)


def website() -> Callable[[ByteStream, str | None], Awaitable[None]]:
    tide = itertools.cycle([200, 200, 503, 503])

    async def answer(stream: ByteStream, broken: str | None) -> None:
        await request(stream)
        status = next(tide) if broken == "flaps" else 503 if broken == "503" else 200
        await respond(stream, status, "under construction" if broken == "wrong" else "<h1>all is well</h1>")

    return answer


async def shop(stream: ByteStream, broken: str | None) -> None:
    await request(stream)
    await respond(stream, 200, {"status": "ok", "items": [] if broken == "empty" else [{"id": 7, "name": "tea"}]})


async def search(stream: ByteStream, broken: str | None) -> None:
    await request(stream)
    await anyio.sleep(0.6 if broken == "slow" else 0)
    await respond(stream, 200, "found it")


async def reports(stream: ByteStream, broken: str | None) -> None:
    await request(stream)
    await anyio.sleep(5 if broken == "stuck" else 0)
    await respond(stream, 200, "nothing to report")


async def order(stream: ByteStream, broken: str | None) -> None:
    """Let somebody in, then show the basket to whoever has the token."""
    asked = await request(stream)
    if asked.path == "/login":
        await respond(stream, 403 if broken == "login" else 200, {"token": "0123456789abcdef"})
        return
    known = asked.headers.get("authorization") == "Bearer 0123456789abcdef" and broken != "basket"
    await respond(stream, 200 if known else 401, {"items": [{"id": 7}]} if known else "")


async def registry(stream: ByteStream, broken: str | None) -> None:
    """Say by RDAP until when a domain is registered."""
    asked = await request(stream)
    days = -30 if broken == "expired" else 300
    ends = (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="seconds")
    name = asked.path.rpartition("/")[2]
    found = {"ldhName": name, "events": [{"eventAction": "expiration", "eventDate": ends}]}
    await (respond(stream, 404) if broken == "gone" else respond(stream, 200, found))


async def webhook(say: Callable[[str], None], stream: ByteStream, broken: str | None) -> None:
    """Take a message of the agent's channel, and say what it says."""
    asked = await request(stream)
    await respond(stream, 503 if broken else 200)
    for line in () if broken else json.loads(asked.body)["text"].splitlines():
        say(f"told: {line}")


async def signal(stream: ByteStream, broken: str | None) -> None:
    """Report to the agent: all is well, exited with 3, or nothing."""
    if broken == "silent":
        return
    code, log = ("3", b"disk full") if broken == "failed" else ("0", b"")
    head = f"POST /push/{TOKEN}/{code} HTTP/1.1\r\nHost: agent\r\nContent-Length: {len(log)}\r\n\r\n"
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        await stream.send(head.encode() + log)
        await stream.receive()


# -- TCP ---------------------------------------------------------------------------------------------------------------


def context(name: str) -> ssl.SSLContext:
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.load_cert_chain(CERTIFICATES / f"{name}.pem")
    return found


async def secured(stream: ByteStream, name: str = "valid") -> TLSStream:
    return await TLSStream.wrap(stream, server_side=True, ssl_context=context(name), standard_compatible=False)


async def nothing(stream: ByteStream, _broken: str | None) -> None:
    """Accept, and wait for the other side to leave."""
    await stream.receive()


async def certificate(stream: ByteStream, broken: str | None) -> None:
    if broken == "plain":
        await stream.send(b"hello\r\n")
        return
    await (await secured(stream, "expired" if broken == "expired" else "valid")).receive()


async def mail(stream: ByteStream, broken: str | None) -> None:
    """A server of SMTP as far as STARTTLS and QUIT."""
    if broken == "banner":
        await stream.send(b"554 mail.example takes no mail today\r\n")
        return
    await stream.send(b"220 mail.example ESMTP\r\n")
    lines = BufferedByteReceiveStream(stream)
    while True:
        match (await lines.receive_until(b"\r\n", 1000)).split(b" ")[0]:
            case b"EHLO":
                await stream.send(b"250-mail.example\r\n250 8BITMIME\r\n")
            case b"STARTTLS" if broken == "plain":
                await stream.send(b"502 no TLS here\r\n")
            case b"STARTTLS":
                await stream.send(b"220 go ahead\r\n")
                stream = await secured(stream)
                lines = BufferedByteReceiveStream(stream)
            case b"QUIT":
                await stream.send(b"221 bye\r\n")
                return
            case _:
                await stream.send(b"500 what?\r\n")


async def cache(stream: ByteStream, broken: str | None) -> None:
    """A Redis that answers PING."""
    await stream.receive()
    await stream.send(b"-LOADING the dataset is read from disk\r\n" if broken == "loading" else b"+PONG\r\n")


# -- UDP ---------------------------------------------------------------------------------------------------------------


def names(data: bytes, broken: str | None) -> bytes | None:
    """A server of names."""
    if broken == "silent":
        return None
    query = dns.message.from_wire(data)
    answer = dns.message.make_response(query)
    if broken == "gone":
        answer.set_rcode(dns.rcode.NXDOMAIN)
    else:
        address = "192.0.2.66" if broken == "wrong" else "192.0.2.7"
        answer.answer.append(dns.rrset.from_text(query.question[0].name, 60, "IN", "A", address))
    return answer.to_wire()


def clock(data: bytes, broken: str | None) -> bytes:
    """A server of NTP. It repeats when the question was sent, and says when it came and went."""
    leap = 3 if broken == "lost" else 0
    now = int((time.time() + SINCE_1900 + (90 if broken == "wrong" else 0)) * 2**32) % 2**64
    return struct.pack("!BBbbII4s", leap << 6 | 4 << 3 | 4, 2, 6, -20, 655, 655, b"DEMO") + struct.pack(
        "!Q8sQQ", now, data[40:48], now, now
    )
