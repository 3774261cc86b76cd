"""A pause of a job that stands in a queue: nobody has the job meanwhile, and still its end tells what was left out."""

from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from kit import at, nothing, settle
from schedule import Every
from scheduler import MissedReason, Outcome, Scheduler
from scheduler.queues.local import LocalQueue
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START

HOUR = 3_600
EVERY = Every("1h", anchor=START)


class World:
    """The servers, and the schedulers that use them one after another."""

    def __init__(self, clock):
        self.clock = clock
        self.store = MemoryStore()
        self.queue = LocalQueue()

    @asynccontextmanager
    async def node(self):
        """Let a scheduler run; its job begins each hour."""
        s = Scheduler(store=self.store, queue=self.queue, clock=self.clock)
        s.register("work", nothing)
        async with s:
            s.add("work", EVERY, id="job", on_conflict="keep")
            await self.travel(s, 1)
            yield s
            s.stop(grace=0)
        self.queue = LocalQueue()  # what stands in a queue of this process is gone with it; the audit puts it again

    async def travel(self, s, seconds):
        await settle()
        await self.clock.travel(seconds)
        await s.flush()
        await settle()


async def paused(s):
    """Return what the records say of ticks that a pause has left out, oldest first."""
    found = [each for each in reversed(await s.history("job")) if each.reason is MissedReason.PAUSED]
    return [(each.due, each.last_due, each.count, each.error) for each in found]


@pytest.fixture
def world(clock):
    return World(clock)


async def test_a_pause_that_ends_by_itself_tells_what_it_has_left_out(world):
    """It did not even end: its job was left again before, and never ran any more."""
    async with world.node() as s:
        s.get("job").pause("moving house", until=at(3.5 * HOUR))
        await world.travel(s, 3.6 * HOUR)
        assert await paused(s) == [(at(HOUR), at(3 * HOUR), 3, "moving house")]
        await world.travel(s, HOUR)
        assert [each.due for each in await s.history("job") if each.outcome is Outcome.SUCCEEDED] == [at(4 * HOUR)]


async def test_a_pause_that_somebody_ends_tells_what_it_has_left_out(world):
    """Once, as a record of several starts."""
    async with world.node() as s:
        job = s.get("job")
        job.pause("moving house")
        await world.travel(s, 2.5 * HOUR)
        job.resume()
        await world.travel(s, 1)
        assert [each[:3] for each in await paused(s)] == [(at(HOUR), at(2 * HOUR), 2)]
        assert job.next_start == at(3 * HOUR)
        await world.travel(s, HOUR)
        assert len(await paused(s)) == 1


async def test_a_pause_of_all_jobs_tells_it_when_the_job_comes_out_of_the_queue_again(world):
    """Its start came out meanwhile, and was not to begin."""
    async with world.node() as s:
        s.pause(reason="deploy")
        await world.travel(s, 2.5 * HOUR)
        s.resume()
        await world.travel(s, HOUR)
        assert [each[:3] for each in await paused(s)] == [(at(HOUR), at(2 * HOUR), 2)]
        assert [each.due for each in await s.history("job") if each.outcome is Outcome.SUCCEEDED] == [at(3 * HOUR)]


async def test_a_run_that_is_asked_for_under_a_pause_does_not_end_it(world):
    """The job goes again, and what the pause leaves out is counted from its beginning."""
    async with world.node() as s:
        job = s.get("job")
        job.pause("moving house")
        await world.travel(s, 1.5 * HOUR)
        asked = job.run_now()
        await world.travel(s, HOUR)
        assert (await asked).outcome is Outcome.SUCCEEDED
        assert await paused(s) == []
        job.resume()
        await world.travel(s, 1)
        assert [each[:3] for each in await paused(s)] == [(at(HOUR), at(2 * HOUR), 2)]


@pytest.mark.parametrize("scope", ["job", "all"])
async def test_a_pause_that_begins_on_one_node_and_ends_on_another_leaves_one_record(world, scope):
    """Where the pause began stands in the state of the job."""
    async with world.node() as s:
        await world.travel(s, 1)
        s.get("job").pause("moving house") if scope == "job" else s.pause(reason="moving house")
        await world.travel(s, 1.5 * HOUR)
    await world.clock.travel(timedelta(hours=3).total_seconds())
    async with world.node() as s:
        await world.travel(s, HOUR)
        s.get("job").resume() if scope == "job" else s.resume()
        await world.travel(s, HOUR)
        (found,) = await paused(s)
        assert found[:3] == (at(HOUR), at(5 * HOUR), 5)
