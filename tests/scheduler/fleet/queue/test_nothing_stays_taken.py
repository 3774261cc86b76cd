"""Whatever this agent has taken it gives back, also where no job has come of it, and when it stops: until it ends, all
others pass over what its rows say that it has.
"""

from contextlib import asynccontextmanager
from copy import deepcopy
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from threading import Event

import anyio
import pytest

from kit import PATIENCE, settle
from scheduler import Scheduler, current_run
from scheduler.queues import Kind
from scheduler.queues.local import LocalQueue
from scheduler.stores import PENDING, SCHEDULED, TAKEN, StoreUnavailable, Unstorable
from scheduler.stores.memory import MemoryExecutions, MemoryStore


class Line(MemoryStore):
    """A store that is asked in a thread. A verb of its executions named in `held` is answered when it is `let`, and
    the answer of the one in `lost` never comes, though it was carried out.
    """

    is_immediate = False

    def __init__(self):
        super().__init__()
        self.held = self.lost = None
        self.also = lambda: None  # at that moment
        self.refuses = False
        self.asked = Event()
        self.let = Event()

    @property
    def executions(self):
        return Verbs(self)

    def commit(self, batch):
        if self.refuses and batch.states and batch.released:
            raise Unstorable("it cannot be written")
        return super().commit(batch)

    def passes(self, verb):
        if verb == self.held:
            self.asked.set()
            assert self.let.wait(PATIENCE)
        if verb == self.lost:
            self.lost = None
            self.also()
            self.asked.set()
            raise StoreUnavailable("the answer is lost")


class Verbs(MemoryExecutions):
    def take(self, ticks):
        found = super().take(ticks)
        self._store.passes("take")
        return found

    def fetch(self, job_ids, now_us):
        found = super().fetch(job_ids, now_us)
        self._store.passes("fetch")
        return found


class World:
    """Schedulers with a queue, one after another, over one store."""

    def __init__(self, clock):
        self.clock = clock
        self.store = Line()
        self.begun = []
        self.takes = 0

    @asynccontextmanager
    async def scheduler(self, **options):
        self.queue = LocalQueue()
        s = Scheduler(store=self.store, queue=self.queue, clock=self.clock, audit=None, **options)
        s.register("work", self.work)
        async with s:
            yield s
            s.stop(grace=0)

    async def work(self):
        self.begun.append(self.clock.wall())
        await self.clock.sleep(self.takes)

    def statuses(self, job_id="job"):
        return [row.status for row in self.store.executions.of_job(job_id)]

    def live(self):
        return [row for row in self.store.executions.of_job("job") if row.status in {PENDING, SCHEDULED}]

    async def until(self, holds, step=0.05):
        """Let the store's thread, and time, go on until then."""
        with anyio.fail_after(PATIENCE):
            while not holds():
                await anyio.sleep(0.001)
                await self.clock.travel(step)


@pytest.fixture
def world(clock):
    return World(clock)


@asynccontextmanager
async def queued(world, schedule="@every 1h"):
    """A job that stands in the queue."""
    async with world.scheduler() as s:
        job = s.add("work", schedule, id="job")
        await world.until(lambda: world.statuses() == [SCHEDULED] and job.is_elsewhere)
        yield s, job


async def test_a_row_that_makes_no_sense_runs_once_somebody_has_mended_it(world):
    """What came out for it goes back meanwhile."""
    async with queued(world) as (s, _):
        sound = world.store._data.jobs["job"]
        world.store._data.jobs["job"] = sound._replace(id=7)
        await world.until(lambda: s.statistics().queue.without_task, 60)
        await world.until(lambda: TAKEN not in world.statuses())
        assert s.statistics().queue.held == 0
        world.store._data.jobs["job"] = sound
        await world.until(lambda: world.begun, 10)
        await world.until(lambda: world.statuses().count(SCHEDULED) == 1)
        await world.until(lambda: world.queue.census(Kind.RUN).total == 1, 10)  # a copy that an audit put is dropped


@pytest.mark.parametrize(
    ("part", "method"),
    [
        ("_core.jobs", "find"),
        ("_routing", "is_for_us"),
        ("_held", "fits"),
        ("_row_reader", "state"),
        ("_reconciler", "take_over"),
    ],
)
async def test_an_error_while_a_job_is_taken_costs_no_other_anything(world, monkeypatch, part, method):
    """Nothing was asked of the store any more, and what came out was kept for ever. Its own job comes again, too."""
    begun = []
    async with world.scheduler() as s:
        s.register("note", lambda: begun.append(current_run().job_id))
        for number in range(20):
            s.add("note", "@every 10s", id=f"job-{number}")
        await world.until(lambda: len(set(begun)) == 20)
        raised = fail_once_while_taking(monkeypatch, s._memory.membership.dispatch.claiming, part, method)
        await world.until(lambda: raised)
        for _ in range(2):
            del begun[:]
            await world.until(lambda: len(set(begun)) == 20)
            assert len(begun) < 40, "some are left out"
        await world.until(lambda: s.statistics().queue.held == 0)


def fail_once_while_taking(monkeypatch, claiming, part, method):
    """Have the first call of that method raise which is made while something is taken."""
    owner, depth, raised = attrgetter(part)(claiming), [], []
    come_out, answered, found = claiming._come_out, claiming._answered, getattr(owner, method)

    def within(call):
        def called(*args):
            depth.append(1)
            try:
                call(*args)
            finally:
                depth.pop()

        return called

    def raise_once(*args, **options):
        if depth and not raised:
            raised.append(method)
            raise ZeroDivisionError(method)
        return found(*args, **options)

    monkeypatch.setattr(claiming, "_come_out", within(come_out))
    monkeypatch.setattr(claiming, "_answered", within(answered))
    monkeypatch.setattr(owner, method, raise_once)
    return raised


async def test_an_error_while_a_job_is_fetched_costs_no_other_anything(world, monkeypatch):
    """What is asked of the others is done, and its own start begins in time."""
    begun = []
    async with world.scheduler() as s:
        s.register("note", lambda: begun.append(current_run().job_id))
        jobs = [s.add("note", "@every 1h", id=f"job-{number}") for number in range(3)]
        await world.until(lambda: all(world.statuses(job.id) == [SCHEDULED] and job.is_elsewhere for job in jobs))
        errors, take_over = [ZeroDivisionError()], s._memory.membership.dispatch.fetching._reconciler.take_over

        def fail_once(*args):
            if errors:
                raise errors.pop()
            take_over(*args)

        monkeypatch.setattr(s._memory.membership.dispatch.fetching._reconciler, "take_over", fail_once)
        for job in jobs:
            job.run_now()
        await world.until(lambda: begun)
        await world.until(lambda: s.statistics().queue.held == 0)
        assert len(begun) == 2
        await world.until(lambda: len(set(begun)) == 3, 60)


async def test_a_row_that_makes_no_sense_is_not_kept_by_who_asks_something_of_it(world):
    """It stands in the queue as it did before."""
    async with queued(world) as (_, job):
        sound = world.store._data.jobs["job"]
        world.store._data.jobs["job"] = sound._replace(id=7)
        world.store.held = "fetch"
        job.run_now()
        await world.until(world.store.asked.is_set)
        world.store.let.set()
        await world.until(lambda: TAKEN not in world.statuses())
        assert world.begun == []
        world.store._data.jobs["job"] = sound
        await world.until(lambda: world.begun, 60)


async def test_what_was_fetched_though_the_answer_was_lost_is_not_kept(world):
    """Its next start begins in time. What was asked of it is a row, which others find."""
    async with queued(world) as (_, job):
        world.store.lost = "fetch"
        job.run_now()
        await world.until(world.store.asked.is_set)
        await world.until(lambda: TAKEN not in world.statuses())
        await world.until(lambda: world.begun, 60)


async def test_what_was_taken_though_the_answer_was_lost_runs_though_the_queue_has_lost_it(world):
    """All others would pass over it, and no audit would look for it."""
    async with queued(world):
        world.store.lost = "take"
        world.store.also = world.queue._entries.clear
        await world.until(world.store.asked.is_set, 60)
        await world.until(lambda: world.begun, 1)
        await world.until(lambda: TAKEN not in world.statuses())


async def test_what_the_store_has_forgotten_that_we_released_goes_on(world):
    """A standby has become the server that missed the end of a run: the tick runs again, and the next ones after it."""
    async with queued(world, "@every 1m") as (s, _):
        world.takes = 5
        await world.until(lambda: world.begun, 1)
        await s.flush()
        data = world.store._data
        before = deepcopy((data.executions, data.states, data.ticks))
        assert TAKEN in world.statuses()
        await world.until(lambda: TAKEN not in world.statuses(), 0.1)
        data.executions, data.states, data.ticks = before
        await world.until(lambda: len(world.begun) > 3, 1)


@pytest.mark.parametrize("verb", ["take", "fetch"])
async def test_a_job_that_is_removed_while_it_is_taken_leaves_nothing(world, verb):
    """It does not come back, and another one of that id runs."""
    async with queued(world) as (s, job):
        world.store.held = verb
        if verb == "fetch":
            job.run_now()
        await world.until(world.store.asked.is_set, 60)
        job.remove()
        await settle()
        world.store.held = None
        world.store.let.set()
        await s.flush()
        await world.until(lambda: TAKEN not in world.statuses())
        assert s.jobs() == []
        assert world.begun == []
        s.add("work", "@every 10s", id="job")
        await world.until(lambda: world.begun, 1)


async def test_a_job_that_others_remove_while_it_runs_here_leaves_nothing(world):
    """Somebody deletes its row. Another one of that id runs."""
    world.takes = 30
    async with queued(world, "@every 1m") as (s, _):
        await world.until(lambda: world.begun, 1)
        world.store.delete("job")
        await world.until(lambda: s.jobs() == [], 0.1)
        assert s.statistics().queue.held == 1
        await world.until(lambda: s.statistics().queue.held == 0 and TAKEN not in world.statuses(), 1)
        begun = len(world.begun)
        s.add("work", "@every 1m", id="job")
        await world.until(lambda: len(world.begun) > begun + 1, 1)


async def test_a_job_whose_state_no_store_can_take_is_released_all_the_same(world):
    """What was to be written of it is lost, and is told. It goes on with the next audit."""
    async with queued(world, "@every 1m") as (s, _):
        world.store.refuses = True
        await world.until(lambda: world.begun, 1)
        await world.until(lambda: s.statistics().queue.held == 0 and TAKEN not in world.statuses(), 0.1)
        world.store.refuses = False
        begun = len(world.begun)
        await world.until(lambda: len(world.begun) > begun, 10)


async def cut_off_a_daily_run(world):
    """Have an agent die under a run of a daily job that is to be tried again."""
    world.takes = 10_000
    async with world.scheduler() as s:
        soon = datetime.fromtimestamp(world.clock.wall() + 5, UTC)
        s.add("work", "@every 1d", id="job", delivery="at_least_once", start=soon)
        await world.until(lambda: world.begun, 0.1)
        world.store = another(world.store)
        world.store.open(0, lambda: None)
    world.takes = 0


async def test_an_edit_of_a_job_that_owes_a_tick_leaves_that_its_time(world):
    """It is tried at the end of its rest, and not at the next start of the new schedule."""
    await cut_off_a_daily_run(world)
    async with world.scheduler(crash_floor="10m") as s:
        await world.until(lambda: s.statistics().queue.held, 1)
    async with world.scheduler(crash_floor="10m") as s:
        await world.until(lambda: len(world.live()) == 1 and world.live()[0].status == SCHEDULED, 0.1)
        s.get("job").update(schedule="@every 2d")
        await s.flush()
        before = world.clock.wall()
        await world.until(lambda: len(world.begun) > 1, 10)
        assert world.clock.wall() - before < 3_600


async def test_what_is_owed_and_rests_at_a_stop_begins_at_the_next_agent_after_its_rest(world):
    """It does not wait for the next start of its job, which is in a day."""
    await cut_off_a_daily_run(world)
    async with world.scheduler(crash_floor="10m") as s:
        await world.until(lambda: s.statistics().queue.held, 1)
        assert len(world.begun) == 1, "it rests after a crash"
    async with world.scheduler(crash_floor="10m"):
        before = world.clock.wall()
        await world.until(lambda: len(world.begun) > 1, 10)
        assert world.clock.wall() - before < 3_600


@pytest.mark.parametrize("asked", [False, True])
async def test_what_a_dead_agent_had_for_long_is_found_though_no_queue_gives_it_out(world, asked):
    """Its next start was planned already, and is in a day. A run that was asked for stood in no queue."""
    world.takes = 10_000
    async with world.scheduler() as s:
        soon = datetime.fromtimestamp(world.clock.wall() + 5 + 86_400 * asked, UTC)
        job = s.add("work", "@every 1d", id="job", delivery="at_least_once", start=soon)
        await world.until(lambda: (asked and world.statuses() == [SCHEDULED]) or world.begun, 1)
        if asked:
            job.run_now()
        await world.until(lambda: world.begun and len(world.statuses()) == 2 and len(world.live()) == 1, 1)
        world.store = another(world.store)
        world.store.open(0, lambda: None)
    world.takes = 0
    async with world.scheduler(crash_floor="1m"):
        before = world.clock.wall()
        await world.until(lambda: len(world.begun) > 1, 10)
        assert world.clock.wall() - before < 3_600
        await world.until(lambda: len(world.live()) == 1)
        assert world.live()[0].due_us > (world.clock.wall() + 3_600) * 1_000_000


async def test_what_is_owed_and_comes_while_the_others_end_at_a_stop_begins_at_the_next_agent(world):
    """It was being taken at the stop, and nothing begins any more when it comes."""
    world.takes = 10_000
    async with world.scheduler() as s:
        soon = datetime.fromtimestamp(world.clock.wall() + 5, UTC)
        s.add("work", "@every 1d", id="job", delivery="at_least_once", start=soon)
        await world.until(lambda: world.begun, 1)
    world.store.held = "take"
    async with world.scheduler() as s:
        s.add(partial(world.clock.sleep, 10_000), "@every 1d", id="busy", start="now", durable=False)
        await world.until(world.store.asked.is_set)
        s.stop(grace=10)
        world.store.let.set()
        await world.until(lambda: s.statistics().queue.taken)
    world.takes = 0
    async with world.scheduler():
        before, begun = world.clock.wall(), len(world.begun)
        await world.until(lambda: len(world.begun) > begun, 10)
        assert world.clock.wall() - before < 3_600


def another(store):
    """Return another store on the same data, as another process would have."""
    other = Line()
    other._data = store._data
    return other
