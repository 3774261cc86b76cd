"""HTTP servers in a process of their own, and how contenders ask them: so many at once, each on a new connection."""

import asyncio
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from child import Unable, Values
from meters import cpu_s

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
WARM = 50
NAME = "server.example"
"""The name in the certificate."""


@contextmanager
def server(certificate: Path | None = None) -> Iterator[int]:
    """While the body runs, whatever is asked is answered with ANSWER. Its port on 127.0.0.1."""
    with servers(["127.0.0.1"], certificate) as (port, _):
        yield port


@contextmanager
def servers(addresses: Sequence[str], certificate: Path | None = None) -> Iterator[tuple[int, int]]:
    """While the body runs, each address has two ports: what is asked at the first is answered with ANSWER, the second
    accepts and never answers. `certificate`: a file with that and its key, with which the first speaks TLS.
    """
    command = [sys.executable, str(Path(__file__).resolve()), json.dumps(addresses), str(certificate or "")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        answering, silent = process.stdout.readline().split()
        yield int(answering), int(silent)
    finally:
        process.kill()
        process.wait()


def certificate_in(folder: Path) -> Path:
    """A file with a certificate for NAME that signs itself, and its key."""
    file = folder / "server.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    names = f"-subj /CN={NAME} -addext subjectAltName=DNS:{NAME},DNS:*.{NAME} -keyout {file} -out {file}.crt"
    try:
        subprocess.run([*command.split(), *names.split()], check=True, capture_output=True)
    except FileNotFoundError:
        raise Unable("needs the program openssl") from None
    file.write_text(file.read_text() + Path(f"{file}.crt").read_text())
    return file


async def measured(check: Callable[[], Awaitable[None]], checks: int, at_once: int) -> Values:
    """Make so many checks: CPU of this process for each, and how many in a second."""
    for _ in range(WARM):
        await check()
    began, cpu_before = time.monotonic(), cpu_s()

    async def some(count: int) -> None:
        for _ in range(count):
            await check()

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(some(checks // at_once))
    made = checks // at_once * at_once
    return {
        "check_us": (cpu_s() - cpu_before) / made * 1e6,
        "per_second": made / (time.monotonic() - began),
    }


class _Answer(asyncio.Protocol):
    """An answer to one request. It costs less than one over streams, or the contenders would wait for the server."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._asked = b""

    def data_received(self, data: bytes) -> None:
        self._asked += data
        if self._asked.endswith(b"\r\n\r\n"):
            self._transport.write(ANSWER)
            self._transport.close()


async def _serve(addresses: Sequence[str], certificate: str) -> None:
    tls = None
    if certificate:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate)
    answering = await _listen(_Answer, addresses, tls)
    silent = await _listen(asyncio.Protocol, addresses)
    print(answering, silent, flush=True)
    await asyncio.Event().wait()


async def _listen(
    protocol: Callable[[], asyncio.Protocol], addresses: Sequence[str], tls: ssl.SSLContext | None = None
) -> int:
    """Listen at all these addresses, on one port."""
    loop, port = asyncio.get_running_loop(), 0
    for address in addresses:
        listening = await loop.create_server(protocol, address, port, backlog=1000, ssl=tls)
        port = listening.sockets[0].getsockname()[1]
    return port


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(sys.argv[1]), sys.argv[2]))
