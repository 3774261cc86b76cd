"""Strangers at the push port of a whole agent: whatever they send, and however many they are, it goes on.

By hand all of them come; in .ci/run fewer in proportion, as with the examples of properties.
"""

import json
import random
import signal
import socket
import sys
from contextlib import suppress

import anyio
import pytest

from kit import examples
from push_kit import request, rest_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TOKEN = "backup-7f3a9c51d2e8"
HEALTHY = 20
INPUTS, STRANGERS = 10_000, 20_000
AT_ONCE = 40
"""Strangers that are there at a time: fewer than the places of one address, so that each input is read."""

CROWD = 300
"""Strangers that are there at a time, each from its own address: more than there are places."""

PIECES = [
    *(b"\r\n", b"\r\n\r\n", b"\x00", b"\xff\xfe", b" ", b":", b"%", b"?", b"&rid=", b"/push/", b"/fail", b"HTTP/1.1"),
    *(b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Host: a\r\n"),
    *(b"Content-Length: 99999999999999999999\r\n", b"Content-Length: -1\r\n", b"ffffffffffffffff\r\n", b"A" * 20_000),
]
SEEDS = [
    request("/push/no-such-token-00"),
    request("/push/no-such-token-00/fail?rid=a&" + "&".join(f"p{n}=1" for n in range(11)), "PUT", b"it went wrong"),
    request("/push/no-such-token-00/3", "GET"),
    request("/push/no-such-token-00/start?rid=%00%ff", "HEAD"),
    request("http://127.0.0.1/push/x", "OPTIONS"),
    request("/push/../../etc/passwd", "GET"),
    b"POST /push/no-such-token-00 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"POST /push/no-such-token-00 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    b"GET /push/no-such-token-00 HTTP/1.0\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(range(160)),
    request("/push/no-such-token-00") * 3,
]


@pytest.fixture(scope="module")
def anyio_backend():
    """The agent is a process with a loop of its own."""
    return "asyncio"


class Watched:
    """An agent whose lines are read, and a push target of it that goes on reporting from an address of its own."""

    def __init__(self, agent, port, source):
        self.agent, self.port, self.source = agent, port, source
        self.answers = []

    async def read(self):
        with suppress(anyio.EndOfStream, anyio.IncompleteRead):
            while True:
                await self.agent.line_with()

    async def report(self):
        async with await anyio.connect_tcp("127.0.0.1", self.port, local_host=self.source) as stream:
            await stream.send(request(f"/push/{TOKEN}"))
            self.answers.append(await rest_of(stream))

    async def go_on_reporting(self):
        """Report, whatever becomes of the report before: on a busy machine a connection may take seconds."""
        async with anyio.create_task_group() as group:
            while True:
                group.start_soon(self.report_in_time)
                await anyio.sleep(0.2)

    async def report_in_time(self):
        with anyio.move_on_after(5), suppress(OSError):
            await self.report()

    @property
    def events(self):
        return [json.loads(line) for line in self.agent.lines]

    @property
    def statuses(self):
        return {event["status"] for event in self.events if event["event"] == "check"}


@pytest.fixture
def watch(started, tmp_path, free_port, up, source):
    """Start an agent with healthy targets, let strangers do something to it, and stop it."""
    healthy = "".join(f'[[check]]\nname = "h{n}"\nurl = "http://127.0.0.1:{up.port}/"\n' for n in range(HEALTHY))
    file, log = tmp_path / "uptime.toml", tmp_path / "log"
    file.write_text(f"""
        [defaults]
        interval = "1s"
        [push]
        listen = "127.0.0.1:{free_port}"
        {healthy}
        [[check]]
        name = "backup"
        url = "push://backup"
        token = "{TOKEN}"
        interval = "2s"
        grace = "20s"
    """)

    async def watch(strangers, command):
        with log.open("wb") as errors:
            async with started("run", str(file), "--json", command=command, stderr=errors) as agent:
                watched = Watched(agent, free_port, source)
                await agent.line_with('"check"')
                async with anyio.create_task_group() as group:
                    group.start_soon(watched.read)
                    await watched.report()
                    group.start_soon(watched.go_on_reporting)
                    await strangers(free_port)
                    await watched.report()
                    group.cancel_scope.cancel()
                agent.process.send_signal(signal.SIGTERM)
                assert await agent.end() == 0, log.read_text()
        assert "could not be served" not in log.read_text()
        assert "down" not in watched.statuses, [each for each in watched.events if each.get("status") == "down"]
        assert {answer[:12] for answer in watched.answers} == {b"HTTP/1.1 200"}
        return watched

    return watch


COMMAND = [sys.executable, "-m", "uptime_agent"]


async def in_turns(number, at_once, each):
    """Have so many strangers, some at a time."""
    left = iter(range(number))

    async def one_after_another():
        for which in left:
            await each(which)

    async with anyio.create_task_group() as group:
        for _ in range(at_once):
            group.start_soon(one_after_another)


def mutated(draw):
    """Return a request that has been changed in some places, and in which pieces it is sent."""
    data = bytearray(draw.choice(SEEDS))
    for _ in range(draw.randint(0, 4)):
        at = draw.randrange(len(data) + 1)
        match draw.randrange(5):
            case 0:
                data[at : at + 1] = bytes([draw.randrange(256)])
            case 1:
                del data[at : at + draw.randint(1, 40)]
            case 2:
                data[at:at] = draw.choice(PIECES)
            case 3:
                data[at:at] = data[at : at + draw.randint(1, 60)] * draw.randint(1, 5)
            case 4:
                del data[at:]
    cuts = sorted(draw.randrange(len(data) + 1) for _ in range(draw.choice([0, 0, 1, 3])))
    return [bytes(data[a:b]) for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]


async def test_any_input_ends_its_own_exchange_and_nothing_else(watch):
    """Requests that were changed in any way, cut, sent in pieces, left or reset in the middle."""
    draw, unanswered = random.Random(7), []

    async def stranger_of(port):
        async def stranger(_number):
            pieces, leaves = mutated(draw), draw.choice(["never", "never", "at once", "by a reset"])
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                    for piece in pieces:
                        await stream.send(piece)
                    if leaves == "by a reset":
                        raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
                        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    if leaves == "never":
                        await stream.send_eof()
                        answer = await rest_of(stream)
                        if pieces and not answer.startswith(b"HTTP/1.1 "):
                            unanswered.append((pieces, answer))

        await in_turns(examples(INPUTS), AT_ONCE, stranger)

    await watch(stranger_of, COMMAND)
    assert unanswered == []


async def test_very_many_strangers_keep_no_signal_of_a_known_peer_out(watch):
    """With 256 descriptors, as on macOS. Each has an address, and says nothing, half a request or a wrong token."""

    async def strangers(port):
        async def stranger(number):
            source = f"127.{1 + number // 62_500}.{number // 250 % 250}.{1 + number % 250}"
            with suppress(OSError, anyio.BrokenResourceError):
                async with await anyio.connect_tcp("127.0.0.1", port, local_host=source) as stream:
                    await stream.send([b"", b"POST /push/no-such", request("/push/no-such-token-00")][number % 3])
                    await rest_of(stream)

        await in_turns(examples(STRANGERS), CROWD, stranger)

    few = ["/bin/sh", "-c", 'ulimit -n 256; exec "$0" "$@"', *COMMAND]
    watched = await watch(strangers, few)
    said = [event["text"] for event in watched.events if event["event"] == "notice"]
    assert sum("turned away" in text for text in said) == 1, said
