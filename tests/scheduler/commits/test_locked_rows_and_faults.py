"""Rows that are locked while the store fails, while they are locked again, and at the end: nothing is out of order."""

import pytest
from anyio import sleep_forever

from inline_store import InlineStore, ask_inline
from kit import nothing, settle, until
from scheduler import Scheduler
from scheduler.stores import StoreLocked, StoreUnavailable
from scheduler.stores.memory import MemoryStore

PARTS = ("jobs", "states", "planned", "added", "begun")


def jobs_of(batch):
    """Return the ids of all jobs that the batch writes."""
    return {id for part in PARTS for id in getattr(batch, part)} | {
        tick.job_id for tick in (*batch.marks, *batch.ended)
    }


class Locking:
    """What a store does in which somebody else has locked rows. `fault`: given each batch, what its commit raises.

    `lets_go`: the rows are free once it was asked which are locked.
    """

    is_immediate = False

    def __init__(self):
        super().__init__()
        self.rows, self.fault, self.lets_go = set(), lambda batch: None, False

    def commit(self, batch):
        if (fault := self.fault(batch)) is not None:
            raise fault
        if jobs_of(batch) & self.rows:
            raise StoreLocked("somebody has locked a row")
        return super().commit(batch)

    def locked(self, batches):
        found = {id for batch in batches for id in jobs_of(batch)} & self.rows
        if self.lets_go:
            self.rows.clear()
        return found


class LockingStore(Locking, InlineStore):
    """One that answers on the loop."""


class ThreadedStore(Locking, MemoryStore):
    """One that is asked in a thread, as a server is."""


@pytest.fixture
async def world(clock, monkeypatch):
    """A scheduler with four jobs that have run, and its store."""
    ask_inline(monkeypatch)
    store, begun = LockingStore(), []
    async with Scheduler(store=store, clock=clock, blocked_after=None) as s:

        async def work(number):
            begun.append(number)

        s.register("work", work)
        s.register("nothing", nothing)
        for number in range(4):
            s.add("work", "@every 1s", id=f"job {number}", args=(number,), start="now")
        await s.flush()
        yield s, store, begun
        store.rows.clear()
        s.stop(0)


async def pass_time(clock, seconds):
    for _ in range(round(seconds * 20)):
        clock.advance(0.05)
        await settle()


async def test_a_commit_that_failed_and_then_meets_a_locked_row_is_not_the_last(world, clock):
    """The rest was not sent again by anybody: no job ran any more, and no flush returned."""
    s, store, begun = world

    def fault(batch):
        if len(jobs_of(batch)) < 4:
            return None
        store.rows.add("job 2")
        store.fault = lambda batch: None
        return StoreUnavailable("the server restarts")

    store.fault = fault
    for number in range(4):
        s.get(f"job {number}").run_now()
    await pass_time(clock, 0.5)
    assert store.rows
    begun.clear()
    await pass_time(clock, 6)
    assert min(begun.count(number) for number in (0, 1, 3)) >= 4
    store.rows.clear()
    begun.clear()
    await pass_time(clock, 4)
    assert min(begun.count(number) for number in range(4)) >= 2


async def test_what_is_noted_later_of_a_job_is_not_sent_before_what_stands_aside_again(world, clock):
    """A job that was changed and then removed stood in the store again: its rows were locked anew as they were sent."""
    s, store, _ = world
    s.add("nothing", "@every 1h", id="one")
    await s.flush()
    store.rows.add("one")
    s.get("one").update(schedule="@every 2h")
    await pass_time(clock, 0.1)
    s.get("one").remove()
    await pass_time(clock, 0.1)
    told = []
    s._core.journal.flush(told.append)

    def once_more(batch):
        if "one" not in batch.jobs:
            return None
        store.rows.add("one")
        store.lets_go, store.fault = True, lambda batch: None
        return StoreLocked("somebody has locked it again")

    store.rows.clear()
    store.fault = once_more
    await pass_time(clock, 2)
    assert store.lets_go
    of_one = [batch.jobs["one"] for batch in store.batches if "one" in batch.jobs]
    assert [row if row is None else row.schedule for row in of_one] == ["@every 1h", "@every 2h", None]
    assert told == [None]


async def test_a_row_that_is_locked_at_the_end_costs_its_own_job(monkeypatch):
    """The ends of all other runs were lost with it, and counted as crashes at the next start."""
    monkeypatch.setattr("scheduler._memory.memory.LAST_WORDS", 0.3)
    store = ThreadedStore()
    async with Scheduler(store=store, blocked_after=None) as s:
        s.register("sleeps", sleep_forever)
        for number in range(4):
            s.add("sleeps", "@every 1h", id=f"job {number}", start="now")
        await until(lambda: len(store.running()) == 4)
        store.rows.add("job 2")
        s.stop(0)
    assert [tick.job_id for tick in store.running()] == ["job 2"]
