"""Real servers on this machine for the agent's checks to ask, and a target's check made with few words, as fixtures."""

import json
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from types import SimpleNamespace

import anyio
import pytest
from anyio.streams.tls import TLSListener

from held_ports import hold_port, number_of
from scheduler import Record
from timerqueue import SystemClock
from uptime_agent.checks import Family, Mode, Resolver, TargetCheck
from uptime_agent.text import Redactor


class Server:
    """A server that counts its connections, and those that are still open."""

    def __init__(self, handler):
        self.handler = handler
        self.connections = 0
        self.open = 0
        self.requests = []
        self.port = None
        self.most_open = 0
        self.connected = anyio.Event()
        self.all_closed = anyio.Event()

    async def handle(self, stream):
        """Let the handler have one connection, and count it."""
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        self.connected.set()
        self.all_closed = anyio.Event()
        try:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError, ConnectionError):
                async with stream:
                    await self.handler(self, stream)
        finally:
            self.open -= 1
            if not self.open:
                self.all_closed.set()


@pytest.fixture
async def serve():
    """Start servers with a handler each; they end with the test. Other addresses refuse at the port of each."""
    async with AsyncExitStack() as opened, anyio.create_task_group() as group:

        async def start(handler, *, host="127.0.0.1", port=0, tls=None):
            server = Server(handler)
            server.port = port or number_of(opened.enter_context(hold_port()))
            listener = await anyio.create_tcp_listener(local_host=host, local_port=server.port)
            if tls is not None:
                listener = TLSListener(listener, tls, standard_compatible=False)
            opened.push_async_callback(listener.aclose)
            group.start_soon(listener.serve, server.handle)
            return server

        yield start
        group.cancel_scope.cancel()


def respond(status=200, body=b"hello", *, headers=()):
    """Make a handler that reads one request and answers it."""

    async def handler(server, stream):
        server.requests.append(await read_head(stream))
        fields = [f"Content-Length: {len(body)}", *headers]
        await stream.send(f"HTTP/1.1 {status} Any\r\n".encode() + "\r\n".join(fields).encode() + b"\r\n\r\n" + body)

    return handler


async def read_head(stream):
    """Read a request up to the empty line."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += await stream.receive()
    return received.decode()


async def silent(server, stream):
    """Accept and say nothing until the other side gives up."""
    while True:
        await stream.receive()


async def closing(server, stream):
    """Close at once."""


async def flooding(server, stream):
    """Send without end."""
    while True:
        await stream.send(b"x" * 65536)


async def echo(server, stream):
    """Send back what comes."""
    while True:
        await stream.send(await stream.receive())


@pytest.fixture
def answers():
    """Give the handlers above to tests."""
    return SimpleNamespace(respond=respond, silent=silent, closing=closing, flooding=flooding, echo=echo)


@pytest.fixture
def free_port():
    """Hold a port on which nobody listens, unless the test does."""
    with hold_port() as held:
        yield number_of(held)


async def failing_lookup(host):
    """Stand in for the system's lookup where a test needs none."""
    raise AssertionError(f"nobody should look up {host}")


@pytest.fixture
def target_check():
    """Make a target's check with as few words as possible."""

    def make(check, *, hosts=None, lookup=failing_lookup, **changes):
        options = {
            "check": check,
            "needs": (),
            "timeout": 10.0,
            "mode": Mode.ANY,
            "family": Family.ANY,
            "degraded_above": None,
            "resolver": Resolver(hosts or {}, lookup),
            "clock": SystemClock(),
            "redactor": Redactor(check.secrets),
        }
        return TargetCheck(**options | changes)

    return make


@pytest.fixture
async def up(serve, answers):
    """Start a server that is well."""
    return await serve(answers.respond())


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def record_of(run, report):
    """Make the record of a run, with instants in whole microseconds and the result as JSON gives it back."""
    begun, ended = run.started, run.ended
    result = json.loads(json.dumps(report))
    return Record(
        job_id=run.job_id,
        due=begun,
        attempt=1,
        outcome=run.outcome,
        started=begun,
        ended=ended,
        lateness=0.0,
        error=None,
        traceback=None,
        reason=None,
        count=1,
        last_due=begun,
        result=result,
    )
