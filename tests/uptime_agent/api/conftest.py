"""Agents with a control API that run while a test asks them."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest
from anyio.to_thread import run_sync
from click.testing import CliRunner

from asgi_kit import Answered, connect_to, written
from kit import PATIENCE, until
from push_kit import rest_of
from timerqueue import SystemClock
from uptime_agent import app
from uptime_agent.api import TokenFile
from uptime_agent.app import RunPlan
from uptime_agent.cli import cli
from uptime_agent.config import read_config
from uptime_agent.reload import Source

HEAD = """
store = "sqlite:///uptime.db"
[api]
listen = "127.0.0.1:{port}"
"""


class Display:
    """Notes what it is shown."""

    refresh_every = None

    def __init__(self):
        self.notices = []
        self.view = None

    def started(self, view):
        self.view = view

    def notice(self, text):
        self.notices.append(text)

    def remembered(self, target):
        pass

    def checked(self, target, *, is_change):
        pass

    def missed(self, target, event):
        pass

    def refresh(self):
        pass

    def stopped(self, summary):
        pass


class Asked:
    """Asks an agent over its Unix socket, as its own user, or over TCP with a token."""

    def __init__(self, config, token=None):
        self.config = config
        self.token = token

    async def connect(self):
        """Open a connection: over TCP if there is a token, also an empty one."""
        api = self.config.api
        return await (connect_to(api.socket) if self.token is None else anyio.connect_tcp(*api.listen))

    async def __call__(self, method, path, body=b"", **headers):
        """Send one request."""
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        if body:
            headers.setdefault("Content_Type", "application/json")
        with anyio.fail_after(PATIENCE):
            async with await self.connect() as stream:
                await stream.send(written(method, path, body, **headers))
                return Answered(await rest_of(stream))


@pytest.fixture
def running(tmp_path, free_port):
    """Return what runs an agent of these checks; its file is uptime.toml."""
    file = tmp_path / "uptime.toml"

    def write(checks, head=HEAD):
        beside = tmp_path / "uptime.new"
        beside.write_text(head.format(port=free_port) + checks)
        beside.replace(file)

    @asynccontextmanager
    async def run(checks=None, head=HEAD):
        if checks is not None:
            write(checks, head)
        config, display = read_config(file, {}), Display()
        tokens = TokenFile(config.api.tokens)
        async with anyio.create_task_group() as group:

            async def live():
                source = Source(file, lambda: read_config(file, {}))
                await app.run(config, display, RunPlan(), SystemClock(), source=source)

            group.start_soon(live)
            await until(lambda: display.view is not None)
            yield SimpleNamespace(
                config=config,
                display=display,
                tokens=tokens,
                write=write,
                file=file,
                local=Asked(config),
                nobody=Asked(config, ""),
                scheduler=display.view.scheduler,
                by=lambda name, scope: _by(config, tokens, name, scope),
            )
            display.view.scheduler.stop(0)

    return run


def _by(config, tokens, name, scope):
    tokens.add(name, scope, f"secret-{name}")
    return Asked(config, f"secret-{name}")


@pytest.fixture
def type_():
    """Type a command in a thread, as the agent runs in this process; return its exit code and what it says."""

    async def run(*words, **environment):
        found = await run_sync(lambda: CliRunner().invoke(cli, list(map(str, words)), env=environment))
        assert found.exception is None or isinstance(found.exception, SystemExit), found.output
        return found.exit_code, found.output

    return run
