"""A backlog is shared by who has room: nobody takes more than it can run, and what waits in one line goes to others."""

from collections import Counter
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from kit import settle, until
from queued_fleets import QueuedFleet
from scheduler import Retry, Scheduler, current_run
from scheduler.queues.local import LocalQueue
from scheduler.stores import TAKEN
from scheduler.stores.memory import MemoryStore


@pytest.fixture(scope="module")
def anyio_backend():
    """What the queue and the store do, they do in threads: test_dispatch.py has both backends."""
    return "asyncio"


@pytest.fixture
def fleet(postgres_server, postgres_schema, broker):
    found = QueuedFleet(postgres_server.dsn, postgres_schema, broker)
    yield found
    found.close()


class Backlog:
    """Jobs that are due at one moment, and whose runs go on until all of them have begun."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.begun = Counter()
        self.may_end = anyio.Event()

    @asynccontextmanager
    async def worker(self, name, limit, **options):
        async def hold():
            self.begun[name] += 1
            await self.may_end.wait()

        async with self.fleet.agent(name, hold=hold, limit=limit, **options) as s:
            yield s

    async def add(self, jobs, limits=None, **options):
        """Add so many jobs, which are due in two seconds, by an agent that runs none."""
        async with self.fleet.agent("adds", reservers=0, hold=lambda: None, limits=limits or {}) as s:
            due = datetime.now(UTC) + timedelta(seconds=2)
            for number in range(jobs):
                s.add("hold", "@every 1d", id=f"job-{number}", start=due, **options)
            await s.flush()
            await until(lambda: len(self.fleet.live()) == jobs)
            await until(lambda: all(row.instance for row in self.fleet.live()))

    def taken(self):
        (count,) = self.fleet.ask(f"SELECT count(*) FROM execution WHERE status = '{TAKEN}'")[0]
        return count


async def test_who_has_room_runs_what_another_has_none_for(fleet):
    """It comes when all has been due for a while. The other one runs one at a time, and had taken all 60."""
    backlog = Backlog(fleet)
    async with backlog.worker("small", 1) as small:
        await backlog.add(60)
        await until(lambda: backlog.begun["small"] == 1)
        await until(lambda: small.statistics().queue.taken > 1)
        async with backlog.worker("large", 60):
            await until(lambda: backlog.begun == {"small": 1, "large": 59})
            backlog.may_end.set()
    fleet.check()


async def test_two_workers_hold_no_more_than_they_have_room_for(fleet):
    """Of 600 the small one never has more than a handful, and the large one not all of the rest."""
    backlog = Backlog(fleet)
    async with backlog.worker("small", 1) as small, backlog.worker("large", 60) as large:
        await backlog.add(600)
        await until(lambda: backlog.begun == {"small": 1, "large": 60})
        held = [s.statistics().queue.held for s in (small, large)]
        assert held[0] <= 10
        assert held[1] <= 310
        backlog.may_end.set()
        await until(lambda: backlog.begun.total() == 600)
        await until(lambda: backlog.taken() == 0)
    fleet.check()


async def test_what_waits_for_a_full_limit_keeps_nobody_else_out(fleet):
    """More of it is due first than the worker has room for."""
    backlog = Backlog(fleet)
    ended = set()
    async with backlog.worker("a", 2, limits={"gpu": 1}) as s:
        s.register("note", lambda: ended.add(current_run().job_id))
        due = datetime.now(UTC) + timedelta(seconds=2)
        for number in range(100):
            s.add("hold", "@every 1d", id=f"gpu-{number}", start=due, needs="gpu")
            s.add("note", "@every 1d", id=f"note-{number}", start=due + timedelta(seconds=2))
        await until(lambda: len(ended) == 100)
        assert backlog.begun["a"] == 1
        backlog.may_end.set()
    fleet.check()


async def test_what_waits_for_a_full_limit_of_one_worker_goes_to_another(fleet):
    """That has units of its own, which are free."""
    backlog = Backlog(fleet)
    async with backlog.worker("one", 10, limits={"gpu": 1}) as one:
        await backlog.add(5, needs="gpu", limits={"gpu": 1})
        await until(lambda: backlog.begun["one"] == 1 and one.statistics().queue.taken == 5)
        async with backlog.worker("other", 10, limits={"gpu": 4}):
            await until(lambda: backlog.begun["other"])
            assert one.statistics().queue.dropped["given back"] >= 1
            backlog.may_end.set()
            await until(lambda: backlog.begun.total() == 5)
    fleet.check()


class BoundedQueue(LocalQueue):
    """A queue of this process that notes what it is told."""

    def __init__(self):
        super().__init__()
        self.told = []

    def bound(self, most):
        self.told.append(most)


@asynccontextmanager
async def one(clock, limit, takes):
    """A scheduler whose runs take so long, and its queue."""
    queue = BoundedQueue()
    s = Scheduler(limit, store=MemoryStore(), queue=queue, clock=clock, audit=None)

    async def work():
        await clock.sleep(takes)

    s.register("work", work)
    async with s:
        yield s, queue
        s.stop(grace=0)


@pytest.mark.parametrize(("limit", "takes", "least", "most"), [(1, 1, 2, 3), (1, 10, 1, 2), (10, 0.1, 130, 190)])
async def test_there_is_room_for_what_ends_within_a_second(clock, limit, takes, least, most):
    """How long runs take is measured: all of ten seconds, or of a tenth of one."""
    async with one(clock, limit, takes) as (s, queue):
        for number in range(500):
            s.add("work", "@every 1h", id=f"job-{number}", start=clock.now() + timedelta(seconds=60))
        await s.flush()
        await clock.travel(80)
        await settle()
        assert least <= queue.told[-1] <= most


async def test_short_runs_have_no_bound_but_the_queue_s(clock):
    """Nobody counts thousands."""
    async with one(clock, 1_000, 0.001) as (s, queue):
        for number in range(100):
            s.add("work", "@every 3s", id=f"job-{number}", start=clock.now() + timedelta(seconds=2))
        await s.flush()
        await clock.travel(10)
        assert queue.told[-1] is None


async def test_what_is_tried_again_in_an_hour_takes_no_room(clock):
    """It stays with us, and others come to us all the same."""
    async with one(clock, 1, 1) as (s, queue):

        async def fail():
            raise ZeroDivisionError

        s.register("fail", fail)
        for number in range(20):
            s.add("fail", "@every 1d", id=f"job-{number}", retry=Retry.constant("1h"), start="now")
        await s.flush()
        s.add("work", "@every 2s", id="works")
        await clock.travel(60)
        assert s.statistics().queue.held >= 20
        assert queue.told[-1] >= 21
