"""ASGI apps that are served while a test runs, over TCP or a Unix socket, and bytes sent to them."""

import json
import socket

import anyio
from anyio.abc import SocketStream

from kit import PATIENCE
from push_kit import rest_of
from uptime_agent.web import AsgiHandler, HttpServer, Peers


class Served:
    """An app behind a listener, and what is asked of it byte by byte."""

    def __init__(self, app, listener, clock, most=20):
        self.listener = listener
        self.peers = Peers(most)
        self.notices = []
        self.server = HttpServer(clock, AsgiHandler(app), self.peers, self.notices.append)

    async def connect(self):
        """Open a connection."""
        place = self.listener.getsockname()
        return await (connect_to(place) if isinstance(place, str) else anyio.connect_tcp(*place[:2]))

    async def ask(self, sent):
        """Send bytes, and return all that is answered."""
        with anyio.fail_after(PATIENCE):
            async with await self.connect() as stream:
                await stream.send(sent)
                return await rest_of(stream)

    async def get(self, path, **headers):
        """Read something."""
        return Answered(await self.ask(written("GET", path, **headers)))

    async def call(self, method, path, body=None, **headers):
        """Do something."""
        data = b"" if body is None else json.dumps(body).encode()
        if body is not None:
            headers.setdefault("Content_Type", "application/json")
        return Answered(await self.ask(written(method, path, data, **headers)))


async def connect_to(path):
    """Connect to a Unix socket."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    return await SocketStream.from_socket(connection)


class Answered:
    """What came back: its status, its head and its body."""

    def __init__(self, received):
        self.received = received
        head, _, rest = received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1]) if first else 0
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.body = unchunked(rest) if self.headers.get("transfer-encoding") == "chunked" else rest

    def __repr__(self):
        return f"<{self.received[:2000]!r}>"

    @property
    def json(self):
        """The body as JSON."""
        return json.loads(self.body)


def unchunked(data):
    """Return the body of an answer in chunks."""
    found = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size or b"0", 16)
        found, data = found + data[:length], data[length + 2 :]
    return found


def written(method, path, body=b"", **headers):
    """Write a request."""
    named = {
        "Host": "localhost",
        "Content-Length": str(len(body)),
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items() if value is not None)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def check(name, *more, interval="1h", url="tcp://127.0.0.1:1"):
    """Write a check of a configuration."""
    return "\n".join(["[[check]]", f'name = "{name}"', f'url = "{url}"', f'interval = "{interval}"', *more, ""])
