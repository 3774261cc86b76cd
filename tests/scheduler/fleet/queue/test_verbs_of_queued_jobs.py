"""What is asked of a job that stands in a queue is done at once: it is fetched, and goes again."""

from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from kit import settle
from scheduler import MissedReason, Outcome, RunMissed, Scheduler
from scheduler.queues import Kind
from scheduler.queues.local import LocalQueue
from scheduler.stores import DONE, PENDING, SCHEDULED, SKIPPED, SUPERSEDED
from scheduler.stores.memory import MemoryStore


class World:
    """A scheduler with a queue, and a job in it that begins each hour."""

    def __init__(self, clock):
        self.clock = clock
        self.store = MemoryStore()
        self.queue = LocalQueue()
        self.begun = []
        self.takes = 0

    @asynccontextmanager
    async def job(self, schedule="@every 1h"):
        s = Scheduler(store=self.store, queue=self.queue, clock=self.clock)
        s.register("work", self.work)
        async with s:
            job = s.add("work", schedule, id="job")
            await s.flush()
            await self.clock.travel(1)
            assert job.is_elsewhere
            yield job
            assert s.statistics().queue.held == 0
            s.stop(grace=0)

    async def work(self):
        self.begun.append(self.clock.wall())
        if self.takes:
            await self.clock.sleep(self.takes)
        return "done"

    def statuses(self):
        return [row.status for row in self.store.executions.of_job("job")]

    @property
    def live(self):
        rows = self.store.executions.of_job("job")
        (found,) = [row.due_us for row in rows if row.status in {PENDING, SCHEDULED}]
        return found


@pytest.fixture
def world(clock):
    return World(clock)


async def test_a_run_that_is_asked_for_begins_at_once(world):
    """It is answered, and the next start stands where it stood, once."""
    async with world.job() as job:
        before = world.live
        asked = job.run_now()
        await settle()
        await world.clock.travel(0.1)
        assert len(world.begun) == 1
        answer = await asked
        assert (answer.outcome, answer.result) == (Outcome.SUCCEEDED, "done")
        assert (world.live, world.queue.census(Kind.RUN).total) == (before, 1)
        await world.clock.travel(3_600)
        assert len(world.begun) == 2


async def test_a_run_that_is_asked_for_and_takes_long_keeps_the_job(world, clock):
    """Its execution comes out meanwhile, and the rule of overlap decides here: it is left out."""
    world.takes = 4_000
    async with world.job() as job:
        first = world.live
        asked = job.run_now()
        await clock.travel(4_100)
        assert (await asked).outcome is Outcome.SUCCEEDED
        assert len(world.begun) == 1
        assert (first, "missed") in [(record.due_us, record.outcome) for record in world.store.history("job")]
        assert (world.live, world.queue.census(Kind.RUN).total) == (first + 2 * 3_600_000_000, 1)


async def test_a_skipped_start_does_not_run_and_the_next_one_does(world, clock):
    """The row says that it was skipped, and so does the record."""
    async with world.job() as job:
        first = world.live
        job.skip()
        await settle()
        await clock.travel(0.1)
        assert world.live == first + 3_600_000_000
        assert SKIPPED in world.statuses()
        assert world.queue.census(Kind.RUN).total == 1
        (record,) = world.store.history("job")
        assert (record.due_us, record.reason) == (first, MissedReason.SKIPPED.value)
        await clock.travel(3_600)
        assert world.begun == []
        await clock.travel(3_600)
        assert len(world.begun) == 1


async def test_a_start_that_is_set_replaces_the_one_in_the_queue(world, clock):
    """And `supersede` takes it back."""
    async with world.job() as job:
        first, at = world.live, job.next_start - timedelta(minutes=2)
        job.set_next_start(at)
        await settle()
        await clock.travel(0.1)
        assert world.live == round(at.timestamp() * 1e6)
        assert SUPERSEDED in world.statuses()
        job.supersede()
        await settle()
        await clock.travel(0.1)
        assert (world.live, world.queue.census(Kind.RUN).total) == (first, 1)
        job.set_next_start(at)
        await clock.travel(3_600)
        assert [round(instant - at.timestamp()) for instant in world.begun] == [0, 120]


async def test_a_start_that_is_set_into_the_past_begins_at_once(world, clock):
    """As it does without a queue."""
    async with world.job() as job:
        job.set_next_start(job.next_start - timedelta(days=1))
        await settle()
        await clock.travel(0.1)
        assert len(world.begun) == 1
        assert DONE in world.statuses()


async def test_a_job_that_is_enabled_again_has_forgotten_what_it_was_disabled_for(world, clock):
    """Its counts are in the store, where nobody has the job: they are put back there."""
    async with world.job() as job:
        job.pause("it fails")
        await settle()
        await clock.travel(7_200)
        state = world.store._data.states["job"]
        world.store._data.states["job"] = state._replace(runs=9, failures=9, consecutive_failures=7)
        job.resume()
        await settle()
        await clock.travel(1)
        assert world.store._data.states["job"].consecutive_failures == 0
        assert world.begun == [], "what was due while it was paused is not made up for"
        await clock.travel(3_601)
        assert len(world.begun) == 1


async def test_a_paused_job_runs_when_it_is_asked_to(world, clock):
    """It has no execution then, and has none afterwards."""
    async with world.job() as job:
        job.pause()
        await clock.travel(1)
        asked = job.run_now()
        await settle()
        await clock.travel(0.1)
        assert not isinstance(await asked, RunMissed)
        assert len(world.begun) == 1
        assert not {PENDING, SCHEDULED} & set(world.statuses())
        assert world.queue.census(Kind.RUN).total == 0
