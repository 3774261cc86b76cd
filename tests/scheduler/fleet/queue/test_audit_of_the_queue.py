"""What an audit of the queue finds, mends and tells: its numbers are what became of the executions."""

from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from kit import nothing, settle
from scheduler import AuditEnded, AuditStarted, Scheduler, SchedulerState
from scheduler.queues import Census, Kind, Position, QueueUnavailable, Standing, Tick
from scheduler.queues.local import LocalQueue
from scheduler.stores import PENDING, SCHEDULED, SUPERSEDED, Batch, Planned, StoredJob, StoreUnavailable
from scheduler.stores.memory import MemoryStore

HOURLY = "@every 1h"


class World:
    """A scheduler with a queue, what its audits told, and what stands in both."""

    def __init__(self, clock, events):
        self.clock = clock
        self.events = events
        self.store = MemoryStore()
        self.queue = LocalQueue()

    @asynccontextmanager
    async def scheduler(self):
        s = Scheduler(store=self.store, queue=self.queue, clock=self.clock)
        s.register("nothing", nothing)
        async with s:
            await self.clock.travel(1)
            s.listen(self.events, AuditStarted, AuditEnded)
            self.audit_once = s._memory.membership.audit.audit
            yield s
            s.stop(grace=0)

    async def audit(self):
        """Audit, and return what was told of it."""
        del self.events[:]
        await self.audit_once()
        await settle()
        await self.clock.travel(1)
        assert isinstance(self.events[0], AuditStarted)
        return self.events[1].audit

    def live(self):
        """Return (job id, status) of each live execution."""
        found = [row for rows in self.store._data.executions.jobs.values() for row in rows.values()]
        return sorted((row.job_id, row.status) for row in found if row.status in {PENDING, SCHEDULED})

    def unplan(self, job_id):
        """Leave the job without a live execution, as a hand in the tables does."""
        self.store.commit(Batch(planned={job_id: Planned(job_id, None, HOURLY, 0)}))
        self.queue._entries.clear()


@pytest.fixture
def world(clock, events):
    return World(clock, events)


async def add(s, world, *ids):
    for id in ids:
        s.add("nothing", HOURLY, id=id)
    await s.flush()
    await world.clock.travel(1)


async def test_all_is_well_and_nothing_is_touched(world):
    """Each job keeps the execution that it has, and two events tell of it."""
    async with world.scheduler() as s:
        await add(s, world, "a", "b")
        audit = await world.audit()
        assert (audit.has_lock, audit.jobs, audit.mended, audit.failed) == (True, 2, 0, 0)
        assert world.live() == [("a", SCHEDULED), ("b", SCHEDULED)]
        assert len(world.events) == 2


async def test_a_job_without_an_execution_gets_exactly_one(world):
    """And it stands in the queue."""
    async with world.scheduler() as s:
        await add(s, world, "a")
        world.unplan("a")
        audit = await world.audit()
        assert (audit.planned, audit.requeued) == (1, 0)
        assert world.live() == [("a", SCHEDULED)]
        assert world.queue.census(Kind.RUN).total == 1
        assert (await world.audit()).mended == 0


class Forgetful(LocalQueue):
    """A queue that gives nothing to others though who took it is not heard of: a beanstalkd 1.12 does that at times."""

    seconds_left = 0

    def look(self, places):
        return [at and Position(Standing.RESERVED, self.seconds_left) for at in super().look(places)]


async def test_what_the_queue_forgets_to_give_to_others_is_put_again(world):
    """Once, and not while who took it may yet be heard of."""
    world.queue = Forgetful()
    async with world.scheduler() as s:
        await add(s, world, "a")
        assert (await world.audit()).requeued == 0
        world.queue.seconds_left = -30
        assert (await world.audit()).requeued == 1
        assert world.live() == [("a", SCHEDULED)]


async def test_what_is_overdue_and_not_in_the_queue_is_put_again_within_seconds(world):
    """The audits are at 300 and 600 s."""
    async with world.scheduler() as s:
        s.add("nothing", HOURLY, id="a", start=datetime.fromtimestamp(world.clock.wall() + 400, UTC))
        await s.flush()
        await world.clock.travel(380)
        world.queue._entries.clear()
        await world.clock.travel(20)
        assert s.statistics().queue.taken == 0
        await world.clock.travel(12)
        assert (s.statistics().queue.taken, s.statistics().queue.missing) == (1, 1)
        assert world.live() == [("a", SCHEDULED)]


class Robbed(LocalQueue):
    """A queue out of which a program of others takes what comes out first, and buries it."""

    is_robbed = True

    def open(self, clock, call_at, deliver):
        def rob(deliveries):
            if self.is_robbed:
                self.is_robbed = False
                deliveries.pop(0).bury()
            deliver(deliveries)

        super().open(clock, call_at, rob)


@pytest.mark.parametrize("audits", [False, True])
async def test_what_somebody_has_buried_is_put_again(world, audits):
    """Within seconds once it is overdue, and by an audit before that. It stands there once, and runs once."""
    world.queue = Robbed()
    async with world.scheduler() as s:
        s.add("nothing", HOURLY, id="a", start=datetime.fromtimestamp(world.clock.wall() + 400, UTC))
        await s.flush()
        await world.clock.travel(400)
        assert world.queue.census(Kind.RUN) == Census(buried=1)
        if audits:
            assert (await world.audit()).requeued == 1
        await world.clock.travel(12)
        assert (s.statistics().queue.taken, s.statistics().queue.missing) == (1, 1)
        assert world.queue.census(Kind.RUN) == Census(delayed=1)
        assert world.live() == [("a", SCHEDULED)]


async def test_nothing_is_asked_of_the_queue_while_nothing_is_overdue(world, monkeypatch):
    """One statement every few seconds is all that the look for it costs."""
    async with world.scheduler() as s:
        await add(s, world, "a", "b")
        asked, executions = [], type(s._memory.membership.dispatch.executions)
        waiting = executions.waiting
        monkeypatch.setattr(executions, "waiting", lambda *a, **o: asked.append(a) or waiting(*a, **o))
        monkeypatch.setattr(type(world.queue), "look", lambda *_: 1 / 0)
        await world.clock.travel(60)
        assert len(asked) == 12


async def test_an_audit_follows_a_burial_within_seconds(world):
    """Whoever has died may have planned what nobody puts, and the next audit may be minutes away."""
    async with world.scheduler() as s:
        await add(s, world, "a")
        world.unplan("a")
        await world.clock.travel(3)
        assert world.live() == []
        s._memory.membership.audit.hint()
        await world.clock.travel(3)
        assert world.live() == [("a", SCHEDULED)]


async def test_what_the_queue_has_lost_is_put_again(world):
    """The executions are what they were."""
    async with world.scheduler() as s:
        await add(s, world, "a", "b", "c")
        world.queue._entries.clear()
        audit = await world.audit()
        assert (audit.planned, audit.requeued) == (0, 3)
        assert world.queue.census(Kind.RUN).total == 3
        assert world.live() == [(id, SCHEDULED) for id in "abc"]


async def test_what_is_put_again_is_put_once_and_counted_once(world):
    """The next audit comes before the store knows where it stands: until then the row says that it is lost."""
    async with world.scheduler() as s:
        await add(s, world, "a", "b", "c")
        world.queue._entries.clear()
        del world.events[:]
        await world.audit_once()
        await world.audit_once()
        await world.clock.travel(1)
        assert [event.audit.requeued for event in world.events if isinstance(event, AuditEnded)] == [3, 0]
        assert s.statistics().queue.missing == 3
        assert world.queue.statistics().placed == 6


async def test_what_arrives_during_an_audit_is_not_put_again_by_it(world):
    """It has read before that what it does not find in the queue, though another audit has ended meanwhile."""
    async with world.scheduler() as s:
        await add(s, world, "a")
        (row,) = world.store.executions.of_job("a")
        world.queue._entries.clear()
        publisher = s._memory.membership.dispatch.publisher
        with publisher.reading():
            with publisher.reading():
                publisher.put([(Tick(row.job_id, row.due_us), None)])
                await world.clock.travel(1)
            publisher.put([(Tick(row.job_id, row.due_us), None)])
        assert world.queue.census(Kind.RUN).total == 1


async def test_an_execution_of_a_job_that_is_gone_is_withdrawn(world):
    """Its row was removed by hand, and nobody was told."""
    async with world.scheduler() as s:
        await add(s, world, "a")
        with world.store._data.lock:
            del world.store._data.jobs["a"]
        assert (await world.audit()).withdrawn == 1
        assert world.live() == []
        assert [row.status for row in world.store.executions.of_job("a")] == [SUPERSEDED]


async def test_a_schedule_that_cannot_be_read_costs_no_other_anything(world):
    """It is counted."""
    async with world.scheduler() as s:
        await add(s, world, "a")
        world.unplan("a")
        with world.store._data.lock:
            world.store._data.jobs["broken"] = StoredJob("broken", "nothing", "@whenever it suits")
        audit = await world.audit()
        assert (audit.failed, audit.planned) == (1, 1)
        assert world.live() == [("a", SCHEDULED)]


async def test_a_paused_job_is_passed_over(world):
    """It has no execution, and is not looked at."""
    async with world.scheduler() as s:
        await add(s, world, "a", "b")
        s.get("a").pause()
        await s.flush()
        await world.clock.travel(1)
        audit = await world.audit()
        assert (audit.jobs, audit.mended) == (1, 0)
        assert world.live() == [("b", SCHEDULED)]


async def test_a_busy_lock_is_told(world, monkeypatch):
    """Somebody else is at every part. There is a next audit all the same."""
    async with world.scheduler() as s:
        await add(s, world, "a")
        executions = s._memory.membership.dispatch.executions
        monkeypatch.setattr(type(executions), "audit", lambda *_, **__: None)
        audit = await world.audit()
        assert (audit.has_lock, audit.jobs) == (False, 0)
        monkeypatch.undo()
        del world.events[:]
        await world.clock.travel(301)
        assert [event.audit.has_lock for event in world.events if isinstance(event, AuditEnded)] == [True]


@pytest.mark.parametrize("trouble", [StoreUnavailable("no connection is free"), QueueUnavailable("it is gone")])
async def test_a_trouble_is_told_and_the_next_audit_comes(world, monkeypatch, trouble):
    """Of the store, or of the queue."""
    async with world.scheduler() as s:
        await add(s, world, "a")

        def fail(*_args, **_kwargs):
            raise trouble

        broken = type(s._memory.membership.dispatch.executions), "audit"
        if isinstance(trouble, QueueUnavailable):
            broken = type(world.queue), "instance"
        with monkeypatch.context() as patch:
            patch.setattr(*broken, fail)
            with pytest.raises(type(trouble)):
                await world.audit_once()
        ended = world.events[-1].audit
        assert (ended.has_lock, ended.trouble) == (False, str(trouble))
        await world.clock.travel(301)
        assert world.events[-1].audit.trouble is None
        assert world.store.executions.last_audit("a") is not None


async def test_a_tick_that_nobody_asked_for_is_no_execution(world):
    """It comes out once, and is dropped; the audit does not count it."""
    async with world.scheduler() as s:
        await add(s, world, "a")
        world.queue.put([Tick("a", 1)])
        await world.clock.travel(1)
        assert (await world.audit()).mended == 0
        assert world.queue.census(Kind.RUN).total == 1


async def test_an_audit_that_raises_is_followed_by_the_next(world, monkeypatch):
    """Whatever it raises: its scheduler goes on, and listeners are told that it has ended."""
    async with world.scheduler() as s:
        await add(s, world, "a")
        del world.events[:]
        with monkeypatch.context() as patch:
            patch.setattr(type(world.queue), "instance", lambda _: 1 / 0)
            await world.clock.travel(301)
        assert [type(event) for event in world.events] == [AuditStarted, AuditEnded]
        await world.clock.travel(300)
        assert world.events[-1].audit.jobs == 1
        assert s.state is SchedulerState.RUNNING


async def test_what_waits_in_the_process_goes_into_the_queue_once_it_takes_it(world, monkeypatch):
    """As long as it does not, one of them is tried in each audit."""
    async with world.scheduler() as s:
        tried = []
        with monkeypatch.context() as patch:
            patch.setattr(type(world.queue), "put", lambda _, ticks: tried.append(ticks) or [None] * len(ticks))
            await add(s, world, "a", "b", "c")
            assert world.live() == [(id, PENDING) for id in "abc"]
            del tried[:]
            await world.clock.travel(5)
            await world.audit()
            assert [len(ticks) for ticks in tried] == [1]
            assert s.statistics().queue.here == 3
        await world.audit()
        assert world.live() == [(id, SCHEDULED) for id in "abc"]
        assert s.statistics().queue.here == 0
        assert world.queue.census(Kind.RUN).total == 3
