"""What a commit reads of PostgreSQL's tables: what it concerns, by its keys, however many other jobs there are."""

from contextlib import closing

import pytest

from scheduler.stores import RUNNING, Batch, StoredJob, StoredState, StoredTick
from scheduler.stores._postgres.commit import write
from scheduler.stores.postgres import PostgresStore

JOBS = [f"job-{number}" for number in range(2_000)]
SOME = JOBS[::8]

READ = "SELECT relname, seq_tup_read FROM pg_stat_xact_user_tables WHERE schemaname = %s"
"""How many rows of each table this connection has read one after another, and has not told the server of yet."""

FEW = 100
"""Rows of a table that are read as fast as one is found by its key."""


@pytest.fixture
def store(postgres_server, postgres_schema):
    """All jobs are in it, and have run once."""
    with closing(PostgresStore(postgres_server.dsn, schema=postgres_schema)) as store:
        store.open(0, lambda: None)
        rows = {job_id: StoredJob(job_id, "task", "@every 1s") for job_id in JOBS}
        store.commit(Batch(jobs=rows, states={job_id: StoredState(job_id) for job_id in JOBS}))
        store.commit(Batch(marks=[mark(job_id) for job_id in JOBS]))
        yield store


def mark(job_id, due_us=1):
    return StoredTick(job_id, due_us, 1, due_us, RUNNING, started_us=due_us)


def ended(job_id):
    return mark(job_id)._replace(outcome="succeeded", ended_us=2)


def test_a_commit_of_states_marks_and_ends_reads_no_table_as_a_whole(store, postgres_schema):
    """PostgreSQL would rather read all jobs than look so many up, and be done with it much later where they are many:
    then more starts wait for the next commit, which reads all jobs again.
    """
    batch = Batch(
        states={job_id: StoredState(job_id, runs=1) for job_id in SOME},
        marks=[mark(job_id, due_us=3) for job_id in SOME],
        ended=[ended(job_id) for job_id in SOME],
    )
    with store.writing() as connection:
        before = dict(connection.execute(READ, [postgres_schema]).fetchall())
        receipt = write(connection, store._statements, store._of_executions, batch, store.epoch)
        after = dict(connection.execute(READ, [postgres_schema]).fetchall())
    assert not receipt.refused
    assert not receipt.stale
    assert {name: read for name, read in after.items() if read - before.get(name, 0) > FEW} == {}
