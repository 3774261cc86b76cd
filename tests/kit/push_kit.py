"""A push port with a server behind it, and requests to it, from any address of this machine."""

from contextlib import suppress

import anyio

from kit import PATIENCE
from uptime_agent.push import push_server
from uptime_agent.push.requests import NotKept
from uptime_agent.web import Peers, listen


class PushPort:
    """A push port that is served: what was taken, and what was said. `full` is a token whose signals are not kept."""

    def __init__(self, most, clock, listener=None, *, takes_get=False):
        self.listener = listen("127.0.0.1", 0) if listener is None else listener
        self.port = self.listener.getsockname()[1]
        self.peers = Peers(most)
        self.taken, self.notices = [], []
        self.known = {}
        """What is awaited for a token that a target has; of all others nobody has it."""
        self.server = push_server(clock, self.take, self.peers, self.notices.append, takes_get=takes_get)

    async def take(self, token, signal, peer):
        if token == "full":
            raise NotKept("no room for it")
        if token == "defect":
            raise ZeroDivisionError
        if token in self.known:
            self.peers.know(peer)
            await self.known[token]()
        self.taken.append((token, signal))
        return token in self.known

    async def ask(self, request, source="127.0.0.1"):
        """Send a request and return all that is answered to it."""
        with anyio.fail_after(PATIENCE):
            async with await self.connect(source) as stream:
                await stream.send(request)
                return await rest_of(stream)

    async def connect(self, source="127.0.0.1"):
        """Open a connection from that address of this machine."""
        return await anyio.connect_tcp("127.0.0.1", self.port, local_host=source)


async def rest_of(stream):
    """Receive until the connection is closed."""
    received = b""
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while True:
            received += await stream.receive()
    return received


def request(path, method="POST", body=b"", *fields):
    """Write a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join([*lines, "", ""]).encode() + body
