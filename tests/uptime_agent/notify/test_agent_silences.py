"""Messages wait for the end of a silence, and reminders rest while somebody knows."""

import pytest

from kit import T0
from uptime_agent.acts import Act, ActKind, Scope, ScopeKind, Standing
from uptime_agent.notify import Digest, Rules

HOUR = 3600.0
WEB = Scope(ScopeKind.TAG, "web")


def silence(world, until, names=("shop", "blog")):
    """Silence these targets from now until so many seconds after the start."""
    act = Act(kind=ActKind.SILENCE, scope=WEB, actor="ann", reason="deployment", since=T0, until=T0 + until)

    def acts_of(name):
        return Standing(silenced=act if name in names and act.holds(world.clock.wall()) else None)

    world.acts_of = acts_of


def know(world, incident):
    """Acknowledge an incident."""
    shop = Scope(ScopeKind.TARGET, "shop")
    act = Act(kind=ActKind.ACKNOWLEDGE, scope=shop, actor="ann", reason="disk ordered", since=T0, incident=incident.id)
    world.acts_of = lambda name: Standing(acknowledged=act if name == "shop" else None)


@pytest.mark.parametrize("dies", [False, True])
async def test_what_is_open_as_a_silence_ends_goes_in_one_digest(world, dies):
    """By itself, at that time; also if the process died meanwhile."""
    world.rules, world.targets = Rules(digest=Digest(10, 30)), {"shop": None, "blog": None, "db": None}
    silence(world, HOUR)
    async with world.process(dies=dies) as process:
        process.opens("shop")
        process.opens("blog")
        process.opens("db")
        await world.clock.travel(60)
        assert world.ops.keys == ["db-1:ops:trigger"]
        await process.scheduler.flush()
    async with world.process():
        await world.clock.travel(HOUR - 120)
        assert len(world.ops.taken) == 1
        await world.clock.travel(120)
    assert sorted(world.ops.taken[-1].messages[i].key for i in (0, 1)) == ["blog-1:ops:trigger", "shop-1:ops:trigger"]
    assert len(world.ops.taken) == 2


@pytest.mark.parametrize("until", [600.0, 2 * HOUR])
async def test_another_silence_has_the_last_word(world, until):
    """A shorter one brings messages forward, a longer one holds them back."""
    silence(world, HOUR)
    async with world.process() as process:
        process.opens()
        await world.clock.travel(60)
        silence(world, until)
        process.outbox.acts_changed()
        await world.clock.travel(until - 70)
        assert world.ops.keys == []
        await world.clock.travel(20)
        assert world.ops.keys == ["shop-1:ops:trigger"]


async def test_a_silence_that_is_longer_than_the_expiry_loses_nothing(world):
    """A message expires so long after the silence."""
    world.rules = Rules(digest=None, expiry=600)
    silence(world, 10 * HOUR)
    async with world.process() as process:
        process.opens()
        await world.clock.travel(10 * HOUR + 1)
    assert world.ops.keys == ["shop-1:ops:trigger"]


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("is_over", [False, True])
async def test_a_silence_that_is_prolonged_beyond_the_expiry_loses_nothing(world, is_over, dies):
    """Neither an incident that is still open, nor the end of one that was told."""
    world.rules = Rules(digest=None, expiry=600)
    async with world.process(dies=dies) as process:
        if is_over:
            incident = process.opens()
            await world.clock.travel(1)
        silence(world, HOUR)
        process.outbox.acts_changed()
        if is_over:
            process.closes(incident)
        else:
            process.opens()
        await world.clock.travel(60)
        silence(world, 10 * HOUR)
        process.outbox.acts_changed()
        await process.scheduler.flush()
    async with world.process() as process:
        await world.clock.travel(9 * HOUR)
        silence(world, 20 * HOUR)
        process.outbox.acts_changed()
        await world.clock.travel(11 * HOUR - 120)
        assert len(world.ops.keys) == is_over
        await world.clock.travel(120)
        assert (world.ops.keys[-1:], process.jobs[:1]) == (
            (["shop-1:ops:resolved"], []) if is_over else (["shop-1:ops:trigger"], ["shop-1:ops:resolved"])
        )


async def test_a_silence_that_finds_a_message_unsent_lets_it_go_at_its_end(world):
    """Its channel did not work: the silence does not count as the age of the message."""
    world.rules = Rules(digest=None, expiry=600)
    async with world.process() as process:
        world.ops.refuses = 1_000
        process.opens()
        await world.clock.travel(60)
        silence(world, 10 * HOUR)
        process.outbox.acts_changed()
        world.ops.refuses = 0
        await world.clock.travel(10 * HOUR - 120)
        assert world.ops.keys == []
        await world.clock.travel(120)
    assert world.ops.keys == ["shop-1:ops:trigger"]


async def test_what_begins_and_ends_in_a_silence_is_settled_as_silenced(world):
    """No job stays behind, and history says why nobody was told."""
    silence(world, HOUR)
    async with world.process() as process:
        process.closes(process.opens())
        await world.clock.travel(5)
        assert process.jobs == []
        records = await process.scheduler.history()
        assert [record.result["delivery"] for record in records] == ["silenced", "silenced"]
        await world.clock.travel(2 * HOUR)
    assert world.ops.keys == []


@pytest.mark.parametrize("reminders", [None, 900.0, 7 * 3600.0])
async def test_an_incident_that_outlives_a_silence_is_reminded_of_once_at_its_end(world, reminders):
    """Whatever the rules say of reminders; those of the time in between are not made up."""
    world.rules = Rules(digest=None, reminders=reminders)
    async with world.process() as process:
        process.opens()
        await world.clock.travel(60)
        silence(world, HOUR)
        process.outbox.acts_changed()
        await world.clock.travel(HOUR - 61)
        assert world.ops.kinds == ["trigger"]
        await world.clock.travel(60)
        assert world.ops.kinds == ["trigger", "reminder"]


async def test_an_incident_that_was_told_is_resolved_at_the_end_of_a_silence(world):
    """Not in it."""
    async with world.process() as process:
        incident = process.opens()
        await world.clock.travel(1)
        silence(world, HOUR)
        process.outbox.acts_changed()
        process.closes(incident)
        await world.clock.travel(HOUR - 10)
        assert world.ops.kinds == ["trigger"]
        await world.clock.travel(20)
        assert (world.ops.kinds, process.jobs) == (["trigger", "resolved"], [])


async def test_reminders_rest_while_an_incident_is_acknowledged(world):
    """They come again if it is taken back. The end says who knew."""
    world.rules = Rules(digest=None, reminders=600)
    async with world.process() as process:
        incident = process.opens()
        await world.clock.travel(1)
        know(world, incident)
        await world.clock.travel(5 * 600)
        assert world.ops.kinds == ["trigger"]
        world.acts_of = lambda _name: Standing()
        await world.clock.travel(600)
        assert world.ops.kinds == ["trigger", "reminder"]
        know(world, incident)
        process.closes(incident)
        await world.clock.travel(1)
    assert world.ops.kinds[-1] == "resolved"
    assert world.ops.taken[-1].text.endswith("; acknowledged by ann: disk ordered")
