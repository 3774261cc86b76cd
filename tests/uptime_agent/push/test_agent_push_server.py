"""What comes in over the push port: which requests are signals, and that a bad one ends its own exchange alone."""

import errno
import logging
import os
import socket
from functools import partial

import anyio
import pytest

from kit import PATIENCE, settle, until
from push_kit import request, rest_of
from timerqueue.testing import ManualClock
from uptime_agent.checks import Said
from uptime_agent.web import exchange, listen
from uptime_agent.web.exchange import MOST_HEAD, MOST_READ

TOKEN = "backup-7f3a9c51d2e8"


@pytest.mark.parametrize(
    ("path", "said", "code", "run"),
    [
        (f"/push/{TOKEN}", Said.SUCCESS, None, None),
        (f"/push/{TOKEN}/start?rid=ab-1", Said.START, None, "ab-1"),
        (f"/push/{TOKEN}/fail?other=1&rid=ab_2&more=3", Said.FAIL, None, "ab_2"),
        (f"/push/{TOKEN}/0?myrid=1", Said.SUCCESS, 0, None),
        (f"/push/{TOKEN}/137?rid=%00", Said.FAIL, 137, None),
        ("/push/unknown", Said.SUCCESS, None, None),
    ],
)
@pytest.mark.parametrize(("method", "takes_get"), [("POST", False), ("PUT", False), ("GET", True)])
async def test_a_request_is_a_signal(open_port, path, said, code, run, method, takes_get):
    """The answer is the same for a token that nobody has."""
    server = open_port(takes_get=takes_get)
    answer = await server.ask(request(path, method, b"took 3 GB\x1b[31m"))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\n\r\nOK\n")
    ((token, found),) = server.taken
    assert (token, found.said, found.code, found.run) == (path.split("/")[2].split("?")[0], said, code, run)
    assert "\x1b" not in found.log


@pytest.mark.parametrize("token", [TOKEN, "nobody-has-this-one"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_get_is_no_signal_unless_the_configuration_says_so(server, method, token):
    """A preview of a link, a crawler or the history of a browser reported that all is well. Now the history of the
    target says why it did not count, and the sender is told how to do it.
    """

    async def at_once():
        pass

    server.known = {TOKEN: at_once}
    answer = await server.ask(request(f"/push/{token}", method))
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"\r\nAllow: POST, PUT\r\n" in answer
    assert answer.endswith(b"signals are sent by POST\n" if method == "GET" else b"\r\n\r\n")
    ((_, found),) = server.taken
    assert found.said is Said.LOG
    assert "get = true in [push]" in found.log


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (request("/"), b"404"),
        (request(f"/push/{TOKEN}/256"), b"404"),
        (request(f"/push/{TOKEN}/explode"), b"404"),
        (request(f"/push/{TOKEN}", "DELETE"), b"405"),
        (request("/push/full"), b"503"),
        (b"\x00\x01\x02\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: nine\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * (MOST_HEAD + 4_096) + b"\r\n\r\n", b"431"),
        (f"POST /push/{TOKEN} HTTP/1.1\r\nHost: x\r\nContent-Length: {MOST_READ + 1}\r\n\r\n".encode(), b"413"),
    ],
)
async def test_anything_else_is_refused_and_changes_nothing(server, sent, status):
    """With the status that says so."""
    answer = await server.ask(sent)
    assert answer.split()[1] == status
    assert server.taken == []


async def test_who_has_to_send_a_signal_again_is_told_when_and_why(server):
    """As every client of HTTP understands it, and every person."""
    answer = await server.ask(request("/push/full"))
    assert b"\r\nRetry-After: 5\r\n" in answer
    assert answer.endswith(b"no room for it: send it again\n")


@pytest.mark.parametrize("fields", [10, 11, 1_000])
async def test_a_request_may_have_any_number_of_parameters(server, fields):
    """Eleven of them ended the whole agent, without a token: ValueError, which nobody caught."""
    query = "&".join(f"p{number}=1" for number in range(fields))
    answer = await server.ask(request(f"/push/x?{query}"))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert len(server.taken) == 1


async def test_a_defect_ends_its_own_exchange_and_is_logged_once(server, caplog):
    """Whatever it is: it ended the whole agent. The next signal is taken, and the log does not fill."""
    with caplog.at_level(logging.ERROR, logger="uptime_agent"):
        for _ in range(3):
            assert await server.ask(request("/push/defect")) == b""
    assert (await server.ask(request(f"/push/{TOKEN}"))).endswith(b"OK\n")
    assert [record.message for record in caplog.records] == [
        "a request to the push port could not be served; others can"
    ]


async def test_of_a_body_only_the_beginning_is_kept_and_all_is_read(server):
    """However long it is: who still sends when it is answered and closed gets a reset in place of the answer."""
    answer = await server.ask(request(f"/push/{TOKEN}", "POST", b"x" * 5_000_000))
    assert answer.endswith(b"OK\n")
    assert len(server.taken[0][1].log) == 300


async def test_what_follows_a_request_does_not_take_its_answer_back(server):
    """A connection that is closed over unread bytes is reset, and its answer may be lost."""
    with anyio.fail_after(PATIENCE):
        async with await server.connect() as stream:
            await stream.send(request(f"/push/{TOKEN}"))
            await until(lambda: server.taken)
            for _ in range(20):
                await stream.send(b"x" * 100_000)
            assert (await rest_of(stream)).endswith(b"OK\n")


async def test_who_waits_to_be_asked_for_a_body_is_asked(server):
    """RFC 9110: else curl waits a second with it, and strict clients five, or for ever."""
    head = f"POST /push/{TOKEN} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
    with anyio.fail_after(PATIENCE):
        async with await server.connect() as stream:
            await stream.send(head.encode())
            assert (await stream.receive()).startswith(b"HTTP/1.1 100 ")
            assert server.taken == []
            await stream.send(b"done")
            assert (await rest_of(stream)).endswith(b"OK\n")
    assert server.taken[0][1].log == "done"


async def test_a_body_that_is_too_long_is_refused_before_it_is_sent(server):
    """If its sender asks whether to send it."""
    head = f"POST /push/{TOKEN} HTTP/1.1\r\nHost: x\r\nContent-Length: {MOST_READ + 1}\r\nExpect: 100-continue\r\n\r\n"
    assert (await server.ask(head.encode())).startswith(b"HTTP/1.1 413 ")


async def test_a_request_that_does_not_end_is_answered_in_time(server, monkeypatch):
    """It was closed without a word, which no client tries again."""
    monkeypatch.setattr(exchange, "WITHIN", 0.05)
    assert (await server.ask(b"POST /push/")).startswith(b"HTTP/1.1 408 ")


class Exhausted(socket.socket):
    """A listener whose process has no descriptor left, so many times."""

    times = 0

    def accept(self):
        if self.times:
            self.times -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


@pytest.mark.parametrize("times", [1, 2, 8])
async def test_a_process_without_descriptors_refuses_and_accepts_again(open_port, times):
    """It ended. With the descriptor that is kept for it a connection is told so; without that it waits a moment."""
    listener = Exhausted(fileno=listen("127.0.0.1", 0).detach())
    listener.settimeout(0)
    listener.times = times
    server = open_port(listener=listener)
    answers = [await server.ask(request(f"/push/{TOKEN}")) for _ in range(2)]
    assert answers[-1].endswith(b"OK\n")
    assert (answers[0][:12] == b"HTTP/1.1 503") == (times == 1)
    assert server.peers.losses(None).count > 0
    assert len(server.notices) == 1
    assert os.strerror(errno.EMFILE) in server.notices[0]


async def test_who_says_nothing_gives_way_to_who_comes_later(open_port):
    """With an answer, the one that has been silent for longest first. So 300 idle connections keep no signal out."""
    server = open_port(most=8)
    with anyio.fail_after(PATIENCE):
        silent = [await server.connect() for _ in range(30)]
        assert (await server.ask(request(f"/push/{TOKEN}"))).endswith(b"OK\n")
        for stream in silent[:20]:
            assert (await rest_of(stream)).startswith(b"HTTP/1.1 503 ")
        for stream in silent:
            await stream.aclose()
    assert len(server.notices) == 1
    assert "turned away" in server.notices[0]


async def test_known_peers_have_places_that_strangers_do_not_get(open_port, source):
    """Though these keep all others: their requests have come, and wait for an answer."""
    server, may_end = open_port(most=8), anyio.Event()

    async def slow():
        await may_end.wait()

    async def at_once():
        pass

    server.known = {"mine": at_once}
    answers = []

    async def stranger(number):
        answers.append(await server.ask(request(f"/push/slow-{number}"), f"127.0.0.{10 + number}"))

    assert (await server.ask(request("/push/mine"), source)).endswith(b"OK\n")
    server.known |= {f"slow-{number}": slow for number in range(12)}
    server.peers.know = lambda _peer: None  # they stay strangers
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            for number in range(12):
                group.start_soon(stranger, number)
            while len(answers) < 6:
                await settle()
            assert all(each.startswith(b"HTTP/1.1 503 ") for each in answers)
            assert (await server.ask(request("/push/mine"), source)).endswith(b"OK\n")
            may_end.set()
    assert sum(each.endswith(b"OK\n") for each in answers) == 6


async def test_the_time_of_an_answer_does_not_tell_whether_a_target_has_the_token(open_port):
    """A right token took five times as long, for it waits for the store. Both follow the store, in steps."""
    clock = ManualClock()
    server = open_port(clock=clock)

    async def time_of(token):
        began, answers = clock.monotonic(), []

        async def ask():
            answers.append(await server.ask(request(f"/push/{token}")))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await until(lambda: clock.sleeping or answers)
            while not answers:
                clock.advance(0.001)
                await until(lambda: clock.sleeping or answers)
        return round(clock.monotonic() - began, 2)

    for stored_in, answered_in in ((0.001, 0.05), (0.049, 0.05), (0.12, 0.15), (0.004, 0.05)):
        server.known = {TOKEN: partial(clock.sleep, stored_in)}
        assert [await time_of(TOKEN), await time_of("nobody-has-this-one"), await time_of(TOKEN)] == [answered_in] * 3
