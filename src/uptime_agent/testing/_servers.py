from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeAlias

import anyio
from anyio import TypedAttributeProvider
from anyio.abc import ByteStream, SocketAttribute, UDPSocket
from attrs import define, field

Well: TypeAlias = Callable[[ByteStream], Awaitable[None]]
Replies: TypeAlias = Callable[[bytes], Iterable[bytes]]


@define(eq=False)
class StreamServer:
    handler: Well
    port: int = 0
    connections: int = 0
    open: int = 0
    connected: anyio.Event = field(factory=anyio.Event)
    all_closed: anyio.Event = field(factory=anyio.Event)

    async def handle(self, stream: ByteStream) -> None:
        self.connections += 1
        self.open += 1
        self.connected.set()
        self.all_closed = anyio.Event()
        try:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                async with stream:
                    await self.handler(stream)
        finally:
            self.open -= 1
            if not self.open:
                self.all_closed.set()


@asynccontextmanager
async def serving(handler: Well, host: str = "127.0.0.1") -> AsyncIterator[StreamServer]:
    server = StreamServer(handler)
    async with await anyio.create_tcp_listener(local_host=host) as listener, anyio.create_task_group() as group:
        server.port = port_of(listener)
        group.start_soon(listener.serve, server.handle)
        yield server
        group.cancel_scope.cancel()


@define(eq=False)
class DatagramServer:
    socket: UDPSocket
    replies: Replies
    port: int
    datagrams: int = 0
    asked: anyio.Event = field(factory=anyio.Event)

    async def serve(self) -> None:
        async for data, peer in self.socket:
            self.datagrams += 1
            self.asked.set()
            for reply in self.replies(data):
                with suppress(OSError, anyio.BrokenResourceError):  # it has gone by now
                    await self.socket.sendto(reply, peer[0], peer[1])


@asynccontextmanager
async def answering(replies: Replies, host: str = "127.0.0.1") -> AsyncIterator[DatagramServer]:
    async with (
        await anyio.create_udp_socket(family=socket.AF_INET, local_host=host) as udp,
        anyio.create_task_group() as group,
    ):
        server = DatagramServer(udp, replies, port_of(udp))
        group.start_soon(server.serve)
        yield server
        group.cancel_scope.cancel()


async def silent(stream: ByteStream) -> None:
    while True:
        await stream.receive()


async def closing(stream: ByteStream) -> None:
    """Close at once."""


async def flooding(stream: ByteStream) -> None:
    while True:
        await stream.send(b"x" * 65536)


def port_of(opened: TypedAttributeProvider) -> int:
    port: int = opened.extra(SocketAttribute.local_port)  # noqa: S610 - of a socket
    return port


@contextmanager
def refusing(kind: socket.SocketKind) -> Iterator[int]:
    """Hold a port without a listener, so that no other program gets it."""
    with socket.socket(socket.AF_INET, kind) as held:
        held.bind(("127.0.0.1", 0))
        if kind is socket.SOCK_DGRAM:
            held.connect(held.getsockname())  # it takes only its own datagrams
        port: int = held.getsockname()[1]
        yield port


def next_descriptor() -> int:
    """The next free descriptor: it changes if something stays open."""
    found = os.open(os.devnull, os.O_RDONLY)
    os.close(found)
    return found
