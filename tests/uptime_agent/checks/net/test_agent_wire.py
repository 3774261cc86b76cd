"""A connection to an address that was chosen: dialled as it is."""

import socket

import pytest

from uptime_agent.checks.net import Budget
from uptime_agent.checks.net.wire import connect

NOTHING_LISTENS = 1


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_an_address_is_dialled_without_a_lookup(monkeypatch, address):
    """Nothing that may block is asked for what an address itself says."""

    def refuse(*_args, **_kwargs):
        raise AssertionError("it was looked up")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(OSError, match=r"refused|Cannot assign|not supported"):
        await connect(address, NOTHING_LISTENS, Budget(1))


async def test_a_zone_is_read_by_the_system():
    """It names one of this machine's interfaces, or none."""
    with pytest.raises(socket.gaierror):
        await connect("fe80::1%there-is-none", NOTHING_LISTENS, Budget(1))


async def test_an_answer_is_read_whole_in_whatever_pieces_it_is_asked_for(serve):
    """Whoever has spoken waits before it reads; what has come then is read without waiting."""

    async def hello(_server, stream):
        await stream.receive()
        await stream.send(b"hello")

    server = await serve(hello)
    wire = await connect("127.0.0.1", server.port, Budget(100))
    try:
        await wire.send(b"x")
        assert [await wire.receive(2), await wire.receive()] == [b"he", b"llo"]
    finally:
        await wire.aclose()
