"""A store from before the agent had a package of its own: what stands in it goes on under the new name."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from older_code import code_of

pytestmark = pytest.mark.slow

BEFORE = "5dd00ab3fca4396e3effefa7023fe3382e3abce6"
"""The last commit in which the agent was `scheduler.agent`."""


@pytest.fixture(scope="module")
def anyio_backend():
    """Run on one backend: the agent is a process of its own, whatever loop the test has."""
    return "asyncio"


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """Return how the agent of before is started: its command, and where its code lies."""
    code = code_of(BEFORE, tmp_path_factory.mktemp("older"))
    return {"command": [sys.executable, "-m", "scheduler.agent"], "PYTHONPATH": str(code)}


def tasks_in(store):
    """Return the names of tasks that stored jobs call, each once."""
    with closing(sqlite3.connect(store)) as database, database:
        return {name for (name,) in database.execute("SELECT DISTINCT task FROM job")}


async def test_a_store_of_before_goes_on(started, ran, config, hook, older):
    """A target stands as it stood, a message that waited is delivered, and history tells what had gone wrong."""
    file = config(f'[[channel]]\nname = "ops"\nkind = "webhook"\nurl = "http://127.0.0.1:{hook.port}/"\n')
    store = Path(file).with_suffix(".db")
    hook.status = 503
    async with started("run", file, "--plain", **older) as agent:
        await agent.line_with("-> DOWN", "db")
        await agent.line_with("channel ops", "answered with status 503")
        agent.process.terminate()
        await agent.end()
    tasks, hook.status = tasks_in(store), 200
    async with started("run", file, "--plain") as agent:
        await agent.line_with("REMEMBERED", "db", "DOWN since")
        await agent.line_with("told ops: db is down")
        agent.process.terminate()
        assert await agent.end() == 0
    assert tasks == {"check", "notify"}
    assert not any("is not checked" in line or "parked" in line for line in agent.lines)
    _, out, _ = await ran("history", "--config", file, "--limit", "1000")
    assert "DELIVERED" in out
    assert "scheduler.agent" not in out
