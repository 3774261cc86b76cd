"""Agents that share a store: what targets have to do with one another is the same, whichever agent has which."""

import json
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from urllib.parse import quote

import anyio
import pytest

from agent_kit import read_head
from kit import until
from scheduler.stores.postgres import PostgresStore
from uptime_agent.relations import GROUP

pytestmark = pytest.mark.slow

SHOPS = [f"shop{number}" for number in range(6)]
OFTEN = 'interval = "500ms"'
ASKED = 'interval = "5s"\nfailing_interval = "500ms"'


@pytest.fixture(scope="module")
def anyio_backend():
    """The agents are processes with loops of their own."""
    return "asyncio"


@pytest.fixture
def check(up):
    """Write a check of a path of the server."""

    def check(name, more=OFTEN):
        return f'[[check]]\nname = "{name}"\nurl = "http://127.0.0.1:{up.port}/{name}"\n{more}\n'

    return check


@pytest.fixture
def agents_of(tmp_path, postgres_server, postgres_schema, started):
    """Start two agents with these checks, which share a store and tell a channel that notes what it is told."""
    host = quote(str(postgres_server.folder), safe="")
    tell = tmp_path / "tell"
    tell.write_text('#!/bin/sh\ncat >> "$1"; echo >> "$1"\n')
    tell.chmod(0o755)

    @asynccontextmanager
    async def agents_of(text):
        async with AsyncExitStack() as stack:
            agents = []
            for name, region in (("a", "eu"), ("b", "us")):
                file = tmp_path / f"{name}.toml"
                file.write_text(f"""
                    store = "postgresql://postgres@/postgres?host={host}&schema={postgres_schema}"
                    [fleet]
                    name = "{name}"
                    labels = {{ region = "{region}" }}
                    [[channel]]
                    name = "file"
                    kind = "command"
                    command = ["{tell}", "{tmp_path}/told"]
                    {text}
                """)
                agents.append(await stack.enter_async_context(started("run", str(file), "--json")))
            group = await stack.enter_async_context(anyio.create_task_group())
            for agent in agents:
                group.start_soon(drain, agent)
            for agent in agents:  # both have shops, so of each of them some are elsewhere
                await who_prints([agent], '"check"', "shop")
            yield agents
            group.cancel_scope.cancel()

    return agents_of


@pytest.fixture
def told(tmp_path):
    """Read what the channel was given."""

    def told():
        file = tmp_path / "told"
        lines = [json.loads(line) for line in file.read_text().splitlines() if line] if file.exists() else []
        return [(each["kind"], each["target"]) for each in lines]

    return told


@pytest.fixture
def store(postgres_server, postgres_schema):
    """Look into the store of the agents."""
    with closing(PostgresStore(postgres_server.dsn, schema=postgres_schema)) as store:
        yield store


@pytest.fixture
def reports(store):
    """Read the last reports of all targets and groups."""

    def reports():
        found = {}
        for tick in store.history(limit=10_000):
            if tick.result and "status" in tick.result:
                found.setdefault(tick.job_id, json.loads(tick.result))
        return found

    return reports


def has_noted_that_it_is_told(store):
    """Tell whether the store knows that the channel has taken a message."""
    return any(tick.result and '"delivered"' in tick.result for tick in store.history(limit=10_000))


def are(status, reports, names=SHOPS, **more):
    """Tell whether the last reports of these say so."""
    return all(
        name in reports
        and reports[name]["status"] == status
        and all(reports[name].get(key) == value for key, value in more.items())
        for name in names
    )


def failing(*paths, slow=None):
    """Make a handler that answers 503 to these, after a while to one that is `slow`, and 200 to all others."""

    async def handler(server, stream):
        path = (await read_head(stream)).split()[1]
        server.requests.append(path)
        if path == f"/{slow}":
            await anyio.sleep(1.2)
        status = 503 if path.strip("/") in paths else 200
        await stream.send(f"HTTP/1.1 {status} Any\r\nContent-Length: 0\r\n\r\n".encode())

    return handler


async def who_prints(agents, *parts):
    """Wait for a line with these that is printed from now on, and return the agent that has printed it."""
    before, found = [len(agent.lines) for agent in agents], []

    def look():
        for agent, number in zip(agents, before, strict=True):
            if any(all(part in line for part in parts) for line in agent.lines[number:]):
                found.append(agent)
        return bool(found)

    await until(look)
    return found[0]


async def drain(agent):
    """Read what an agent prints: it stands still once nobody does."""
    with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
        await agent.line_with("no line has this")


async def kill(agent):
    """End an agent by kill -9."""
    agent.process.kill()
    await agent.process.wait()


@pytest.fixture
def behind_a_router(check):
    """Write a router, which is looked at more seldom than the shops behind it while it is up."""
    return check("router", ASKED) + "".join(check(each, f'{OFTEN}\ndepends_on = ["router"]') for each in SHOPS)


async def test_what_is_behind_a_target_that_is_down_is_unreachable_whoever_has_it(
    agents_of, behind_a_router, told, up, reports, store
):
    """Shops of both agents find out that the router is down, which one of them has and looks at more seldom. There is
    one alarm, and one end though that agent dies meanwhile; and a shop that is down for itself is told of.
    """
    async with agents_of(behind_a_router) as agents:
        up.handler = failing("router", *SHOPS)
        await until(lambda: are("down", reports(), cause="router"))
        await until(lambda: has_noted_that_it_is_told(store))
        await kill(await who_prints(agents, '"check"', '"router"'))
        before = len(up.requests)
        await until(lambda: {f"/{name}" for name in ("router", *SHOPS)} <= set(up.requests[before:]))
        await until(lambda: are("down", reports(), cause="router"))
        assert told() == [("trigger", "router")]
        up.handler = failing()
        await until(lambda: are("up", reports()) and len(told()) == 2)
        up.handler = failing("shop3")
        await until(lambda: len(told()) == 3)
    assert told() == [("trigger", "router"), ("resolved", "router"), ("trigger", "shop3")]


@pytest.fixture
def in_a_group(check):
    """Write shops that are a group, of whose members only that one is told."""
    shops = "".join(check(each, f"{OFTEN}\nnotify = []") for each in SHOPS)
    return f'{shops}[[group]]\nname = "shops"\nmembers = {json.dumps(SHOPS)}\ndown_if = "5 of 6"\n'


async def test_a_group_is_down_once_whichever_agents_have_its_members(agents_of, in_a_group, told, up, reports, store):
    """It is told of when so many are down, and when they are so many no more, though the agent that has told of its
    beginning dies meanwhile; and so again.
    """
    async with agents_of(in_a_group) as agents:
        up.handler = failing(*SHOPS[:4])
        await until(lambda: are("down", reports(), SHOPS[:4]))
        up.handler = failing(*SHOPS[:5])
        owner = await who_prints(agents, "told file", "shops")
        await until(lambda: has_noted_that_it_is_told(store))  # else it is told again, under the same key
        assert are("down", reports(), [GROUP + "shops"], error=f"5 of 6 are down: {', '.join(SHOPS[:5])}")
        await kill(owner)
        before = len(up.requests)
        await until(lambda: {f"/{name}" for name in SHOPS} <= set(up.requests[before:]))
        up.handler = failing(*SHOPS[1:4])
        await until(lambda: len(told()) == 2)
        up.handler = failing(*SHOPS[1:])
        await until(lambda: len(told()) == 3)
    assert told() == [("trigger", "shops"), ("resolved", "shops"), ("trigger", "shops")]


async def test_what_is_checked_in_one_region_is_unreachable_by_what_is_down_in_another(
    agents_of, check, told, up, reports
):
    """Agents vote on both, each in its region: so neither is asked out of turn. The one above answers late; those below
    it are judged once it has. What is down for itself is told of as ever.
    """
    router = check("router", 'interval = "2s"\nwhere = "region=us"')
    shops = [check(each, 'interval = "1s"\nwhere = "region=eu"\ndepends_on = ["router"]') for each in SHOPS]
    async with agents_of(router + "".join(shops)):
        await until(lambda: are("up", reports(), ["router", *SHOPS]))
        up.handler = failing("router", *SHOPS, slow="router")
        await until(lambda: are("down", reports(), cause="router"))
        await until(lambda: told() == [("trigger", "router")])
        up.handler = failing()
        await until(lambda: are("up", reports()) and len(told()) == 2)
        up.handler = failing("shop3")
        await until(lambda: len(told()) == 3)
    assert told() == [("trigger", "router"), ("resolved", "router"), ("trigger", "shop3")]
