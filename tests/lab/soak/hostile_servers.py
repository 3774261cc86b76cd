"""The servers of hostile_soak.py, in a process of their own: `healthy`, or `hostile` with a port for each malice.

Prints the ports, one on a line, and serves until its standard input ends.
"""
# ruff: noqa: T201 - it speaks to who started it

import asyncio
import functools
import gzip
import os
import socket
import struct
import sys
from contextlib import suppress

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = OK + b"Content-Length: 1000000000\r\n\r\n"


async def healthy(send, writer):
    await send(OK + b"Content-Length: 5\r\nConnection: close\r\n\r\nhello")


async def byte_by_byte(send, writer):
    """As fast as they are taken."""
    await send(ENDLESS)
    while True:
        await send(b"x")


async def header_byte_by_byte(send, writer):
    for letter in OK + b"A: " + b"x" * 100_000:
        await send(bytes([letter]))


async def a_byte_now_and_then(send, writer):
    await send(ENDLESS)
    while True:
        await send(b"x")
        await asyncio.sleep(0.2)


async def tiny_chunks(send, writer):
    await send(CHUNKED)
    while True:
        await send(b"1\r\nx\r\n" * 5_000)


async def endless_chunk_header(send, writer):
    await send(CHUNKED + b"5; ")
    while True:
        await send(b" " * 10_000)


async def endless_header(send, writer):
    await send(OK)
    while True:
        await send(b"A: " + b"x" * 100 + b"\r\n")


async def blanks(send, writer):
    """Costs the square of their number where a pattern looks for the end of them."""
    await send(OK + b"A: " + b" " * 30_000 + b"\x0b\r\n\r\n")


async def tiny_headers(send, writer):
    await send(OK + b"a:\r\n" * 20_000 + b"\r\n")


async def interim_without_end(send, writer):
    while True:
        await send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


async def flood(send, writer):
    await send(OK + b"\r\n")
    while True:
        await send(b"x" * 65_536)


@functools.cache
def zeros():
    """Compress a hundred megabytes of them; not while this module is imported, which many do for its names."""
    return gzip.compress(b"\0" * 100_000_000)


async def bomb(send, writer):
    await send(OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(zeros()) + zeros())


async def long_location(send, writer):
    await send(b"HTTP/1.1 302 Found\r\nLocation: " + b"/" * 7_900 + b"\r\nContent-Length: 0\r\n\r\n")


async def far_too_long_location(send, writer):
    await send(b"HTTP/1.1 302 Found\r\nLocation: " + b"//" * 50_000 + b"@?\r\nContent-Length: 0\r\n\r\n")


async def broken_location(send, writer):
    await send(b"HTTP/1.1 302 Found\r\nLocation: http://[::1]]]:x/\r\nContent-Length: 0\r\n\r\n")


async def loop(send, writer):
    await send(b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n")


async def into_our_network(send, writer):
    await send(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/\r\nContent-Length: 0\r\n\r\n")


async def silent(send, writer):
    await asyncio.sleep(3600)


async def closing(send, writer):
    pass


async def resetting(send, writer):
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def other_protocol(send, writer):
    await send(b"SSH-2.0-OpenSSH_9.2\r\n\x1b[2J")
    await asyncio.sleep(3600)


async def into_our_network_in_disguise(send, writer):
    await send(b"HTTP/1.1 302 Found\r\nLocation: http://[::ffff:a9fe:a9fe]/latest/\r\nContent-Length: 0\r\n\r\n")


async def into_this_machine_by_number(send, writer):
    await send(b"HTTP/1.1 302 Found\r\nLocation: http://2130706433:1/\r\nContent-Length: 0\r\n\r\n")


async def deep_json(send, writer):
    await send(OK + b"Content-Length: 200000\r\n\r\n" + b"[" * 200_000)


async def endless_number(send, writer):
    await send(OK + b"Content-Length: 200000\r\n\r\n" + b"9" * 200_000)


async def fodder_for_patterns(send, writer):
    """Costs two to the power of its length where a pattern such as (a+)+$ goes back."""
    await send(OK + b"Content-Length: 200000\r\n\r\n" + b"a" * 199_999 + b"!")


async def escape_sequences(send, writer):
    await send("HTTP/1.1 503 \u202e\u009b2J\r\nX-Evil: \u202e\u009b2J\r\nContent-Length: 0\r\n\r\n".encode())


async def half_a_handshake(send, writer):
    """The beginning of a record of TLS, and nothing after it."""
    await send(b"\x16\x03\x03\x40\x00\x02")
    await asyncio.sleep(3600)


async def endless_handshake(send, writer):
    """Records of TLS, each of them proper, of a message that never ends."""
    await send(b"\x16\x03\x03\x40\x00\x0b\xff\xff\xff" + b"\0" * 16_380)
    while True:
        await send(b"\x16\x03\x03\x40\x00" + b"\0" * 16_384)


async def nested_bomb(send, writer):
    body = gzip.compress(zeros())
    fields = b"Content-Encoding: gzip, gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    await send(OK + fields + body)


MALICE = (
    byte_by_byte,
    header_byte_by_byte,
    tiny_chunks,
    long_location,
    blanks,
    flood,
    bomb,
    silent,
    a_byte_now_and_then,
    endless_chunk_header,
    endless_header,
    tiny_headers,
    interim_without_end,
    far_too_long_location,
    broken_location,
    loop,
    into_our_network,
    closing,
    resetting,
    other_protocol,
    into_our_network_in_disguise,
    into_this_machine_by_number,
    deep_json,
    endless_number,
    fodder_for_patterns,
    escape_sequences,
    half_a_handshake,
    endless_handshake,
    nested_bomb,
)


AT_ONCE = frozenset((half_a_handshake, endless_handshake))
"""Those that wait for no request, for there would be none before a handshake."""


def served(behave):
    async def handle(reader, writer):
        async def send(data):
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(0)

        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            if behave not in AT_ONCE:
                await reader.readuntil(b"\r\n\r\n")
            await behave(send, writer)
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()

    return handle


async def serve(behaviours):
    servers = [await asyncio.start_server(served(each), "0.0.0.0", 0, backlog=1000) for each in behaviours]
    for server in servers:
        print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)  # with whatever is still being sent


if __name__ == "__main__":
    is_hostile = sys.argv[1] == "hostile"
    if is_hostile:
        zeros()
        os.nice(5)  # it is the agent that is measured, not what the two do to each other's processor
    asyncio.run(serve(MALICE if is_hostile else [healthy]))
