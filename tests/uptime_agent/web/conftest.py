"""Apps that are served while a test runs."""

import anyio
import pytest

from asgi_kit import Served
from timerqueue import SystemClock
from uptime_agent.web import forget, listen


@pytest.fixture
async def serve_app():
    """Serve apps, each with room for so many connections; they end with the test."""
    async with anyio.create_task_group() as group:
        opened = []

        def start(app, most=20, listener=None):
            served = Served(app, listen("127.0.0.1", 0) if listener is None else listener, SystemClock(), most)
            opened.append(served)
            group.start_soon(served.server.serve, served.listener)
            return served

        yield start
        group.cancel_scope.cancel()
    for each in opened:
        forget(each.listener)
