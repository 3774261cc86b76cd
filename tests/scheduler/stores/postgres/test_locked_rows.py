"""A row that somebody has locked costs its own job, and no other.

An editor of tables that waits for "commit", or a psql in a transaction, locks the rows that it has changed.
"""

from contextlib import contextmanager

import pytest
from psycopg import connect

from kit import settle, until
from scheduler import Scheduler, current_run
from scheduler.stores import Batch, NotTaken, Planned, StoredJob, StoredState, StoredTick, Taken
from scheduler.stores.postgres import PostgresStore

JOBS = 10
EVERY = "@every 1h"
DUE = 2**52

LOCKS = {
    "removed": "DELETE FROM job WHERE id = 'job 7'",
    "locked": "SELECT FROM job_state WHERE job_id = 'job 7' FOR UPDATE",
}


@pytest.fixture
def locking(postgres_server, postgres_schema):
    """Do something by hand, and do not commit it before the end of the block; then take it back."""

    @contextmanager
    def locking(*statements):
        with connect(postgres_server.dsn) as somebody:
            somebody.execute(f"SET search_path TO {postgres_schema}")
            for statement in statements:
                somebody.execute(statement)
            yield
            somebody.rollback()

    return locking


class Runs(list):
    """The ids of jobs, as they ran."""

    async def __call__(self):
        self.append(current_run().job_id)

    async def all_again(self, *numbers):
        """Wait until each of these jobs has run some times more."""
        since = len(self)
        await until(lambda: min(self[since:].count(f"job {number}") for number in numbers) >= 3)


@pytest.fixture
def runs():
    return Runs()


@pytest.fixture
def scheduler(postgres_server, postgres_schema, runs):
    """Make a scheduler with jobs that run often."""

    def scheduler(*, shared=True, **options):
        store = PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=shared)
        s = Scheduler(store=store, poll="50ms", blocked_after=None, **options)
        s.register("work", runs)
        for number in range(JOBS):
            s.add("work", "@every 100ms", id=f"job {number}")
        return s

    return scheduler


OTHERS = [number for number in range(JOBS) if number != 7]


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
async def test_the_other_jobs_go_on_while_a_row_is_locked(scheduler, runs, locking, lock, shared):
    """Its own job goes on as soon as it is free."""
    async with scheduler(shared=shared) as s:
        await runs.all_again(*range(JOBS))
        with locking(lock):
            await until(lambda: s._core.journal.aside.parts)
            began = runs.count("job 7")
            await runs.all_again(*OTHERS)
            assert s.statistics().store.trouble is None
            assert runs.count("job 7") <= began + 1, "one whose mark was durable already may have begun"
        await runs.all_again(*range(JOBS))
        await s.flush()
        assert not s._core.journal.aside.parts
        records = await s.history("job 7", limit=1_000)
        assert len({record.due for record in records}) == len(records)
        s.stop(0)


async def test_a_run_whose_row_is_locked_takes_no_room_from_the_others(scheduler, runs, locking):
    """It has room, and waits for its mark: it hands its room back."""
    async with scheduler(limit=1) as s:
        await runs.all_again(*range(JOBS))
        with locking(LOCKS["locked"]):
            await until(lambda: s._core.journal.aside.parts)
            await runs.all_again(*OTHERS)
        await runs.all_again(*range(JOBS))
        s.stop(0)


async def test_a_flush_waits_for_what_stands_aside(scheduler, runs, locking):
    """Until then what was asked for is not durable."""
    done = []
    async with scheduler() as s:
        await runs.all_again(*range(JOBS))
        with locking(LOCKS["locked"]):
            await until(lambda: s._core.journal.aside.parts)
            s._core.journal.flush(done.append)
            await runs.all_again(*OTHERS)
            await settle()
            assert done == []
        await until(lambda: done == [None])
        s.stop(0)


async def test_many_rows_that_are_locked_stand_aside_at_once(scheduler, runs, locking):
    """They are not looked for one by one."""
    async with scheduler() as s:
        await runs.all_again(*range(JOBS))
        with locking("SELECT FROM job_state WHERE job_id < 'job 5' FOR UPDATE"):
            await until(lambda: s._core.journal.aside.parts)
            await runs.all_again(*range(5, JOBS))
        await runs.all_again(*range(JOBS))
        s.stop(0)


@pytest.mark.parametrize("table", ["job_state", "tick", "execution"])
def test_a_store_says_whose_rows_are_locked(agent, locking, table):
    """Of those jobs that a batch is about."""
    store, ids = agent(), ["a", "b"]
    marks = [StoredTick(id, DUE, 1, 1, "running") for id in ids]
    batch = Batch(
        jobs={id: StoredJob(id, "task", EVERY) for id in ids},
        states={id: StoredState(id, next_us=DUE) for id in ids},
        planned={id: Planned(id, DUE, EVERY, 0) for id in ids},
        marks=marks,
    )
    store.commit(batch)
    with locking(f"SELECT FROM {table} WHERE job_id = 'a' FOR UPDATE"):
        assert store.locked([batch]) == {"a"}
        assert store.locked([Batch(jobs={"b": None})]) == set()
    assert store.locked([batch]) == set()


def test_executions_are_taken_beside_one_whose_job_is_locked(agent, locking):
    """It is not waited for again before it has been seen free."""
    store, ids = agent(), ["a", "b"]
    store.commit(
        Batch(
            jobs={id: StoredJob(id, "task", EVERY) for id in ids},
            states={id: StoredState(id, next_us=DUE) for id in ids},
            planned={id: Planned(id, DUE, EVERY, 0) for id in ids},
        )
    )
    executions = store.executions
    with locking("UPDATE job SET name = 'new' WHERE id = 'a'"):
        locked, taken = executions.take([("a", DUE), ("b", DUE)])
        assert locked is NotTaken.LOCKED
        assert isinstance(taken, Taken)
        assert executions.take([("a", DUE)]) == [NotTaken.LOCKED]
    assert isinstance(executions.take([("a", DUE)])[0], Taken)
