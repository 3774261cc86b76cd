"""Servers for uptime.toml to check, all on 127.0.0.1. One works, others are broken, slow, stuck, flapping or echoing.

`python examples/servers.py` serves on the ports that uptime.toml names, until Ctrl-C.
"""

import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskStatus

HOST = "127.0.0.1"
Answer = Callable[[], Awaitable[tuple[int, str]]]


async def well() -> tuple[int, str]:
    return 200, "all is well"


async def broken() -> tuple[int, str]:
    return 503, "try again later"


async def slow() -> tuple[int, str]:
    await anyio.sleep(0.4)
    return 200, "sorry that it took so long"


async def stuck() -> tuple[int, str]:
    await anyio.sleep(3)
    return 200, "too late"


def flapping() -> Answer:
    """Two good answers, then two bad ones, and so on."""
    statuses = itertools.cycle([200, 200, 500, 500])

    async def answer() -> tuple[int, str]:
        return next(statuses), "on and off"

    return answer


async def http(answer: Answer, stream: SocketStream) -> None:
    """Answer one request, whatever it asks for."""
    async with stream:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            await stream.receive()
            status, text = await answer()
            head = f"HTTP/1.1 {status} Demo\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
            await stream.send((head + text).encode())


async def echo(stream: SocketStream) -> None:
    """Send back what comes."""
    async with stream:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                await stream.send(await stream.receive())


def handlers() -> dict[int, Callable[[SocketStream], Awaitable[None]]]:
    """By the port that uptime.toml names. Nothing listens on 18085."""
    return {
        18080: partial(http, well),
        18081: partial(http, broken),
        18082: partial(http, slow),
        18083: partial(http, stuck),
        18084: partial(http, flapping()),
        18086: echo,
    }


async def serve(*, any_port: bool = False, task_status: TaskStatus[dict[int, int]] = anyio.TASK_STATUS_IGNORED) -> None:
    """Serve for ever. Reports on which ports, by the port that uptime.toml names."""
    async with anyio.create_task_group() as group:
        ports = {}
        for port, handler in handlers().items():
            listener = await anyio.create_tcp_listener(local_host=HOST, local_port=0 if any_port else port)
            ports[port] = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
            group.start_soon(listener.serve, handler)
        task_status.started(ports)


async def main() -> None:
    async with anyio.create_task_group() as group:
        ports = await group.start(serve)
        print(f"serving on {HOST}, ports {', '.join(map(str, ports))}; Ctrl-C stops")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        anyio.run(main)
