r"""Pages that are carried out as they stand: their files are saved, their commands run, their output comes.

A comment above a block says in which terminal it stands, or as which file it is saved. In a terminal a line that begins
with `$ ` is typed, ^C and ^\ are pressed, and any other line has to come; of a command that ends, these are all lines.
Numbers are not compared, nor is what stands for `...` at the end of a line.
"""

import os
import re
import signal
import sys
from contextlib import AsyncExitStack

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from kit import PATIENCE

BLOCK = re.compile(
    r"(?:<!-- (?:terminal|file): (?P<place>[\w.]+) -->\n)?(?:<!-- not run: [^\n]* -->\n)?"
    r"```(?P<kind>toml|console|python)\n(?P<text>.*?)```",
    re.DOTALL,
)
KEYS = {"^C": signal.SIGINT, "^\\": signal.SIGQUIT}
GO_ON = ("python3 -m http.server", "timerqueue run", "timerqueue worker", "env TIMERQUEUE_", "beanstalkd ")
"""Commands that run until a key is pressed."""
TELLS = "timerqueue worker"
"""One of them that also says on standard error what a page shows."""


def blocks(page):
    """Return the terminal or file, the kind and the lines of each block of a page."""
    return [(found["place"], found["kind"], found["text"].splitlines()) for found in BLOCK.finditer(page)]


def masked(line):
    """Return a line without its numbers, times and their units, and without the columns that these make."""
    return re.sub(r" +", " ", re.sub(r"# (?:us|ms|s)\b", "#", re.sub(r"[0-9][0-9TZmsh:.,-]*", "#", line.rstrip())))


def is_like(line, found):
    """Say whether that was found, masked, which a line of a page shows."""
    shown = masked(line)
    return found.startswith(shown.removesuffix("...")) if shown.endswith("...") else found == shown


class Terminal:
    """A terminal with the command that runs in it."""

    def __init__(self, folder, environment, stack):
        self.folder = folder
        self.environment = environment
        self.stack = stack
        self.process = None
        self.output = None
        self.command = ""

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
        self.command = command
        self.goes_on = command.startswith(GO_ON)
        self.process = await self.stack.enter_async_context(
            await anyio.open_process(
                ["/bin/sh", "-c", f"exec {command}" if self.goes_on else command],
                cwd=self.folder,
                env=self.environment,
                stderr=-2 if not self.goes_on or command.startswith(TELLS) else None,
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
        with anyio.move_on_after(PATIENCE):
            while not is_like(line, (seen or [""])[-1]):
                seen.append(masked((await self.output.receive_until(b"\n", 100_000)).decode()))
            return
        pytest.fail(f"expected: {masked(line)}\nseen: " + "\n      ".join(seen))

    async def compare(self, lines):
        """See all that a command says to its end."""
        said = b"".join([part async for part in self.output])
        assert await self.process.wait() == 0, said.decode()
        found = said.decode().splitlines()
        if found != lines and any("RUNNING" in each for each in found) and "RUNNING" not in "".join(lines):
            await self.type(self.command)  # asked just when a check was being made
            await self.compare(lines)
            return
        assert len(found) == len(lines), said.decode()
        assert all(map(is_like, lines, map(masked, found))), said.decode()


def environment_of(folder):
    """Make the programs of a page in a folder, and return the environment in which its commands find them."""
    programs = folder / "bin"
    programs.mkdir()
    for name, words in (("python3", ""), ("timerqueue", "-m uptime_agent ")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        (programs / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TIMERQUEUE_", "NO_COLOR"))}
    return kept | {"PATH": f"{programs}:{os.environ['PATH']}:/usr/sbin"}


async def carry_out(page, folder, environment, file):
    """Do what a page says, from the first line to the last; its TOML is appended to that file."""
    async with AsyncExitStack() as stack:
        terminals = {}
        for terminal, kind, lines in blocks(page):
            if kind != "console":
                with (folder / (terminal or file)).open("a") as written:
                    written.write("\n".join([*lines, "", ""]))
            else:
                found = terminals.setdefault(terminal, Terminal(folder, environment, stack))
                await found.follow(lines)
