"""Runs that go without the store: they begin while it does not answer, and their records are stored once it does."""

import threading
from datetime import timedelta

import anyio
import pytest
from anyio.to_thread import run_sync
from hypothesis import given, strategies as st

from kit import settle
from schedule import Cron, Every
from scheduler import InvalidJob, MissedReason, Outcome, Retry, RunMissed, Scheduler, StoreDown, StoreTakenOver, StoreUp
from scheduler._runs import marks
from scheduler.stores.memory import MemoryStore
from scheduler.testing import FlakyStore
from timerqueue.testing import START, ManualClock

EVERY_10_S = Every("10s", anchor=START)
ALWAYS = range(1, 10**9)


def seconds(instant):
    """Tell how long after the start that was."""
    return round((instant - START).total_seconds(), 6)


class HeldUp:
    """A store whose commits with a mark are held up until they may go, as by another process that has it locked."""

    is_immediate = False

    def __init__(self):
        self._store = MemoryStore()
        self.has_come = threading.Event()
        self.may_go = threading.Event()

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, batch):
        if batch.marks:
            self.has_come.set()
            self.may_go.wait()
        return self._store.commit(batch)


class World:
    """A scheduler with a task that goes without the store, and one that does not, each every ten seconds."""

    def __init__(self, clock, store=None):
        self.clock = clock
        self.store = FlakyStore(MemoryStore()) if store is None else store
        self.begun = {"check": [], "pay": []}
        self.failures = 0
        """How often the next runs fail."""
        self.scheduler = self.another()

    def another(self):
        s = Scheduler(store=self.store, clock=self.clock, blocked_after=None)
        s.register("check", self._noting("check"), inline=True, without_store=True)
        s.register("pay", self._noting("pay"), inline=True)
        return s

    def _noting(self, name):
        def run():
            self.begun[name].append(seconds(self.clock.now()))
            if self.failures:
                self.failures -= 1
                raise ValueError(name)

        return run

    def add(self, name="check", schedule=EVERY_10_S, **options):
        return self.scheduler.add(name, schedule, id=name, **options)

    async def records(self, name="check"):
        """When each tick was due and how it ended, first due first."""
        found = await self.scheduler.history(name, limit=10_000)
        return [(seconds(each.due), each.outcome) for each in reversed(found)]


@pytest.fixture
def world(clock):
    return World(clock)


def succeeded(*instants):
    return [(instant, Outcome.SUCCEEDED) for instant in instants]


async def test_while_the_store_is_down_what_may_go_without_it_begins_on_time(world, clock, events):
    """Nothing else does. All that ran is on record afterwards."""
    world.scheduler.listen(events)
    async with world.scheduler:
        world.add()
        world.add("pay")
        await clock.travel(15)
        world.store.fail_on = ALWAYS
        await clock.travel(60)
        assert world.begun == {"check": [10, 20, 30, 40, 50, 60, 70], "pay": [10]}
        assert await world.records() == succeeded(10)
        world.store.fail_on = ()
        await clock.travel(2)
        assert await world.records() == succeeded(10, 20, 30, 40, 50, 60, 70)
        assert world.scheduler.get("check").statistics().runs == 7
    assert len(events.of(StoreDown)) == len(events.of(StoreUp)) == 1
    assert len(events.outcomes()) >= 8


async def test_a_commit_whose_answer_was_lost_stores_nothing_twice(world, clock):
    """It may have been carried out each time."""
    async with world.scheduler:
        world.add()
        world.store.before_or_after = "after"
        world.store.fail_on = ALWAYS
        await clock.travel(65)
        assert world.begun["check"] == [10, 20, 30, 40, 50, 60]
        world.store.fail_on = ()
        await clock.travel(2)
        assert await world.records() == succeeded(10, 20, 30, 40, 50, 60)


async def test_a_store_that_is_silent_is_waited_for_for_a_moment_only(clock):
    """The mark that is on its way may be durable. Then the end takes its place."""
    store = HeldUp()
    world = World(clock, store)
    async with world.scheduler:
        world.add()
        world.add("pay")
        await clock.travel(10.2)
        await run_sync(store.has_come.wait)
        assert world.begun == {"check": [], "pay": []}
        await clock.travel(2)
        assert world.begun["check"] == [10.5]
        await clock.travel(30)
        assert world.begun["check"][1:] == [20, 30, 40]
        assert world.begun["pay"] == []
        store.may_go.set()
        await world.scheduler.flush()
        assert await world.records() == succeeded(10, 20, 30, 40)
        await clock.travel(10)
        await settle()
        assert world.begun["pay"]


async def test_instants_that_come_again_have_records_of_their_own(world, clock):
    """The clock is set back while the store is down: what has run by then is on record under the same names."""
    async with world.scheduler:
        world.add(schedule=Cron("*/10 * * * * *"))
        await clock.travel(35)
        world.store.fail_on = ALWAYS
        clock.step(-30)
        await clock.travel(30)
        world.store.fail_on = ()
        await clock.travel(10)
        await world.scheduler.flush()
        assert len(await world.records()) == len(world.begun["check"]) == 7
        assert {outcome for _, outcome in await world.records()} == {Outcome.SUCCEEDED}


async def test_attempts_at_one_tick_leave_one_record(world, clock):
    """The last one says how it ended."""
    async with world.scheduler:
        world.add(retry=Retry.constant("1s", max_retries=5))
        await clock.travel(5)
        world.store.fail_on, world.failures = ALWAYS, 2
        await clock.travel(10)
        assert world.begun["check"] == [10, 11, 12]
        world.store.fail_on = ()
        await clock.travel(2)
        (record,) = await world.scheduler.history("check")
        assert (record.outcome, record.attempt) == (Outcome.SUCCEEDED, 3)


async def test_what_is_kept_is_bounded(world, clock, monkeypatch):
    """Beyond that each job has one record, of how many were not kept. Checks go on."""
    monkeypatch.setattr(marks, "MOST_KEPT", 3)
    async with world.scheduler:
        world.add()
        await clock.travel(5)
        world.store.fail_on = ALWAYS
        await clock.travel(100)
        assert len(world.begun["check"]) == 10
        world.store.fail_on = ()
        await clock.travel(2)
        *kept, left_out = reversed(await world.scheduler.history("check"))
        assert [record.outcome for record in kept] == [Outcome.SUCCEEDED] * 3
        assert (left_out.outcome, left_out.reason, left_out.count) == (Outcome.MISSED, MissedReason.STORE, 7)


async def test_a_death_before_the_store_is_back_loses_what_was_kept_and_no_more(world, clock):
    """The next process goes on, and nothing that is on record was lost."""
    async with world.scheduler as s:
        world.add()
        await clock.travel(15)
        world.store.fail_on = ALWAYS
        await clock.travel(20)
        world.store.store = world.store.store.another()  # which takes it over, as after kill -9
        world.store.store.open(0, lambda: None)
        s.stop(grace=0)
    world.store.fail_on = ()
    world.scheduler = world.another()
    async with world.scheduler:
        await clock.travel(20)
        assert [outcome for _, outcome in await world.records()].count(Outcome.SUCCEEDED) >= 3
        assert Outcome.CRASHED not in {outcome for _, outcome in await world.records()}


async def test_a_job_that_is_removed_meanwhile_leaves_its_records(world, clock):
    """As one that is removed at any other time."""
    async with world.scheduler:
        await clock.travel(1)
        world.store.fail_on = ALWAYS
        world.add()
        await clock.travel(20)
        world.scheduler.remove("check")
        await clock.travel(20)
        world.store.fail_on = ()
        await clock.travel(2)
        assert await world.records() == succeeded(*world.begun["check"])
        assert len(world.begun["check"]) == 2


async def test_nothing_begins_once_another_has_the_store(world, clock, events):
    """It runs the same jobs."""
    world.scheduler.listen(events)
    async with world.scheduler:
        world.add()
        await clock.travel(15)
        world.store.fail_on, world.store.error = ALWAYS, StoreTakenOver("another agent has it")
        await clock.travel(60)
        assert world.begun["check"] == [10]
        assert events.of(StoreDown)[0].is_taken_over
        world.store.fail_on = ()


def test_a_task_says_plainly_whether_it_goes_without_the_store(world):
    """A name stands for one thing, however often it is registered."""
    with pytest.raises(InvalidJob, match="without_store must be True or False"):
        world.scheduler.register("other", print, without_store="yes")
    with pytest.raises(InvalidJob, match="choose another name"):
        world.scheduler.register("check", world.scheduler._tasks.get("check"), inline=True)


@given(
    st.lists(st.tuples(st.sampled_from(["works", "before", "after"]), st.integers(1, 40)), max_size=8),
    st.integers(0, 3),
)
def test_whatever_the_store_does_each_run_has_one_record(periods, failures):
    """None twice, none lost, on time."""

    async def live():
        clock = ManualClock()
        world = World(clock)
        world.failures = failures
        missed = []
        world.scheduler.listen(missed.append, RunMissed)
        async with world.scheduler:
            world.add(schedule=Every("7s", anchor=START + timedelta(seconds=3)))
            world.add("pay", Every("7s", anchor=START + timedelta(seconds=3)))
            for what, length in periods:
                world.store.fail_on = () if what == "works" else ALWAYS
                world.store.before_or_after = "before" if what == "works" else what
                await clock.travel(length)
            world.store.fail_on = ()
            await clock.travel(3)
            await world.scheduler.flush()
            due = [due for due, _ in await world.records()]
            assert due == world.begun["check"]
            assert len(due) == len(set(due)) == sum(length for _, length in periods) // 7 + 1
            records = await world.records("pay")
            assert len(records) == len({due for due, _ in records})
            assert not [each for each in missed if each.job_id == "check"]

    anyio.run(live)
