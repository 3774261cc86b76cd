"""The commands of operators: rows that a running agent follows, on SQLite and in PostgreSQL, in a fleet too."""

import json
import signal

import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend():
    """The processes under test have loops of their own."""
    return "asyncio"


async def ends(command):
    """Stop an agent, and wait for its end."""
    command.process.send_signal(signal.SIGTERM)
    assert await command.end() == 0


async def says(ran, *args):
    """Run a command that works; return what it said."""
    code, out, err = await ran(*args)
    assert (code, err) == (0, "")
    return out


async def test_commands_are_heard_by_a_running_agent(started, ran, world):
    """Within a second, and by the next agent if none runs."""
    world.down.add("shop")
    world.write(world.text(("shop", 'start = "now"', 'tags = ["web"]')))
    file = str(world.file)
    async with started("run", file, "--plain") as agent:
        await agent.line_with("-> DOWN", "shop")
        out = await says(ran, "ack", file, "shop", "--reason", "disk ordered", "--actor", "ann")
        assert "shop is acknowledged by ann: disk ordered; a running agent follows within a second" in out
        await agent.line_with("NOTICE", "shop is acknowledged by ann: disk ordered")
        await says(ran, "silence", file, "--tag", "web", "--for", "2h", "--reason", "deployment", "--actor", "bob")
        await agent.line_with("NOTICE", "the tag web is silenced until", "by bob: deployment")
        await says(ran, "check-now", file, "shop", "--actor", "bob")
        await agent.line_with("NOTICE", "shop is checked now, for bob")
        await agent.line_with("DOWN", "shop", "acknowledged by ann: disk ordered; silenced until")
        await says(ran, "pause", file, "shop", "--reason", "moving house", "--actor", "ann")
        await agent.line_with("NOTICE", "shop is paused by ann: moving house")
        await says(ran, "resume", file, "shop", "--actor", "bob")
        await agent.line_with("NOTICE", "over: shop is paused by ann: moving house")
        await says(ran, "silence", file, "--tag", "web", "--end", "--actor", "bob")
        await agent.line_with("NOTICE", "over: the tag web is silenced")
        await ends(agent)
    await says(ran, "maintain", file, "shop", "--reason", "new disk", "--actor", "ann")
    lines = (await says(ran, "acts", file, "--json")).splitlines()
    assert [json.loads(line)["act"] for line in lines] == ["acknowledge", "maintenance"]
    async with started("run", file, "--plain") as agent:
        await agent.line_with("NOTICE", "shop is in maintenance by ann: new disk")
        await ends(agent)


async def test_a_command_that_makes_no_sense_says_what_to_do(ran, world):
    """Nothing is written."""
    world.write(world.text(("shop",)))
    file = str(world.file)
    for args, said in (
        (("ack", file, "shpo", "--reason", "x"), "there is no target 'shpo', did you mean 'shop'?"),
        (("ack", file, "shop"), "say why with --reason"),
        (("silence", file, "shop", "--reason", "x"), "give --for"),
        (("silence", file, "--for", "1h", "--reason", "x"), "name one target, one group or one tag, not 0"),
        (("pause", file, "shop", "--reason", "x"), "has an agent run with it?"),
    ):
        code, out, err = await ran(*args)
        assert (code, out) == (2, "")
        assert said in err


@pytest.mark.slow
async def test_every_node_of_a_fleet_follows_an_act(started, ran, world, url):
    """Whichever has the target: its death moves target, incident and acknowledgement to the other."""
    world.down.update(("shop", "blog"))
    world.store = url
    checks = [(name, 'start = "now"', 'tags = ["web"]') for name in ("shop", "blog")]
    world.write(world.text(*checks, head="[fleet]"))
    file = str(world.file)
    async with started("run", file, "--plain") as one, started("run", file, "--plain") as other:
        for agent in (one, other):
            await agent.line_with("NOTICE", "this agent shares the store")
        await says(ran, "silence", file, "--tag", "web", "--for", "2h", "--reason", "deployment", "--actor", "bob")
        for agent in (one, other):
            await agent.line_with("NOTICE", "the tag web is silenced until", "by bob: deployment")
        one.process.send_signal(signal.SIGKILL)
        await one.process.wait()
        await other.line_with("NOTICE", "is gone")
        for name in ("shop", "blog"):
            await says(ran, "check-now", file, name, "--actor", "bob")
            await other.line_with("DOWN", name, "silenced until")
        await says(ran, "silence", file, "--tag", "web", "--end", "--actor", "bob")
        await other.line_with("NOTICE", "over: the tag web is silenced")
        await ends(other)


async def test_a_command_ends_an_act_of_a_tag_that_no_target_has_any_more(started, ran, world):
    """Otherwise it would hold again, as soon as a target had the tag."""
    world.write(world.text(("shop", 'start = "now"', 'tags = ["web"]')))
    file = str(world.file)
    async with started("run", file, "--plain") as agent:
        await agent.line_with("UP", "shop")
        await ends(agent)
    await says(ran, "maintain", file, "--tag", "web", "--reason", "new disk", "--actor", "ann")
    world.write(world.text(("shop",)))
    assert (await ran("maintain", file, "--tag", "wbe", "--end", "--actor", "bob"))[0] != 0
    assert (await ran("maintain", file, "--tag", "web", "--reason", "again", "--actor", "bob"))[0] != 0
    await says(ran, "maintain", file, "--tag", "web", "--end", "--actor", "bob")
    assert await says(ran, "acts", file) == ""
