"""What PostgreSQL keeps of the statements that write, from one commit to the next."""

from contextlib import closing

import psycopg
import pytest
from psycopg import sql

from debian_servers import PgBouncer
from scheduler.stores import RUNNING, Batch, StoredJob, StoredState, StoredTick
from scheduler.stores._postgres.commits import write
from scheduler.stores.postgres import PostgresStore

JOBS = [f"job-{number}" for number in range(2_000)]
SOME = JOBS[::8]

READ = "SELECT relname, seq_tup_read FROM pg_stat_xact_user_tables WHERE schemaname = %s"
"""How many rows of each table this connection has read one after another, and has not told the server of yet."""

FEW = 100
"""Rows of a table that are read as fast as one is found by its key."""


@pytest.fixture
def store(postgres_server, postgres_schema):
    """Nothing is in it."""
    with closing(PostgresStore(postgres_server.dsn, schema=postgres_schema)) as store:
        store.open(0, lambda: None)
        yield store


def run_once(store, job_ids):
    """Put jobs that have run once."""
    rows = {job_id: StoredJob(job_id, "task", "@every 1s") for job_id in job_ids}
    store.commit(Batch(jobs=rows, states={job_id: StoredState(job_id) for job_id in job_ids}))
    store.commit(Batch(marks=[mark(job_id) for job_id in job_ids]))


def run_again(job_ids, due_us):
    """Return what a commit has to write where all of these have run, and run again."""
    return Batch(
        states={job_id: StoredState(job_id, runs=1) for job_id in job_ids},
        marks=[mark(job_id, due_us) for job_id in job_ids],
        ended=[ended(job_id) for job_id in job_ids],
    )


def read_by(store, schema, batch):
    """Return how many rows a commit of the batch reads one after another, by their tables, where these are many."""
    with store.writing() as connection:
        before = dict(connection.execute(READ, [schema]).fetchall())
        receipt = write(connection, store._statements, store._of_executions, batch, store.epoch)
        after = dict(connection.execute(READ, [schema]).fetchall())
    assert not receipt.refused
    assert not receipt.stale
    return {name: read for name, read in after.items() if read - before.get(name, 0) > FEW}


def mark(job_id, due_us=1):
    return StoredTick(job_id, due_us, 1, due_us, RUNNING, started_us=due_us)


def ended(job_id):
    return mark(job_id)._replace(outcome="succeeded", ended_us=2)


def test_a_commit_reads_by_keys_also_what_has_grown_since_it_was_first_said(store, postgres_schema):
    """PostgreSQL keeps how it goes about a statement that it is asked again and again, and a table with one row is best
    read as a whole.
    """
    run_once(store, ["first"])
    with store.transaction() as connection:
        connection.execute(sql.SQL("ANALYZE {}.job").format(sql.Identifier(postgres_schema)))
    for due_us in range(3, 13):
        assert not store.commit(run_again(["first"], due_us)).refused
    run_once(store, JOBS)
    assert read_by(store, postgres_schema, run_again(SOME, due_us=13)) == {}


def test_the_server_keeps_what_it_knows_of_the_statements_that_write(store):
    """It took half of the server's time to find that out anew for each commit."""
    run_once(store, ["first"])
    for due_us in range(3, 6):
        store.commit(run_again(["first"], due_us))
    with store.transaction() as connection:
        kept = connection.execute("SELECT statement FROM pg_prepared_statements WHERE statement ~ 'INSERT'").fetchall()
    assert len({text for (text,) in kept}) == len(kept) >= 3


def test_behind_a_pooler_nothing_is_kept(postgres_server, postgres_schema):
    """The next transaction may be on another session, which does not know it."""
    pooler = PgBouncer(postgres_server)
    try:
        with closing(PostgresStore(pooler.dsn, schema=postgres_schema)) as store:
            store.open(0, lambda: None)
            run_once(store, ["first"])
            assert not store.commit(run_again(["first"], due_us=3)).refused
        with psycopg.connect(pooler.dsn, autocommit=True, prepare_threshold=None) as next_one:
            assert next_one.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
    finally:
        pooler.close()
