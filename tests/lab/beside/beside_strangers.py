"""Strangers at the push port of an agent, and one known peer that goes on reporting."""
# ruff: noqa: T201 - it speaks to who started it

import asyncio
import random
import socket
import struct
from contextlib import suppress

from fuzzed_requests import mutated
from push_kit import request

TOKEN = "backup-7f3a9c51d2e8"
KNOWN = "127.0.0.2"
"""The address of the known peer."""
AT_ONCE = 40
"""Strangers at a time: fewer than the places of one address, so that the agent reads each input."""
CROWD = 300
"""Strangers at a time, each with its own address: more than there are places."""
REPORTS = 0.2
"""Seconds from one report of the known peer to the next."""
NOT_STORED = b"not stored"
"""A text in the answer to a signal that the store did not keep within its time."""
PATIENCE = 60.0


async def exchange(port, pieces, source=None, leaves="never"):
    """Send pieces. Return the answer, up to the end of the connection."""
    address = None if source is None else (source, 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=address)
    answer = b""
    try:
        with suppress(OSError):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            if leaves == "by a reset":
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            if leaves == "never":
                writer.write_eof()
            while leaves in {"never", "waits"} and (more := await reader.read(65_536)):
                answer += more
    finally:
        writer.close()
    return answer


async def report(port, answers):
    """Report as the known peer. Repeat it while the store is too slow, as on a busy machine."""
    said = NOT_STORED
    try:
        async with asyncio.timeout(PATIENCE):
            while NOT_STORED in said:
                said = await exchange(port, [request(f"/push/{TOKEN}")], KNOWN, "waits")
    except OSError as exc:  # TimeoutError among them
        said = f"no answer: {exc!r}".encode()
    answers.append(said[9:12].decode() if said.startswith(b"HTTP/1.1 ") else said[:80].decode() or "nothing")


async def go_on_reporting(port, answers):
    """Report every 0.2 s, without waiting for the earlier answers."""
    async with asyncio.TaskGroup() as group:
        while True:
            group.create_task(report(port, answers))
            await asyncio.sleep(REPORTS)


async def in_turns(inputs, at_once, each):
    """Let strangers come, `at_once` at a time, until all inputs are given."""
    numbers = iter(range(inputs.wanted))

    async def one_after_another():
        for number in numbers:
            await each(number)
            inputs.count()

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(one_after_another())


async def beside_a_known_peer(inputs, port, at_once, each):
    """Let strangers come while the known peer reports. Print how the agent answered the reports."""
    answers = []
    await report(port, answers)
    reporting = asyncio.create_task(go_on_reporting(port, answers))
    await in_turns(inputs, at_once, each)
    reporting.cancel()
    await report(port, answers)
    for said in dict.fromkeys(answers):
        print(f"signal {answers.count(said)} {said}", flush=True)


async def push(inputs, push_port, **_):
    """Send mutated requests: cut, in pieces, left or reset in the middle."""
    draw = random.Random(inputs.seed)

    async def stranger(_number):
        pieces, leaves = mutated(draw), draw.choice(["never", "never", "at once", "by a reset"])
        with suppress(OSError):
            answer = await exchange(push_port, pieces, None, leaves)
            if leaves == "never" and pieces and not answer.startswith(b"HTTP/1.1 "):
                print(f"defect {pieces!r:.200} is answered by {answer!r:.80}", flush=True)

    await beside_a_known_peer(inputs, push_port, AT_ONCE, stranger)


async def crowd(inputs, push_port, **_):
    """Come from many addresses, and send nothing, half a request or a wrong token."""

    async def stranger(number):
        source = f"127.{1 + number // 62_500}.{number // 250 % 250}.{1 + number % 250}"
        said = [b"", b"POST /push/no-such", request("/push/no-such-token-00")][number % 3]
        with suppress(OSError):
            await exchange(push_port, [said], source, "waits")

    await beside_a_known_peer(inputs, push_port, CROWD, stranger)
