"""An ASGI app behind the server of the agent: bodies, streams, and what a client may not do."""

import logging

import anyio
import pytest
from anyio import get_cancelled_exc_class

from asgi_kit import Answered, written
from kit import PATIENCE, until
from push_kit import rest_of
from timerqueue import SystemClock
from uptime_agent.web import AsgiHandler, HttpServer, Peers, exchange, listen
from uptime_agent.web.exchange import MOST_FIELDS, MOST_HEAD, MOST_READ

START = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}


async def whole(receive):
    """Read a body."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message["body"]
        if not message["more_body"]:
            return body


async def echo(scope, receive, send):
    """Answer with what was asked."""
    body = await whole(receive)
    if body is None:
        return
    await send(START)
    await send(
        {"type": "http.response.body", "body": scope["method"].encode() + b" " + scope["raw_path"] + b" " + body}
    )


class Stream:
    """An app that sends a piece whenever the test says so, and notes how it ends."""

    def __init__(self):
        self.more = anyio.Event()
        self.is_open = 0
        self.ends = []
        self.heard = []

    async def __call__(self, scope, receive, send):
        await send(START)
        await send({"type": "http.response.body", "body": b"first\n", "more_body": True})
        self.is_open += 1
        try:
            await self.more.wait()
            await send({"type": "http.response.body", "body": b"second\n", "more_body": False})
            self.ends.append("whole")
        except get_cancelled_exc_class():
            self.ends.append("cancelled")
            raise
        except OSError:
            self.ends.append("gone")
            raise


@pytest.mark.parametrize("length", [0, 1, 100_000, 3_000_000])
async def test_a_body_of_any_length_comes_in_pieces(serve_app, length):
    """Whether its length is said or it comes in chunks."""
    served = serve_app(echo)
    body = b"x" * length
    found = Answered(await served.ask(written("PUT", "/a%2Fb?c=1", body)))
    assert (found.status, found.body == b"PUT /a%2Fb " + body) == (200, True)
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (length, body) if length else b"0\r\n\r\n"
    head = b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert Answered(await served.ask(head + chunked)).body == b"PUT /x " + body


async def test_a_head_is_answered_without_a_body(serve_app):
    """Its length would be that of a GET."""
    found = await serve_app(echo).ask(written("HEAD", "/x"))
    assert found.startswith(b"HTTP/1.1 200 ")
    assert found.endswith(b"\r\n\r\n")


async def test_who_waits_to_be_asked_for_a_body_is_asked(serve_app):
    """Only once the app wants the body."""
    head = b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
    with anyio.fail_after(PATIENCE):
        async with await serve_app(echo).connect() as stream:
            await stream.send(head)
            assert (await stream.receive()).startswith(b"HTTP/1.1 100 ")
            await stream.send(b"done")
            assert (await rest_of(stream)).endswith(b"PUT /x done")


async def test_an_answer_of_unknown_length_is_sent_as_it_comes(serve_app):
    """Each piece arrives before there is another one."""
    app = Stream()
    with anyio.fail_after(PATIENCE):
        async with await serve_app(app).connect() as stream:
            await stream.send(written("GET", "/events"))
            received = b""
            while b"first\n" not in received:
                received += await stream.receive()
            assert b"second" not in received
            app.more.set()
            received += await rest_of(stream)
    assert Answered(received).body == b"first\nsecond\n"
    assert app.ends == ["whole"]


async def test_a_stream_ends_when_its_client_leaves(serve_app):
    """Though the app has nothing to send, and would not notice for hours."""
    app = Stream()
    served = serve_app(app)
    with anyio.fail_after(PATIENCE):
        async with await served.connect() as stream:
            await stream.send(written("GET", "/events"))
            await until(lambda: app.is_open)
        await until(lambda: app.ends)
        await until(lambda: not len(served.peers))
    assert app.ends == ["cancelled"]


async def test_all_streams_end_as_the_server_stops():
    """However many are open, and whatever their clients do."""
    app, listener = Stream(), listen("127.0.0.1", 0)
    server = HttpServer(SystemClock(), AsgiHandler(app), Peers(100), lambda _: None)
    with anyio.fail_after(PATIENCE), listener:
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, listener)
            streams = [await anyio.connect_tcp(*listener.getsockname()) for _ in range(40)]
            for each in streams:
                await each.send(written("GET", "/events"))
            await until(lambda: app.is_open == 40)
            group.cancel_scope.cancel()
        assert app.ends == ["cancelled"] * 40
        for each in streams:
            assert (await rest_of(each)).endswith(b"first\n\r\n")
            await each.aclose()


async def test_a_reader_that_does_not_read_holds_its_app_up_and_is_left(serve_app, monkeypatch):
    """What is not read is not made: the app waits, and its memory does not grow."""
    monkeypatch.setattr(exchange, "SENT_WITHIN", 0.2)
    sent, ended = [], anyio.Event()

    async def endless(scope, receive, send):
        await send(START)
        try:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
                sent.append(1)
        finally:
            ended.set()

    with anyio.fail_after(PATIENCE):
        async with await serve_app(endless).connect() as stream:
            await stream.send(written("GET", "/events"))
            await ended.wait()
    assert len(sent) < 1_000


async def test_a_client_that_leaves_during_an_act_does_not_cut_it_off(serve_app):
    """A change is made as a whole: only what is streamed ends with its reader."""
    began, may_end, ended = anyio.Event(), anyio.Event(), anyio.Event()

    async def act(scope, receive, send):
        await whole(receive)
        began.set()
        await may_end.wait()
        ended.set()
        await send({**START, "status": 204})
        await send({"type": "http.response.body"})

    with anyio.fail_after(PATIENCE):
        async with await serve_app(act).connect() as stream:
            await stream.send(written("POST", "/act"))
            await began.wait()
        may_end.set()
        await ended.wait()


async def test_an_app_hears_that_its_client_has_left(serve_app):
    """As `http.disconnect`."""
    heard = []

    async def listening(scope, receive, send):
        heard.append((await receive())["type"])
        heard.append((await receive())["type"])

    with anyio.fail_after(PATIENCE):
        async with await serve_app(listening).connect() as stream:
            await stream.send(written("GET", "/"))
            await until(lambda: heard)
        await until(lambda: len(heard) == 2)
    assert heard == ["http.request", "http.disconnect"]


async def test_a_client_that_has_said_all_gets_its_answer(serve_app):
    """It may close its side: `nc` does so."""
    with anyio.fail_after(PATIENCE):
        async with await serve_app(echo).connect() as stream:
            await stream.send(written("GET", "/x"))
            await stream.send_eof()
            assert (await rest_of(stream)).endswith(b"GET /x ")


# -- hostile -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 5\r\n\r\nabcde", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        (b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * MOST_FIELDS + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * (MOST_HEAD + 4_096) + b"\r\n\r\n", 431),
        (f"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {MOST_READ + 1}\r\n\r\n".encode(), 413),
        (b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    ],
)
async def test_what_two_servers_might_read_in_two_ways_is_refused(serve_app, sent, status):
    """Both lengths, two of one, strange framing: with one request per connection nothing can be smuggled anyway."""
    assert Answered(await serve_app(echo).ask(sent)).status == status


async def test_what_follows_a_request_is_no_request(serve_app):
    """It is read and dropped: the connection has one exchange."""
    asked = []

    async def app(scope, receive, send):
        asked.append(scope["raw_path"])
        await echo(scope, receive, send)

    received = await serve_app(app).ask(written("GET", "/one") + written("GET", "/two") * 50)
    assert (received.count(b"HTTP/1.1 200"), asked) == (1, [b"/one"])
    assert b"connection: close" in received.lower()


@pytest.mark.parametrize("sent", [b"GET /", b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"])
async def test_a_request_that_does_not_end_is_answered_in_time(serve_app, monkeypatch, sent):
    """Whether it stops in its head or in its body."""
    monkeypatch.setattr(exchange, "WITHIN", 0.1)
    monkeypatch.setattr(exchange, "BODY_WITHIN", 0.1)
    assert Answered(await serve_app(echo).ask(sent)).status == 408


async def test_connections_that_say_nothing_give_way(serve_app):
    """So they keep nobody out, however many they are."""
    served = serve_app(echo, most=8)
    with anyio.fail_after(PATIENCE):
        silent = [await served.connect() for _ in range(100)]
        assert Answered(await served.ask(written("GET", "/x"))).status == 200
        for each in silent:
            await each.aclose()


async def test_a_body_that_comes_slowly_gives_way(serve_app):
    """Its head alone makes no claim to a place."""
    served = serve_app(echo, most=4)
    with anyio.fail_after(PATIENCE):
        slow = [await served.connect() for _ in range(4)]
        for each in slow:
            await each.send(b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
        assert Answered(await served.ask(written("GET", "/x"))).status == 200
        for each in slow:
            await each.aclose()


async def test_a_defect_of_an_app_ends_its_own_exchange(serve_app, caplog):
    """And is logged once; an answer that was begun is cut off, and does not look whole."""

    async def app(scope, receive, send):
        if scope["path"] == "/late":
            await send(START)
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
        if scope["path"] != "/none":
            raise ZeroDivisionError

    served = serve_app(app)
    with caplog.at_level(logging.ERROR, logger="uptime_agent"):
        assert await served.ask(written("GET", "/")) == b""
        assert not (await served.ask(written("GET", "/late"))).endswith(b"0\r\n\r\n")
        assert await served.ask(written("GET", "/none")) == b""
    assert len(caplog.records) == 2


async def test_a_websocket_is_a_request_as_any_other(serve_app):
    """Nothing is upgraded."""
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Key": "x", "Sec_WebSocket_Version": "13"}
    assert (await serve_app(echo).get("/x", **headers)).status == 200
