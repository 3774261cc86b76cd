"""Agents that share a store: a target is unreachable by one above it, whichever agent has that."""

import json
from contextlib import AsyncExitStack
from urllib.parse import quote

import anyio
import pytest

from agent_kit import read_head
from kit import until
from scheduler.stores.postgres import PostgresStore

pytestmark = pytest.mark.slow

SHOPS = [f"shop{number}" for number in range(6)]


@pytest.fixture(scope="module")
def anyio_backend():
    """The agents are processes with loops of their own."""
    return "asyncio"


@pytest.fixture
def file_of(tmp_path, postgres_server, postgres_schema, up):
    """Write the file of an agent: a router, which is looked at once an hour, and shops behind it."""
    host = quote(str(postgres_server.folder), safe="")
    tell = tmp_path / "tell"
    tell.write_text('#!/bin/sh\ncat >> "$1"; echo >> "$1"\n')
    tell.chmod(0o755)

    def check(name, more):
        return f'[[check]]\nname = "{name}"\nurl = "http://127.0.0.1:{up.port}/{name}"\n{more}\n'

    def file_of(name, shop="interval = '500ms'", router="interval = '1h'\nfailing_interval = '500ms'"):
        file = tmp_path / f"{name}.toml"
        shops = "".join(check(each, f'{shop}\ndepends_on = ["router"]') for each in SHOPS)
        file.write_text(f"""
            store = "postgresql://postgres@/postgres?host={host}&schema={postgres_schema}"
            [fleet]
            name = "{name}"
            [[channel]]
            name = "file"
            kind = "command"
            command = ["{tell}", "{tmp_path}/told"]
            {check("router", router)}{shops}
        """)
        return str(file)

    return file_of


@pytest.fixture
def told(tmp_path):
    """Read what the channel was given."""

    def told():
        file = tmp_path / "told"
        lines = [json.loads(line) for line in file.read_text().splitlines() if line] if file.exists() else []
        return [(each["kind"], each["target"]) for each in lines]

    return told


@pytest.fixture
def reports(postgres_server, postgres_schema):
    """Read the last reports of all targets."""
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema)

    def reports():
        found = {}
        for tick in store.history(limit=10_000):
            if tick.result and "status" in tick.result:
                found.setdefault(tick.job_id, json.loads(tick.result))
        return found

    yield reports
    store.close()


def are(status, reports, names=SHOPS, **more):
    """Tell whether the last reports of these say so."""
    return all(
        name in reports
        and reports[name]["status"] == status
        and all(reports[name].get(key) == value for key, value in more.items())
        for name in names
    )


def failing(*paths):
    """Make a handler that answers 503 to these, and 200 to all others."""

    async def handler(server, stream):
        path = (await read_head(stream)).split()[1]
        server.requests.append(path)
        status = 503 if path.strip("/") in paths else 200
        await stream.send(f"HTTP/1.1 {status} Any\r\nContent-Length: 0\r\n\r\n".encode())

    return handler


async def both_have_shops(agents):
    """Wait until both agents check shops: so the router is with another agent for some of them."""
    async with anyio.create_task_group() as group:
        for agent in agents:
            group.start_soon(agent.line_with, '"check"', "shop")


async def who_checks(name, agents):
    """Wait for a check of that target, and return the agent that has made it."""
    found = []

    async def look(agent):
        await agent.line_with('"check"', f'"{name}"')
        found.append(agent)
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for agent in agents:
            group.start_soon(look, agent)
    return found[0]


async def test_what_is_behind_a_target_that_is_down_is_unreachable_whoever_has_it(started, file_of, told, up, reports):
    """Shops of both agents find out that the router is down, which one of them has and has not looked at. There is one
    alarm and one end; and a shop that is down for itself is told of.
    """
    async with AsyncExitStack() as stack:
        agents = [await stack.enter_async_context(started("run", file_of(name), "--json")) for name in "ab"]
        await both_have_shops(agents)
        up.handler = failing("router", *SHOPS)
        await until(lambda: are("down", reports(), cause="router"))
        await until(lambda: told() == [("trigger", "router")])
        up.handler = failing()
        await until(lambda: are("up", reports()) and len(told()) == 2)
        up.handler = failing("shop3")
        await until(lambda: len(told()) == 3)
    assert told() == [("trigger", "router"), ("resolved", "router"), ("trigger", "shop3")]


async def test_an_agent_that_takes_over_goes_on_with_what_is_unreachable(started, file_of, told, up, reports):
    """The one that has the router dies while that is down: nothing is told of its shops, and the end once."""
    async with AsyncExitStack() as stack:
        agents = [await stack.enter_async_context(started("run", file_of(name), "--json")) for name in "ab"]
        await both_have_shops(agents)
        up.handler = failing("router", *SHOPS)
        await until(lambda: are("down", reports(), cause="router"))
        await until(lambda: told() == [("trigger", "router")])
        owner = await who_checks("router", agents)
        owner.process.kill()
        await owner.process.wait()
        before = len(up.requests)
        await until(lambda: {f"/{name}" for name in ("router", *SHOPS)} <= set(up.requests[before:]))
        await until(lambda: are("down", reports(), cause="router"))
        up.handler = failing()
        await until(lambda: are("up", reports()) and len(told()) == 2)
    assert told() == [("trigger", "router"), ("resolved", "router")]
