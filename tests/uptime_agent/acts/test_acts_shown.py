"""Acts are shown wherever their target is: in the table, in lines, in JSON."""

import io
import json

import pytest
from rich.console import Console

from kit import until
from uptime_agent.acts import ActRefused
from uptime_agent.show.lines import JsonLines, PlainLines
from uptime_agent.show.table import draw

pytestmark = pytest.mark.anyio


def table(agent):
    """Draw the table of an agent, as one text without line breaks."""
    console = Console(file=io.StringIO(), width=200, height=30)
    console.print(draw(agent.screen.view, 200, 30))
    return " ".join(console.file.getvalue().split())


def lines(agent, name, kind):
    """Write the last check of a target as lines."""
    stream = io.StringIO()
    kind(stream, lambda: 0.0).checked(agent.target(name), is_change=False)
    return stream.getvalue()


async def test_the_table_shows_who_did_what_until_when_and_why(world, tomorrow):
    """A paused target is paused, whatever it was."""
    world.down.add("shop")
    async with world.agent(world.text(("shop",), ("blog",), ("db",))) as agent:
        for name in ("shop", "blog", "db"):
            await agent.check(name)
        agent.acts.acknowledge("shop", reason="disk ordered", actor="ann")
        agent.acts.pause("blog", until=tomorrow, reason="moving house", actor="bob")
        agent.acts.begin_maintenance("db", reason="new disk", actor="eve")
        text = table(agent)
        assert "DOWN" in text
        assert "acknowledged by ann: disk ordered; status 500" in text
        assert "PAUSED" in text
        assert f"paused until {tomorrow.isoformat(timespec='seconds')[:16]}" in text
        assert "by bob: moving house; was up" in text
        assert "MAINTENANCE" in text
        assert "in maintenance by eve: new disk" in text


async def test_lines_of_checks_have_the_acts_of_their_targets(world, tomorrow):
    """For people in words, for programs as values."""
    async with world.agent(world.text(("shop", 'tags = ["web"]'))) as agent:
        await agent.check("shop")
        assert "acts" not in json.loads(lines(agent, "shop", JsonLines))
        agent.acts.silence(tag="web", until=tomorrow, reason="deployment", actor="ann")
        assert "by ann: deployment)" in lines(agent, "shop", PlainLines)
        (act,) = json.loads(lines(agent, "shop", JsonLines))["acts"]
        assert (act["act"], act["tag"], act["actor"], act["reason"]) == ("silence", "web", "ann", "deployment")


async def test_the_incident_of_a_group_can_be_acknowledged(world):
    """It ends as the group recovers. A member's own incident is another one."""
    world.down.update(("shop", "blog"))
    group = "[[group]]\nname = 'sites'\nmembers = ['shop', 'blog']\ndown_if = '2 of 2'"
    async with world.agent(world.text(("shop",), ("blog",), head=group)) as agent:
        await agent.check("shop")
        with pytest.raises(ActRefused, match="the group sites has no open incident"):
            agent.acts.acknowledge("sites", reason="power cut", actor="ann")
        await agent.check("blog")
        await until(lambda: world.told_of("sites") == ["trigger"])
        agent.acts.acknowledge("sites", reason="power cut", actor="ann")
        assert agent.acts.acts_of("shop").acknowledged is None
        world.down.clear()
        while agent.target("shop").incident is not None:
            await agent.check("shop")
        await until(lambda: world.told_of("sites") == ["trigger", "resolved"])
        assert agent.acts.all() == []
    assert world.told[-1]["acknowledged_by"] == "ann"
