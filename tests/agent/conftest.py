"""Real servers on this machine for the checks to ask, certificates for those that speak TLS, and the command itself."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import SimpleNamespace

import anyio
import pytest
from anyio.abc import SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSListener

from kit import PATIENCE
from scheduler.agent.checks.contract.check import Attempt
from scheduler.agent.checks.contract.stopwatch import Stopwatch
from scheduler.agent.checks.net.resolve import Family, Resolver
from scheduler.agent.checks.target_check import Mode, TargetCheck
from scheduler.agent.text.redact import Redactor
from timerqueue import SystemClock

NAME = "timerqueue.test"


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
    """Start servers with a handler each; they end with the test."""
    async with AsyncExitStack() as opened, anyio.create_task_group() as group:

        async def start(handler, *, host="127.0.0.1", port=0, tls=None):
            server = Server(handler)
            listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
            server.port = listener.extra(SocketAttribute.local_port)
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
    """Give the handlers above to tests, which cannot import from here."""
    return SimpleNamespace(respond=respond, silent=silent, closing=closing, flooding=flooding, echo=echo)


@pytest.fixture
def free_port():
    """Find a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def attempt():
    """Make what a check is given."""

    def make(address="127.0.0.1", *, connect_within=10.0):
        return Attempt(address, Stopwatch(SystemClock()), connect_within)

    return make


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


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Make a self-signed certificate for NAME: (certificate file, key file)."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the program openssl")
    folder = tmp_path_factory.mktemp("certificate")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = f"{openssl} req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={NAME} -addext subjectAltName=DNS:{NAME}"
    subprocess.run([*command.split(), "-out", cert, "-keyout", key], check=True, capture_output=True)
    return cert, key


@pytest.fixture
def tls(certificate):
    """Make the context of a TLS server with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


COMMAND = [sys.executable, "-m", "scheduler.agent"]


class Process:
    """A running command and the lines that it prints."""

    def __init__(self, process):
        self.process = process
        self.lines = []
        self._output = BufferedByteReceiveStream(process.stdout)

    async def line_with(self, *parts):
        """Wait for a line that contains all these."""
        while True:
            line = (await self._output.receive_until(b"\n", 100_000)).decode()
            self.lines.append(line)
            if all(part in line for part in parts):
                return line

    async def end(self):
        """Wait for the end; return the exit code."""
        while True:
            try:
                self.lines.append((await self._output.receive_until(b"\n", 100_000)).decode())
            except (anyio.EndOfStream, anyio.IncompleteRead):
                return await self.process.wait()


def environment_with(**variables):
    """The test's own, without what would change the outcome."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TIMERQUEUE_", "NO_COLOR"))}
    return kept | variables


@asynccontextmanager
async def start_command(*args, command=COMMAND, stderr=None, **variables):
    """Start the command; kill it if the test fails before it ends."""
    with anyio.fail_after(PATIENCE):
        async with await anyio.open_process(
            [*command, *args], stderr=stderr, env=environment_with(**variables)
        ) as process:
            try:
                yield Process(process)
            finally:
                if process.returncode is None:
                    process.kill()


async def run_command(*args, **variables):
    """Run the command to its end: (exit code, standard output, standard error)."""
    with anyio.fail_after(PATIENCE):
        done = await anyio.run_process([*COMMAND, *args], check=False, env=environment_with(**variables))
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def started():
    """Start the command `timerqueue` with arguments, in a block that ends with its end."""
    return start_command


@pytest.fixture
def ran():
    """Run it to its end: (exit code, standard output, standard error)."""
    return run_command


@pytest.fixture
def environment():
    """Make the environment of the command."""
    return environment_with


@pytest.fixture
async def up(serve, answers):
    """Start a server that is well."""
    return await serve(answers.respond())


@pytest.fixture
def config(tmp_path, up, free_port):
    """Write a configuration with one target that is up and one that is down."""

    def write(extra=""):
        file = tmp_path / "uptime.toml"
        file.write_text(f"""
            [defaults]
            interval = "100ms"
            [[check]]
            name = "site"
            url = "http://127.0.0.1:{up.port}/"
            [[check]]
            name = "db"
            url = "tcp://127.0.0.1:{free_port}"
            {extra}
        """)
        return str(file)

    return write
