"""Two agents on one store, each with a control API: any of them takes any act, and each tells what it has."""

import json
import signal

import anyio
import pytest

from asgi_kit import Answered, check, connect_to, written
from push_kit import rest_of

SITES = ("shop", "blog", "wiki", "mail")


async def asked(folder, method, path, body=b""):
    """Ask the agent of a folder."""
    async with await connect_to(folder / "uptime.api" / "socket") as stream:
        headers = {"Content_Type": "application/json"} if body else {}
        await stream.send(written(method, path, body, **headers))
        return Answered(await rest_of(stream))


async def incidents(folders):
    """Return the open incidents that each agent tells."""
    return [(await asked(each, "GET", "/v1/incidents")).json["incidents"] for each in folders]


async def come(is_so):
    """Ask again and again until it is so."""
    while not await is_so():
        await anyio.lowlevel.checkpoint()


@pytest.mark.slow
async def test_any_agent_takes_an_act_and_each_tells_its_own_incidents(started, tmp_path, url):
    """An acknowledgement reaches the agent that has the target, whichever was asked."""
    folders = tmp_path / "one", tmp_path / "other"
    for each in folders:
        each.mkdir()
        sites = "".join(check(name, 'start = "now"', interval="1s") for name in SITES)
        (each / "uptime.toml").write_text(f'store = "{url}"\n[fleet]\n[api]\n{sites}')
    files = [str(each / "uptime.toml") for each in folders]

    async def are_down():
        return {each["target"] for found in await incidents(folders) for each in found} == set(SITES)

    async def are_known():
        told = [each for found in await incidents(folders) for each in found]
        held = [len((await asked(each, "GET", "/v1/acts")).json["acts"]) for each in folders]
        return held == [len(SITES)] * 2 and len(told) == len(SITES) and all(each["acknowledged"] for each in told)

    async with started("run", files[0], "--plain") as one, started("run", files[1], "--plain") as other:
        for agent in (one, other):
            await agent.line_with("NOTICE", "this agent shares the store")
        await come(are_down)
        body = json.dumps({"reason": "disk ordered"}).encode()
        for name in SITES:
            found = await asked(folders[0], "POST", f"/v1/targets/{name}/ack", body)
            assert found.status == 200, found
        await come(are_known)
        for agent in (one, other):
            agent.process.send_signal(signal.SIGTERM)
            assert await agent.end() == 0
