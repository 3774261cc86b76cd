"""The door of the control API around an app that streams."""

import os

import anyio
import pytest

from asgi_kit import Answered, Served, written
from kit import PATIENCE, until
from push_kit import rest_of
from timerqueue import SystemClock
from uptime_agent.api.callers import Known
from uptime_agent.api.guard import Guard
from uptime_agent.api.tokens import TokenFile
from uptime_agent.web import Peers, forget, listen, listen_at


class Stream:
    """Sends a piece each time the test says so, to whom the guard lets in."""

    def __init__(self, guard):
        self.guard = guard
        self.more = anyio.Event()
        self.callers = []

    async def __call__(self, scope, receive, send):
        self.callers.append((await self.guard.access(scope)).name)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first\n", "more_body": True})
        await self.more.wait()
        await send({"type": "http.response.body", "body": b"second\n", "more_body": True})
        await send({"type": "http.response.body", "body": b"third\n"})


@pytest.fixture
async def door(tmp_path):
    """Serve a stream behind a guard, over TCP and over a Unix socket."""
    tokens = TokenFile(tmp_path / "a.api" / "tokens")
    guard = Guard(Known(find=tokens.find, ours=None), tokens, (), Peers(20), SystemClock())
    guard.app = stream = Stream(guard)
    listeners = [listen("127.0.0.1", 0), listen_at(tmp_path / "a.api" / "socket")]
    served = [Served(guard, each, SystemClock()) for each in listeners]
    async with anyio.create_task_group() as group:
        for each in served:
            group.start_soon(each.server.serve, each.listener)
        yield tokens, stream, *served
        group.cancel_scope.cancel()
    for each in listeners:
        forget(each)


async def test_a_stream_ends_with_its_token(door):
    """Not a byte comes after the token was revoked, and the stream does not look whole."""
    tokens, stream, served, _ = door
    tokens.add("ann", "read", "a")
    tokens.add("bob", "read", "b")
    with anyio.fail_after(PATIENCE):
        async with await served.connect() as ann, await served.connect() as bob:
            await ann.send(written("GET", "/events", Authorization="Bearer a"))
            await bob.send(written("GET", "/events", Authorization="Bearer b"))
            await until(lambda: len(stream.callers) == 2)
            TokenFile(tokens.path).revoke("ann")
            stream.more.set()
            revoked, whole = await rest_of(ann), await rest_of(bob)
    assert b"second" not in revoked
    assert not revoked.endswith(b"0\r\n\r\n")
    assert Answered(whole).body == b"first\nsecond\nthird\n"
    assert sorted(stream.callers) == ["ann", "bob"]


async def test_root_needs_no_token_and_anybody_else_one(door):
    """The kernel says who is at the other end. Here nobody but root is ours."""
    _, stream, _, local = door
    stream.more.set()
    found = Answered(await local.ask(written("GET", "/events")))

    assert stream.callers == (["uid 0"] if os.geteuid() == 0 else [])
    assert (found.status == 200) == (os.geteuid() == 0)
