"""What hostile HTTP servers cost: they are cut off, in words of ours, and nobody else waits for them."""

import gzip
import socket
import struct

import anyio
import anyio.lowlevel
import anyio.to_thread
import h11
import pytest

from kit import PATIENCE
from timerqueue.testing import ManualClock
from uptime_agent.checks.contract.result import Status
from uptime_agent.checks.contract.stopwatch import Stopwatch
from uptime_agent.checks.contract.trouble import CheckFailed
from uptime_agent.checks.http.decoding import Inflated
from uptime_agent.checks.http.exchange import MOST_HEAD, MOST_LINES, SLICE, Exchange
from uptime_agent.checks.http.http_check import SCHEMES
from uptime_agent.checks.kinds import BY_SCHEME
from uptime_agent.checks.net.budget import BYTES_PER_READ, FREE_EVENTS, FREE_READS, Budget
from uptime_agent.text.url import parse_url

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def check(port, **options):
    """Make an HTTP check of a port."""
    return BY_SCHEME["http"].make(url=parse_url(f"http://127.0.0.1:{port}/", SCHEMES), **options)


def sending(*pieces):
    """Make a handler that reads a request and sends these, then closes."""

    async def handler(server, stream):
        await stream.receive()
        for piece in pieces:
            await stream.send(piece)

    return handler


class Script:
    """A stream from which comes what a test has written, piece by piece, and then its end."""

    def __init__(self, *pieces):
        self.pieces = list(pieces)
        self.reads = 0

    async def send(self, item):
        self.sent = item

    async def receive(self, max_bytes=65536):
        self.reads += 1
        if not self.pieces:
            raise anyio.EndOfStream
        return self.pieces.pop(0)


async def exchanged(*pieces, most=1_000_000, budget=None):
    """Ask a script: the status, the size of the body, and the budget."""
    budget = Budget(10 * most) if budget is None else budget
    exchange = Exchange(Script(*pieces), Stopwatch(ManualClock()), budget)
    await exchange.send(h11.Request(method="GET", target="/", headers={"Host": "h"}.items()))
    head = await exchange.head()
    size = 0
    while part := await exchange.part(most):
        size += len(part)
    return head.status_code, size, budget


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"", "closed without an answer"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", 'its answer is not HTTP, it begins with "SSH-2.0-OpenSSH_9.2'),
        (b"\x15\x03\x01\x00\x02\x02\x16", 'its answer is not HTTP, it begins with "\x15\x03\x01\x00'),
        (b"HTT", "broke off in the middle of its header"),
        (OK + b"Content-Le", "broke off in the middle of its header"),
        (OK + b"Content-Length: 10\r\n\r\nhello", "broke off in the middle of its body, after 5 of 10 bytes"),
        (CHUNKED + b"5\r\nhello\r\n", "broke off in the middle of its body, after 5 bytes"),
        (CHUNKED + b"nonsense\r\n\r\n", "its body makes no sense as HTTP"),
        (b"HTTP/9 nine\r\n\r\n", "its header makes no sense as HTTP"),
        (OK + b"no colon\r\n\r\n", "its header makes no sense as HTTP"),
        (OK + b"A: \x00\r\n\r\n", "its header makes no sense as HTTP: it holds control characters"),
        (OK + b"A: b\rC: d\r\n\r\n", "its header makes no sense as HTTP: it holds control characters"),
        (OK + b"A: " + b"x" * 40_000, "its header is longer than 32 KiB"),
        (OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "its header makes no sense as HTTP"),
        (OK + b"a:\r\n" * 1_000, f"its header has more than {MOST_LINES} lines"),
        (CHUNKED + b"5;" + b"x" * 9_000, "its body makes no sense as HTTP: a line between its chunks does not end"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000, "its header is longer than 32 KiB"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "its header makes no sense as HTTP"),
    ],
)
async def test_what_is_no_proper_answer_is_told_in_words_of_ours(sent, error):
    """No text of h11 among them, which repeats what came."""
    with pytest.raises(CheckFailed) as caught:
        await exchanged(*[sent] * bool(sent))
    assert str(caught.value).startswith(error)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello", (200, 5)),
        (OK + b"\r\nhello", (200, 5)),
        (CHUNKED + b"2\r\nhe\r\n3;note\r\nllo\r\n0\r\nTrailer: x\r\n\r\n", (200, 5)),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", (404, 0)),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, 0)),
        (b"HTTP/1.0 200\nA: b\n c\n\nhello", (200, 5)),
        (OK + b"A: \xff\xfe\t x  \r\nContent-Length: 1\r\n\r\n!", (200, 1)),
        (OK + b"A: " + b"x" * 30_000 + b"\r\n\r\n", (200, 0)),
        (CHUNKED + b"ffff\r\n" + b"x" * 65_535 + b"\r\n0\r\n\r\n", (200, 65_535)),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_a_proper_answer_is_understood_in_whatever_pieces_it_comes(sent, found, size):
    """Whole or byte by byte, with the budget that such pieces need."""
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    budget = Budget(10**9, events=-(10**9), reads=-(10**9))
    assert (await exchanged(*pieces, budget=budget))[:2] == found


@pytest.mark.parametrize(
    ("sent", "steps"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello", 2),
        (OK + b"Content-Length: 0\r\n\r\n", 1),
        (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", 3),
    ],
)
async def test_an_answer_takes_no_more_steps_than_it_has_parts(sent, steps):
    """Its head, and each part of its body: h11 is not asked before anything has come, nor after the last byte."""
    *_, budget = await exchanged(sent)
    assert budget.events == steps


async def test_an_answer_that_comes_byte_by_byte_is_cut_off(serve, attempt):
    """After a number of reads that no honest answer of its size needs, however fast they come."""
    budget = Budget(10**9)
    for _ in range(FREE_READS):
        budget.read(1)
    with pytest.raises(CheckFailed, match="cut off: it sends its answer in tiny pieces, 501 for 501 bytes"):
        budget.read(1)


async def test_an_answer_of_tiny_chunks_is_cut_off():
    """They may come all at once, and would be taken apart without a pause."""
    sent = CHUNKED + b"1\r\nx\r\n" * 100_000
    budget = Budget(10**9)
    with pytest.raises(CheckFailed, match="cut off: its answer has tiny parts"):
        await exchanged(sent, budget=budget)
    assert budget.events == FREE_EVENTS + 1


async def test_others_have_their_turn_while_an_answer_is_taken_apart():
    """After a few dozen parts of it at the most."""
    turns = []

    async def other():
        while True:
            await anyio.lowlevel.checkpoint()
            turns.append(None)

    async with anyio.create_task_group() as group:
        group.start_soon(other)
        await exchanged(CHUNKED + b"1\r\nx\r\n" * 1_500 + b"0\r\n\r\n")
        group.cancel_scope.cancel()
    assert len(turns) >= 1_500 // 64 - 2


async def test_an_honest_answer_is_within_its_budget(serve, answers, attempt):
    """A megabyte in segments of the smallest size that networks have, and a page that is written line by line."""
    segments = [b"x" * 1_220] * 850
    head = OK + b"Content-Length: %d\r\n\r\n" % (1_220 * 850)
    budget = Budget(10**9)
    for piece in (head, *segments):
        budget.read(len(piece))
    assert (await exchanged(head, *segments, most=2_000_000, budget=budget))[1] == 1_220 * 850
    lines = b"".join(b"32\r\n" + b"x" * 50 + b"\r\n" for _ in range(1_500)) + b"0\r\n\r\n"
    assert (await exchanged(CHUNKED + lines))[1] == 75_000


async def test_more_bytes_than_there_is_room_for_are_cut_off(serve, attempt):
    """What is no body counts too: chunks have headers, which may be longer than what they hold."""
    chunk = b"1;" + b"x" * 900 + b"\r\ny\r\n"
    server = await serve(sending(CHUNKED, *[chunk * 100] * 30))
    with pytest.raises(CheckFailed, match="cut off: it has sent"):
        await check(server.port, max_body=1000).attempt(attempt())
    with anyio.fail_after(PATIENCE):
        await server.all_closed.wait()


async def test_a_bomb_is_not_unpacked_beyond_the_cap():
    """A megabyte of zeros in a kilobyte: what is beyond is never made."""
    body = Inflated(100_000, "gzip")
    await body.take(gzip.compress(b"\0" * 50_000_000))
    assert len(body.content) == 100_000


async def test_a_body_that_is_not_compressed_as_it_says_is_wrong(serve, answers, attempt):
    """It is the server that says so."""
    server = await serve(answers.respond(headers=["Content-Encoding: gzip"]))
    with pytest.raises(CheckFailed, match="its body is not encoded as gzip, although it says so"):
        await check(server.port, contains="x").attempt(attempt())


async def test_a_body_that_nobody_looks_at_is_not_kept(serve, answers, attempt):
    """Its bytes are counted; a bomb is just bytes then."""
    server = await serve(answers.respond(body=gzip.compress(b"\0" * 1_000_000), headers=["Content-Encoding: gzip"]))
    finding = await check(server.port).attempt(attempt())
    assert (finding.status, finding.detail["bytes"] < 5_000) == (Status.UP, True)


async def test_a_server_that_resets_is_told_as_such(target_check):
    """In the words for a connection, not in those of a library."""

    def reset(listener):
        connection, _ = listener.accept()
        with connection:
            connection.recv(1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, reset, listener)
            result = await target_check(check(port)).run()
    assert (result.status, result.error) == (Status.DOWN, f"connection reset by 127.0.0.1:{port}")


async def test_an_upgrade_that_was_asked_for_may_be_the_answer(serve, attempt):
    """As of a WebSocket."""
    server = await serve(
        sending(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
    )
    headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
    finding = await check(server.port, headers=headers, expect_status=((101, 101),)).attempt(attempt())
    assert (finding.status, finding.detail["http_status"]) == (Status.UP, 101)


def test_the_bounds_fit_together():
    """A slice is less than a header; a read that is full is never too tiny."""
    assert SLICE < MOST_HEAD
    assert BYTES_PER_READ < 1_220
