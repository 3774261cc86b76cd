"""The channel `command`: runs a program of the user's.

No shell; messages are JSON on standard input, never arguments. `launch.py` sets limits and kills what is left. Only
exit status 0 means delivered.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from typing import Any, ClassVar, Final

import anyio
from anyio.abc import ByteReceiveStream, Process
from attrs import field, frozen

from ...text import printable
from ...toml import Option, Reader, Secret, Unfit, secret, text
from .channel import ChannelDeps, ChannelKind, Surroundings, Undelivered
from .notification import Notification

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MOST_ARGUMENTS: Final = 100
KEPT: Final = 2_000
"""Bytes of output."""

SHOWN: Final = 200
LISTENED: Final = 0.5
"""Seconds for output after the end."""

ENDED_WITHIN: Final = 3.0
"""Seconds after a timeout. Then the program's group is killed."""

_SEEN: Final = (
    "everybody on this machine can read the arguments of a program: hand a secret over as a variable, with "
    'env = { TOKEN = { env = "OPS_TOKEN" } }'
)
_LAUNCH: Final = Path(__file__).with_name("launch.py")


@frozen(kw_only=True)
class Command:
    """A channel that runs a program. `environment`: besides PATH."""

    kind: ClassVar[str] = "command"

    argv: tuple[str, ...] = field(alias="command", repr=False)
    environment: Mapping[str, str] = field(factory=dict, repr=False, alias="env")

    @property
    def place(self) -> str:
        """The program's name."""
        return printable(Path(self.argv[0]).name)

    @property
    def secrets(self) -> frozenset[str]:
        """Variables given by reference."""
        return frozenset(each for each in self.environment.values() if isinstance(each, Secret))

    async def send(self, notification: Notification, means: ChannelDeps) -> str | None:  # noqa: ARG002 - it waits for nothing of ours
        """Run the program."""
        content = json.dumps(notification.body()).encode()
        try:
            with anyio.CancelScope(shield=True):  # it runs before we have it, and its children end with it alone
                process = await self._started(notification.key)
        except OSError as exc:
            raise Undelivered(f"cannot start {self.place}: {(exc.strerror or str(exc)).lower()}") from None
        said = await _driven(process, content)
        status = process.returncode
        if status != 0:
            ended = f"was killed by signal {-status}" if status is not None and status < 0 else f"ended with {status}"
            raise Undelivered(f"{self.place} {ended}{f': {said}' if said else ''}")
        return None

    async def _started(self, key: str) -> Process:
        return await anyio.open_process(
            self._launched(),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={"PATH": PATH, **self.environment, "TIMERQUEUE_KEY": key},
            cwd="/",
            start_new_session=True,
        )

    def _launched(self) -> list[str]:
        return [sys.executable, "-I", "-S", str(_LAUNCH), *self.argv]


async def _driven(process: Process, content: bytes) -> str:
    """Run a program to its end, and leave nothing of it running."""
    errors, output, heard = bytearray(), bytearray(), anyio.Event()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_feed, process, content)
            group.start_soon(_hear, process, errors, output, heard)
            await process.wait()
            with anyio.move_on_after(LISTENED):
                await heard.wait()
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
            await process.aclose()
    return printable((errors or output).decode("utf-8", "replace").strip()[:SHOWN])


async def _feed(process: Process, content: bytes) -> None:
    assert process.stdin is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):  # it does not care
        await process.stdin.send(content)
        await process.stdin.aclose()


async def _hear(process: Process, errors: bytearray, output: bytearray, heard: anyio.Event) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(_read, process.stderr, errors)
        group.start_soon(_read, process.stdout, output)
    heard.set()


async def _read(stream: ByteReceiveStream | None, kept: bytearray) -> None:
    assert stream is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for part in stream:
            kept += part[: max(KEPT - len(kept), 0)]


async def _end(process: Process) -> None:
    """`launch.py` ends children, a signal the group."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        with anyio.move_on_after(ENDED_WITHIN):
            await process.wait()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _argv(read: Reader[str]) -> Reader[tuple[str, ...]]:
    def argv(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not 1 <= len(value) <= MOST_ARGUMENTS:
            raise Unfit('a program and its arguments, as in ["/usr/local/bin/page", "--team", "ops"]', value)
        first, *others = value
        if not Path(text(first)).is_absolute():
            raise Unfit("the whole path of a program first, as in /usr/local/bin/page", first)
        if not os.access(first, os.X_OK) or Path(first).is_dir():
            raise Unfit("a program that can be run", first)
        if any(isinstance(each, dict) for each in others):
            raise Unfit(f"arguments as they are, since {_SEEN}", "an argument by reference", is_secret=True)
        found = (first, *(read(each) if each != "" else "" for each in others))
        if any("\0" in each for each in found):
            raise Unfit("arguments without NUL", "NUL", is_secret=True)
        return found

    return argv


def _environment(read: Reader[str]) -> Reader[dict[str, str]]:
    def environment(value: Any) -> dict[str, str]:
        if not isinstance(value, dict):
            raise Unfit('a table such as { TOKEN = { env = "OPS_TOKEN" } }', value)
        if bad := next((name for name in value if not name or set(name) & set("=\0")), None):
            raise Unfit("names of variables", bad)
        return {name: read(each) for name, each in value.items()}

    return environment


def _options(around: Surroundings) -> dict[str, Reader[Any]]:
    read = secret(around.folder, around.environment)
    return {
        "command": Option(
            _argv(read),
            "the whole path of the program, and its arguments, which everybody on the machine can read: a secret "
            "belongs into `env`. There is no shell",
        ),
        "env": Option(
            _environment(read),
            "the program's environment, beside PATH. It inherits nothing else. Each value may be given by reference",
        ),
    }


COMMAND: Final = ChannelKind("command", Command, _options, ("command",), "runs a program of yours")
