"""Each act through a real agent, with a store in SQLite: what it does, what is shown, and what stays of it."""

import sqlite3
from contextlib import closing

import pytest

from kit import until
from uptime_agent.acts import ActRefused

pytestmark = pytest.mark.anyio


async def test_an_acknowledged_incident_ends_its_acknowledgement_as_it_recovers(world):
    """The message of the end names who knew of it, and why it took so long."""
    world.down.add("shop")
    async with world.agent(world.text(("shop",))) as agent:
        assert await agent.check("shop") == "down"
        agent.acts.acknowledge("shop", reason="disk ordered", actor="ann")
        assert agent.acts.acts_of("shop").acknowledged.actor == "ann"
        assert agent.target("shop").acts("shop").text.endswith("by ann: disk ordered")
        world.down.clear()
        while agent.target("shop").incident is not None:
            await agent.check("shop")
        assert agent.acts.acts_of("shop").acknowledged is None
        await until(lambda: world.told_of("shop") == ["trigger", "resolved"])
    assert world.told[-1]["acknowledged_by"] == "ann"
    assert "; acknowledged by ann: disk ordered" in world.told[-1]["text"]


async def test_an_acknowledgement_is_there_after_a_death(world):
    """And ends with the incident in the next process."""
    world.down.add("shop")
    async with world.agent(world.text(("shop",))) as agent:
        await agent.check("shop")
        agent.acts.acknowledge("shop", reason="disk ordered", actor="ann")
        await agent.stored()
        world.dies()
    async with world.agent() as agent:
        assert agent.acts.acts_of("shop").acknowledged.reason == "disk ordered"
        await agent.check("shop")
        assert agent.acts.acts_of("shop").acknowledged is not None
        world.down.clear()
        while agent.target("shop").incident is not None:
            await agent.check("shop")
        assert agent.acts.all() == []


async def test_what_begins_in_a_silence_is_told_once_as_it_ends(world, tomorrow):
    """An incident that ended meanwhile is told to nobody."""
    world.down.update(("shop", "blog"))
    async with world.agent(world.text(("shop", 'tags = ["web"]'), ("blog", 'tags = ["web"]'), ("db",))) as agent:
        agent.acts.silence(tag="web", until=tomorrow, reason="deployment", actor="ann")
        for name in ("shop", "blog"):
            assert await agent.check(name) == "down"
        world.down.discard("blog")
        while agent.target("blog").incident is not None:
            await agent.check("blog")
        world.down.add("db")
        await agent.check("db")
        await until(lambda: world.told_of("db") == ["trigger"])
        assert world.told_of("shop") == world.told_of("blog") == []
        agent.acts.end_silence(tag="web", actor="bob")
        await until(lambda: world.told_of("shop") == ["trigger"])
        assert world.told_of("blog") == []
        await until(lambda: any("not told ops, silenced: blog is up again" in each for each in agent.screen.notices))


async def test_what_was_told_before_a_silence_is_resolved_after_it(world, tomorrow):
    """The alarm of a pager must not stay open for ever. What is still down is reminded of, once."""
    world.down.update(("shop", "blog"))
    group = "[[group]]\nname = 'all'\nmembers = ['shop', 'blog']\nnotify = []"
    async with world.agent(world.text(("shop",), ("blog",), head=group)) as agent:
        for name in ("shop", "blog"):
            await agent.check(name)
            await until(lambda name=name: world.told_of(name) == ["trigger"])
        agent.acts.silence(group="all", until=tomorrow, reason="deployment", actor="ann")
        world.down.discard("blog")
        while agent.target("blog").incident is not None:
            await agent.check("blog")
        await agent.stored()
        world.dies()
    async with world.agent() as agent:
        assert agent.acts.acts_of("shop").silenced.actor == "ann"
        agent.acts.end_silence(group="all", actor="bob")
        await until(lambda: world.told_of("blog") == ["trigger", "resolved"])
        await until(lambda: world.told_of("shop") == ["trigger", "reminder"])


async def test_a_paused_target_says_since_when_by_whom_and_why(world, tomorrow):
    """A reload and a restart leave it paused; whoever resumes it ends that."""
    async with world.agent(world.text(("shop",))) as agent:
        await agent.check("shop")
        agent.acts.pause("shop", until=tomorrow, reason="moving house", actor="ann")
        await agent.reload(world.text(("shop", 'timeout = "4s"')))
        assert agent.scheduler.get("shop").error == "moving house"
        await agent.stored()
    async with world.agent() as agent:
        paused = agent.acts.acts_of("shop").paused
        assert (paused.actor, paused.reason) == ("ann", "moving house")
        agent.acts.resume("shop", actor="bob")
        assert agent.scheduler.get("shop").error is None
        assert agent.acts.all() == []
        with pytest.raises(ActRefused, match="shop is not paused"):
            agent.acts.resume("shop", actor="bob")


async def test_a_pause_that_sql_ends_is_no_pause(world):
    """As by `UPDATE job SET paused = NULL`."""
    async with world.agent(world.text(("shop",))) as agent:
        agent.acts.pause("shop", reason="moving house", actor="ann")
        await agent.stored()
        with closing(sqlite3.connect(world.store.removeprefix("sqlite:///"))) as database, database:
            database.execute("UPDATE job SET paused = NULL WHERE id = 'shop'")
        await until(lambda: agent.acts.all() == [])


async def test_maintenance_by_hand_leaves_checks_out(world):
    """History says so, nobody is told, and its end is by hand too."""
    world.down.add("shop")
    text = world.text(("shop",)).replace('interval = "5000d"', 'interval = "100ms"\nstart = "now"')
    async with world.agent(text) as agent:
        await until(lambda: world.told_of("shop") == ["trigger"])
        agent.acts.begin_maintenance("shop", reason="new disk", actor="ann")
        await until(lambda: "shop is not checked: maintenance: by ann: new disk" in agent.screen.notices)
        with pytest.raises(ActRefused, match="it is in maintenance: by ann: new disk"):
            agent.acts.check_now("shop", actor="bob")
        agent.acts.end_maintenance("shop", actor="bob")
        await until(lambda: "shop is checked again" in agent.screen.notices)
        records = await agent.scheduler.history("shop", limit=1000)
        assert any((each.result or {}).get("skipped") == "by ann: new disk" for each in records)


async def test_history_says_when_an_act_began(world, ran):
    """With who and why."""
    world.down.add("shop")
    async with world.agent(world.text(("shop",))) as agent:
        await agent.check("shop")
        agent.acts.acknowledge("shop", reason="disk ordered", actor="ann")

        async def noted():
            return [each for each in await agent.scheduler.history(limit=100) if each.job_id.startswith("act:")]

        while not await noted():
            await agent.stored()
    code, out, _ = await ran("history", "shop", "--config", str(world.file))
    assert code == 0
    assert "KNOWN       act:acknowledge:target:shop  shop is acknowledged by ann: disk ordered" in out


async def test_what_makes_no_sense_is_refused_with_what_to_do(world, tomorrow):
    """Names, ends, reasons: the text says what was wrong."""
    async with world.agent(world.text(("shop", 'tags = ["web"]'))) as agent:
        acts = agent.acts
        why = {"reason": "x", "actor": "ann"}
        await agent.check("shop")
        for call, said in (
            (lambda: acts.acknowledge("shpo", **why), "there is no target 'shpo', did you mean 'shop'?"),
            (lambda: acts.acknowledge("shop", **why), "shop has no open incident: there is nothing to acknowledge"),
            (lambda: acts.silence(tag="wbe", until=tomorrow, **why), "there is no tag 'wbe', did you mean 'web'?"),
            (lambda: acts.silence("shop", tag="web", until=tomorrow, **why), "name one target, one group or one tag"),
            (lambda: acts.silence("shop", until=tomorrow.replace(year=2020), **why), "is not after now"),
            (lambda: acts.silence("shop", until=tomorrow.replace(tzinfo=None), **why), "has no time zone"),
            (lambda: acts.pause("shop", reason=" ", actor="ann"), "reason: ' ' says nothing: say why"),
            (lambda: acts.pause("shop", reason="x", actor=""), "actor: '' says nothing: say who acts"),
            (lambda: acts.end_silence("shop", actor="ann"), "there is no silence of shop by hand"),
        ):
            with pytest.raises(ActRefused) as refused:
                call()
            assert said in str(refused.value)
        acts.silence(tag="web", until=tomorrow, **why)
        with pytest.raises(ActRefused, match=r"but the tag web is silenced until .* end that"):
            acts.end_silence("shop", actor="ann")


async def test_a_check_by_hand_counts_as_an_attempt_and_moves_the_next(world):
    """A target that is about to be tried again is not tried twice for it."""
    world.down.add("shop")
    async with world.agent(world.text(("shop", "max_attempts = 3", 'retry_interval = "1h"'))) as agent:
        await agent.check("shop")
        assert (agent.target("shop").tried, agent.target("shop").incident) == (1, None)
        first = agent.scheduler.get("shop").next_start
        await agent.check("shop")
        assert agent.target("shop").tried == 2
        assert agent.scheduler.get("shop").next_start > first
        await agent.check("shop")
        assert agent.target("shop").incident is not None
        await until(lambda: world.told_of("shop") == ["trigger"])


async def test_acts_of_a_target_that_leaves_the_file_end(world, tomorrow):
    """Those of its tag stay."""
    text = world.text(("shop", 'tags = ["web"]'), ("blog", 'tags = ["web"]'))
    async with world.agent(text) as agent:
        agent.acts.silence("shop", until=tomorrow, reason="x", actor="ann")
        agent.acts.silence(tag="web", until=tomorrow, reason="y", actor="ann")
        await agent.reload(world.text(("blog", 'tags = ["web"]')))
        assert [act.reason for act in agent.acts.all()] == ["y"]
