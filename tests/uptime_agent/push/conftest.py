"""A push port that is served while a test runs."""

import socket

import anyio
import pytest

from push_kit import PushPort
from timerqueue import SystemClock


@pytest.fixture
async def open_port():
    """Open push ports, each with room for so many connections; they are closed with the test."""
    async with anyio.create_task_group() as group:
        opened = []

        def start(most=20, clock=None, listener=None, *, takes_get=False):
            port = PushPort(most, SystemClock() if clock is None else clock, listener, takes_get=takes_get)
            opened.append(port)
            group.start_soon(port.server.serve, port.listener)
            return port

        yield start
        group.cancel_scope.cancel()
    for each in opened:
        each.listener.close()


@pytest.fixture
async def server(open_port):
    """Open one push port."""
    return open_port()


@pytest.fixture
def source():
    """Skip where this machine has no second address; return it."""
    with socket.socket() as found:
        try:
            found.bind(("127.0.0.2", 0))
        except OSError:
            pytest.skip("needs 127.0.0.2")
    return "127.0.0.2"
