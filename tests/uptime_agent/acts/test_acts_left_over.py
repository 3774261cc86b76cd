"""Acts whose target, group or tag has gone, also while no agent ran: none holds for ever, and each can be ended."""

import pytest

from kit import until
from uptime_agent.acts import NoSuchName

pytestmark = pytest.mark.anyio


async def test_acts_of_a_target_that_left_the_file_while_no_agent_ran_end(world):
    """Otherwise a target of that name would not be checked years later."""
    async with world.agent(world.text(("shop",), ("blog",))) as agent:
        agent.acts.begin_maintenance("shop", reason="new disk", actor="ann")
        agent.acts.begin_maintenance("blog", reason="new disk", actor="ann")
        await agent.stored()
    async with world.agent(world.text(("blog",))) as agent:
        assert [act.scope.name for act in agent.acts.all()] == ["blog"]
        await agent.stored()
    async with world.agent(world.text(("shop",), ("blog",))) as agent:
        assert agent.acts.acts_of("shop").in_maintenance is None
        assert await agent.check("shop") == "up"


async def test_a_silence_of_a_target_that_left_the_file_swallows_no_end(world, tomorrow):
    """The alarm of a pager ends with the target."""
    world.down.add("shop")
    async with world.agent(world.text(("shop",), ("blog",))) as agent:
        await agent.check("shop")
        await until(lambda: world.told_of("shop") == ["trigger"])
        agent.acts.silence("shop", until=tomorrow, reason="deployment", actor="ann")
        await agent.stored()
    async with world.agent(world.text(("blog",))) as agent:
        await until(lambda: world.told_of("shop") == ["trigger", "resolved"])
        assert agent.acts.all() == []


async def test_an_act_of_a_tag_that_no_target_has_can_be_ended(world):
    """And one of a group. A tag that never was is refused."""
    group = "[[group]]\nname = 'all'\nmembers = ['shop']\nnotify = []"
    async with world.agent(world.text(("shop", 'tags = ["web"]'), head=group)) as agent:
        agent.acts.begin_maintenance(tag="web", reason="new disk", actor="ann")
        agent.acts.begin_maintenance(group="all", reason="new disk", actor="ann")
        await agent.stored()
    async with world.agent(world.text(("shop",))) as agent:
        assert len(agent.acts.all()) == 2
        with pytest.raises(NoSuchName):
            agent.acts.end_maintenance(tag="wbe", actor="bob")
        agent.acts.end_maintenance(tag="web", actor="bob")
        agent.acts.end_maintenance(group="all", actor="bob")
        assert agent.acts.all() == []


@pytest.mark.parametrize("reason", ["x" * 500, "two\nlines", "tab\tbed", "ünïcödé 😀", "{}'\"%s"])
async def test_a_pause_is_the_same_after_a_restart_whatever_its_reason(world, reason):
    """It is told from other pauses by its reason."""
    async with world.agent(world.text(("shop",))) as agent:
        agent.acts.pause("shop", reason=reason, actor="ann")
        assert agent.acts.acts_of("shop").paused.reason == reason
        await agent.stored()
        world.dies()
    async with world.agent() as agent:
        assert agent.acts.acts_of("shop").paused.reason == reason
