"""What the agent's tests share: servers and a target's check, certificates for those that speak TLS, the command."""

import os
import shutil
import signal
import ssl
import subprocess
import sys
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio import to_thread
from anyio.streams.buffered import BufferedByteReceiveStream

from agent_kit import answers, free_port, serve, target_check, up
from forked_commands import READ_AT_START, ForkedCommands
from held_ports import hold_port, number_of
from kit import PATIENCE
from timerqueue import SystemClock
from uptime_agent.checks.contract.check import Attempt
from uptime_agent.checks.contract.stopwatch import Stopwatch

NAME = "timerqueue.test"

__all__ = ["answers", "free_port", "serve", "target_check", "up"]


@pytest.fixture
def attempt():
    """Make what a check is given."""

    def make(address="127.0.0.1", *, connect_within=10.0):
        return Attempt(address, Stopwatch(SystemClock()), connect_within)

    return make


@pytest.fixture
def ports():
    """Hold two ports on which nobody listens, unless the test does."""
    with hold_port() as one, hold_port() as other:
        yield [number_of(one), number_of(other)]


@pytest.fixture
def keys_work():
    """Let programs hear of keys: who runs the tests in the background of a shell has them ignored."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGQUIT, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Make a self-signed certificate for NAME: (certificate file, key file)."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the program openssl: apt-get install openssl")
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


COMMAND = [sys.executable, "-m", "uptime_agent"]


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


@pytest.fixture
def started():
    """Start the command `timerqueue` with arguments, in a block that ends with its end."""
    return start_command


@pytest.fixture(scope="session")
def forked_commands():
    """Start the process that runs commands, for all tests of this session."""
    forked = ForkedCommands()
    yield forked
    forked.close()


@pytest.fixture
def ran(forked_commands):
    """Run it to its end: (exit code, standard output, standard error)."""

    async def run_command(*args, **variables):
        environment = environment_with(**variables)
        with anyio.fail_after(PATIENCE):
            if not any(name.startswith(READ_AT_START) for name in variables):
                return await to_thread.run_sync(
                    forked_commands.run, [*map(str, args)], environment, abandon_on_cancel=True
                )
            done = await anyio.run_process([*COMMAND, *args], check=False, env=environment)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run_command


@pytest.fixture
def environment():
    """Make the environment of the command."""
    return environment_with


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


@pytest.fixture
def url(postgres_server, postgres_schema):
    """Write the URL of a store in PostgreSQL that no other test uses."""
    return f"postgresql://postgres@/postgres?host={postgres_server.folder}&schema={postgres_schema}"
