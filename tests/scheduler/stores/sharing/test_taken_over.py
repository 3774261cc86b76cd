"""A store that another agent has opened since is known to be that agent's, and no wait brings it back."""

import pytest

from scheduler import Scheduler, StoreDown, StoreTakenOver, StoreUnavailable
from scheduler.stores import Batch
from scheduler.stores.memory import MemoryStore
from scheduler.stores.postgres import PostgresStore
from scheduler.stores.sqlite import SQLiteStore
from scheduler.testing import FlakyStore
from timerqueue.testing import ManualClock


def nobody():
    """Take a hint."""


def test_the_one_before_is_told_in_memory():
    """By an error of its own kind."""
    first = MemoryStore()
    second = first.another()
    first.open(0, nobody)
    second.open(0, nobody)
    with pytest.raises(StoreTakenOver, match="another has opened it since"):
        first.commit(Batch())
    second.commit(Batch())


def test_the_one_before_is_told_on_postgresql(postgres_server, postgres_schema):
    """Which names the process that has it now."""
    first, second = (PostgresStore(postgres_server.dsn, schema=postgres_schema) for _ in range(2))
    first.open(0, nobody)
    second.open(0, nobody)
    try:
        for verb in (lambda: first.commit(Batch()), first.changes):
            with pytest.raises(StoreTakenOver, match=r"another node has taken it over: process [0-9]+ on "):
                verb()
    finally:
        first.close()
        second.close()


def test_the_one_before_is_told_in_sqlite_if_somebody_removes_the_lock(tmp_path):
    """Else the second one is refused."""
    first, second = (SQLiteStore(tmp_path / "jobs.db") for _ in range(2))
    first.open(0, nobody)
    (tmp_path / "jobs.db.lock").unlink()
    second.open(0, nobody)
    try:
        with pytest.raises(StoreTakenOver, match="leave the lock's file alone"):
            first.commit(Batch())
    finally:
        first.close()
        second.close()


async def test_a_scheduler_says_that_its_store_is_anothers():
    """Once, though the store did not work before for another reason."""
    clock, memory, told = ManualClock(), MemoryStore(), []
    store = FlakyStore(memory, verbs={"commit"})
    async with Scheduler(clock=clock, store=store) as s:
        s.listen(lambda event: told.append(event) if isinstance(event, StoreDown) else None)
        s.register("work", print)
        s.add("work", "@every 10s", id="a")
        await clock.travel(1)
        store.fail_on = range(store.counted + 1, store.counted + 4)
        await clock.travel(20)
        memory.another().open(0, nobody)
        await clock.travel(60)
    assert [event.is_taken_over for event in told] == [False, True]
    assert "another has opened it since" in told[-1].error


async def test_a_store_that_fails_after_it_was_taken_over_is_told_once():
    """Every call of the one before fails from then on."""
    clock, memory, told = ManualClock(), MemoryStore(), []
    async with Scheduler(clock=clock, store=FlakyStore(memory, error=StoreUnavailable("gone"))) as s:
        s.listen(lambda event: told.append(event) if isinstance(event, StoreDown) else None)
        s.register("work", print)
        s.add("work", "@every 10s", id="a")
        await clock.travel(1)
        memory.another().open(0, nobody)
        await clock.travel(600)
    assert [event.is_taken_over for event in told] == [True]
