"""What a check costs, counted in calls of Python functions: that is the same on every machine, however busy it is."""

import socket
import sys
import threading
from contextlib import contextmanager

import pytest

from uptime_agent.checks import Status
from uptime_agent.checks.http.http_check import SCHEMES
from uptime_agent.checks.kinds import BY_SCHEME
from uptime_agent.text import parse_url

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
MOST_CALLS = 480
CHECKS = 20


@pytest.fixture(scope="module")
def anyio_backend():
    """Another event loop has other costs of its own."""
    return "asyncio"


@pytest.fixture
def port():
    """Answer each request in a thread, whose calls are not counted."""

    def answer():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:  # the test has ended
                return
            with connection:
                connection.recv(65_536)
                connection.sendall(ANSWER)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@contextmanager
def counted():
    """Count calls of Python functions in this thread."""
    calls = []
    sys.setprofile(lambda _frame, event, _arg: calls.append(event) if event == "call" else None)
    try:
        yield calls
    finally:
        sys.setprofile(None)


async def test_an_http_check_calls_few_functions(port, target_check):
    """A good half are h11's. They were 585 when each check made its request anew and looked its address up."""
    url = parse_url(f"http://127.0.0.1:{port}/", SCHEMES)
    check = target_check(BY_SCHEME["http"].make(url=url, contains="hello"))
    assert (await check.run()).status is Status.UP
    with counted() as calls:
        for _ in range(CHECKS):
            await check.run()
    assert len(calls) / CHECKS <= MOST_CALLS
