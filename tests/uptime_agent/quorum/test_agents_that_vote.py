"""Agents that share a store check one target at the same instants: its state is one, by their votes, and told once."""

import json
from contextlib import AsyncExitStack
from urllib.parse import quote

import anyio
import pytest

from agent_kit import respond
from kit import until
from scheduler.stores.postgres import PostgresStore

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def anyio_backend():
    """The agents are processes with loops of their own."""
    return "asyncio"


@pytest.fixture
def file_of(tmp_path, postgres_server, postgres_schema, up):
    """Write the file of an agent, for which the name "site" has an address of its own."""

    def file_of(name, address, zone):
        file, host = tmp_path / f"{name}.toml", quote(str(postgres_server.folder), safe="")
        file.write_text(f"""
            store = "postgresql://postgres@/postgres?host={host}&schema={postgres_schema}"
            [fleet]
            name = "{name}"
            labels = {{ region = "eu", zone = "{zone}" }}
            [hosts]
            site = "{address}"
            [[channel]]
            name = "file"
            kind = "command"
            command = ["{tmp_path}/tell", "{tmp_path}/told"]
            [[check]]
            name = "site"
            url = "http://site:{up.port}/"
            interval = "500ms"
            timeout = "5s"
            agents = 3
            where = "region=eu"
        """)
        return str(file)

    tell = tmp_path / "tell"
    tell.write_text('#!/bin/sh\ncat >> "$1"; echo >> "$1"\n')
    tell.chmod(0o755)
    return file_of


def checks(lines):
    """Read the checks that --json printed."""
    return [event for event in map(json.loads, lines) if event["event"] == "check"]


async def next_check(agents, holds):
    """Wait until one of the agents prints a check that is so, and return the agent."""
    found = []

    async def look(agent):
        while True:
            event = json.loads(await agent.line_with('"check"'))
            if holds(event):
                found.append(agent)
                group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for agent in agents:
            group.start_soon(look, agent)
    return found[0]


def told(folder):
    """Read what the channel was given."""
    file = folder / "told"
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line)["kind"] for line in lines if line]


def found_down(store):
    """Read what is kept of checks that found the site down."""
    reports = [json.loads(tick.result) for tick in store.history("site") if tick.result]
    return [report for report in reports if report["status"] == "down"]


def has_noted_that_it_is_told(store):
    """Tell whether the store knows that the channel has taken a message."""
    return any(tick.result and '"delivered"' in tick.result for tick in store.history(limit=10_000))


async def test_a_target_is_down_by_the_votes_of_all(started, file_of, up, postgres_server, postgres_schema):
    """One of three cannot reach it: degraded. None can: down. What each has found is kept."""
    files = [file_of(name, f"127.0.0.{1 + (name == 'c')}", zone) for name, zone in zip("abc", "xyz", strict=True)]
    async with AsyncExitStack() as stack:
        agents = [await stack.enter_async_context(started("run", file, "--json")) for file in files]
        await next_check(agents, lambda event: "down at 1 of 3 agents" in (event["error"] or ""))
        up.handler = respond(503)
        await next_check(agents, lambda event: event["status"] == "down" and "of 3 agents" in event["error"])
        store = PostgresStore(postgres_server.dsn, schema=postgres_schema)
        await until(lambda: found_down(store))
    votes = found_down(store)[0]["results"]
    assert {vote["address"] for vote in votes} == {"a", "b", "c"}
    assert ("c", "down") in {(vote["address"], vote["status"]) for vote in votes}


async def test_an_incident_is_told_once_by_whoever_has_the_target(
    started, file_of, tmp_path, up, postgres_server, postgres_schema
):
    """The agent that has told of its beginning dies; another one tells of its end, and nobody tells anything twice."""
    files = [file_of(name, "127.0.0.1", zone) for name, zone in zip("abc", "xyz", strict=True)]
    async with AsyncExitStack() as stack:
        agents = [await stack.enter_async_context(started("run", file, "--json")) for file in files]
        await next_check(agents, lambda event: event["status"] == "up")
        up.handler = respond(503)
        store = PostgresStore(postgres_server.dsn, schema=postgres_schema)
        await until(lambda: has_noted_that_it_is_told(store))  # else it would be told again, under the same key
        owner = await next_check(agents, lambda event: event["status"] == "down")
        owner.process.kill()
        await owner.process.wait()
        agents.remove(owner)
        await next_check(agents, lambda event: event["status"] == "down")
        up.handler = respond(200)
        await until(lambda: told(tmp_path) == ["trigger", "resolved"])
        await next_check(agents, lambda event: event["status"] == "up")
    assert told(tmp_path) == ["trigger", "resolved"]
