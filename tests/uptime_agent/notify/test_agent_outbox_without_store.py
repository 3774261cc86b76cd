"""Messages while nothing can be stored: each is sent, and its job is stored, or not needed any more, afterwards."""

import pytest

from scheduler.testing import FlakyStore

ALWAYS = range(1, 10**9)
OURS = "the agent itself"


@pytest.fixture
def world(world):
    world.store = FlakyStore(world.store)
    world.unstored = OURS
    return world


async def test_a_message_is_sent_while_the_store_is_down_and_never_again(world):
    """Its job goes with the first commit that gets through."""
    async with world.process() as process:
        world.store.fail_on = ALWAYS
        incident = process.opens()
        await world.clock.travel(30)
        assert world.ops.keys == ["shop-1:ops:trigger"]
        process.closes(incident)
        await world.clock.travel(30)
        world.store.fail_on = ()
        await world.clock.travel(600)
    async with world.process():
        await world.clock.travel(600)
    assert world.ops.keys == ["shop-1:ops:trigger", "shop-1:ops:resolved"]


async def test_an_incident_that_began_without_the_store_ends_in_another_process(world):
    """It is known by then."""
    async with world.process() as process:
        world.store.fail_on = ALWAYS
        incident = process.opens()
        await world.clock.travel(30)
        world.store.fail_on = ()
        await world.clock.travel(5)
    async with world.process() as process:
        process.closes(incident)
        await world.clock.travel(5)
    assert world.ops.keys == ["shop-1:ops:trigger", "shop-1:ops:resolved"]


async def test_messages_about_the_store_itself_are_not_stored(world):
    """A process that ends has no such outage any more."""
    world.targets = {"shop": None, OURS: None}
    async with world.process() as process:
        process.opens(OURS)
        await world.clock.travel(5)
        await process.scheduler.flush()
        assert world.ops.keys == [f"{OURS}-1:ops:trigger"]
        assert [row.id for chunk in world.store.load() for row, _ in chunk] == []
