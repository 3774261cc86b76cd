"""A local HTTP server in a process of its own, and how contenders ask it: so many at once, each on a new connection."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from child import Values
from meters import cpu_s

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
WARM = 50


@contextmanager
def server() -> Iterator[int]:
    """While the body runs, whatever is asked is answered with ANSWER. Its port on 127.0.0.1."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


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


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(ANSWER)
    writer.close()


async def _serve() -> None:
    listening = await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=1000)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
