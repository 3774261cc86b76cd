r"""The tutorial docs/first-monitor.md is carried out: its files are saved, its commands run, its output comes.

A comment above a block says in which terminal it stands. There a line that begins with `$ ` is typed, ^C and ^\ are
pressed, and any other line has to come; of a command that ends, these are all lines. Numbers are not compared.
"""

import os
import re
import shutil
import signal
import socket
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from kit import PATIENCE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "first-monitor.md"
BLOCK = re.compile(r"(?:<!-- terminal: (?P<terminal>\w+) -->\n)?```(?P<kind>toml|console)\n(?P<text>.*?)```", re.DOTALL)
KEYS = {"^C": signal.SIGINT, "^\\": signal.SIGQUIT}
GO_ON = ("python3 -m http.server", "timerqueue run")
"""Commands that run until a key is pressed."""


@pytest.fixture(scope="module")
def anyio_backend():
    """The commands under test have loops of their own; which one the test uses makes no difference."""
    return "asyncio"


def blocks(page):
    """Return the terminal, the kind and the lines of each block of a page."""
    return [(found["terminal"], found["kind"], found["text"].splitlines()) for found in BLOCK.finditer(page)]


def masked(line):
    """Return a line without its numbers, times and their units, and without the columns that these make."""
    return re.sub(r" +", " ", re.sub(r"# (?:us|ms|s)\b", "#", re.sub(r"[0-9][0-9TZmsh:.,-]*", "#", line.rstrip())))


class Terminal:
    """A terminal with the command that runs in it."""

    def __init__(self, folder, environment, stack):
        self.folder = folder
        self.environment = environment
        self.stack = stack
        self.process = None
        self.output = None

    async def follow(self, lines):
        """Type, press and see what these lines say."""
        expected = []
        for number, line in enumerate(lines):
            if line in KEYS:
                self.process.send_signal(KEYS[line])
                rest = lines[number + 1 :]
                if not rest or rest[0].startswith("$ "):
                    await self.process.wait()
            elif line.startswith("$ "):
                if expected is not None and self.is_finite:
                    await self.compare(expected)
                await self.type(line[2:])
                expected = []
            elif self.is_finite:
                expected.append(line)
            else:
                await self.see(line)
        if self.is_finite:
            await self.compare(expected)

    @property
    def is_finite(self):
        """Say whether a command has been typed that ends by itself."""
        return self.process is not None and not self.goes_on

    async def type(self, command):
        """Start a command."""
        self.goes_on = command.startswith(GO_ON)
        self.process = await self.stack.enter_async_context(
            await anyio.open_process(
                ["/bin/sh", "-c", f"exec {command}" if self.goes_on else command],
                cwd=self.folder,
                env=self.environment,
                stderr=None if self.goes_on else -2,
            )
        )
        self.stack.callback(self.kill, self.process)
        self.output = BufferedByteReceiveStream(self.process.stdout)

    @staticmethod
    def kill(process):
        """End a command that the test has left behind."""
        if process.returncode is None:
            process.kill()

    async def see(self, line):
        """Wait for a line like that."""
        seen = []
        with anyio.move_on_after(PATIENCE / 3):
            while masked(line) != (seen or [""])[-1]:
                seen.append(masked((await self.output.receive_until(b"\n", 100_000)).decode()))
            return
        pytest.fail(f"expected: {masked(line)}\nseen: " + "\n      ".join(seen))

    async def compare(self, lines):
        """See all that a command says to its end."""
        said = b"".join([part async for part in self.output])
        assert await self.process.wait() == 0, said.decode()
        assert [*map(masked, said.decode().splitlines())] == [*map(masked, lines)]


@pytest.fixture
def ports():
    """Find two ports on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return [each.getsockname()[1] for each in (one, other)]


@pytest.fixture
def keys_work():
    """Let programs hear of keys: who runs the tests in the background of a shell has them ignored."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGQUIT, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals and a shell of POSIX")
@pytest.mark.usefixtures("keys_work")
@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")
async def test_the_tutorial_is_true(tmp_path, ports):
    """From the first line to the last, as a reader would do it, only twice as fast."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, words in (("python3", ""), ("timerqueue", "-m scheduler.agent ")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        (programs / name).chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    page = PAGE.read_text("utf-8").replace("8080", str(ports[0])).replace("8075", str(ports[1]))
    page = page.replace("/tmp/told.json", str(tmp_path / "told.json"))
    page = page.replace('"2s"', '"1s"').replace('retry_interval = "1s"', 'retry_interval = "100ms"')
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TIMERQUEUE_", "NO_COLOR"))}
    environment = kept | {"PATH": f"{programs}:{os.environ['PATH']}"}
    with anyio.fail_after(2 * PATIENCE):
        async with AsyncExitStack() as stack:
            terminals = {}
            for terminal, kind, lines in blocks(page):
                if kind == "toml":
                    with (folder / "uptime.toml").open("a") as file:
                        file.write("\n".join([*lines, "", ""]))
                else:
                    found = terminals.setdefault(terminal, Terminal(folder, environment, stack))
                    await found.follow(lines)


def test_each_block_of_the_tutorial_is_followed():
    """One without its terminal would be passed over."""
    page = PAGE.read_text("utf-8")
    found = blocks(page)
    assert len(found) == page.count("```console\n") + page.count("```toml\n") > 20
    assert [lines for terminal, kind, lines in found if (terminal is None) != (kind == "toml")] == []


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("2026-11-21T12:00:02.191Z  -> UP  a in 3.5 ms", "2027-01-01T00:00:00.000Z  -> UP  a in 350 us"),
        ("was down for 11s; it was", "was down for 1m02s; it was"),
    ],
)
def test_lines_are_alike_but_for_their_numbers(line, other):
    """Nothing else of them is passed over."""
    assert masked(line) == masked(other)
    assert masked(line) != masked(other.replace("was", "is").replace("UP", "DOWN"))
