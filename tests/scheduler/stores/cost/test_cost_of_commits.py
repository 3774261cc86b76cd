"""What commits and takes cost: they read what they concern, by its keys, however many other jobs there are."""

from collections import Counter
from contextlib import closing

import pytest

from scheduler.stores import (
    RUNNING,
    TAKEN,
    Batch,
    Placed,
    Planned,
    RequestDone,
    StoredJob,
    StoredRequest,
    StoredState,
    StoredTick,
)
from scheduler.stores._postgres.commits import write
from scheduler.stores.postgres import PostgresStore

JOBS = [f"job-{number}" for number in range(2_000)]
SOME = JOBS[::8]

READ = "SELECT relname, seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE schemaname = %s"
"""How many rows of each table this connection has read one after another, or found by an index, and has not told the
server of yet.
"""

FEW = 100
"""Rows of a table that are read as fast as one is found by its key."""

LOOKS = 8
"""How often one row of a batch is looked at by all of its statements, with what else there is of its job."""

DUE = 5
"""When all executions are due."""


@pytest.fixture
def store(postgres_server, postgres_schema):
    """All jobs are in it, have run once, and have an execution."""
    with closing(PostgresStore(postgres_server.dsn, schema=postgres_schema)) as store:
        store.open(0, lambda: None)
        rows = {job_id: StoredJob(job_id, "task", "@every 1s") for job_id in JOBS}
        store.commit(Batch(jobs=rows, states={job_id: StoredState(job_id) for job_id in JOBS}))
        store.commit(Batch(marks=[mark(job_id) for job_id in JOBS], planned=planned(JOBS, DUE)))
        yield store


@pytest.fixture
def reads(store, postgres_schema):
    """Rows that were read one after another, and rows that were found by an index, by their tables."""

    def read(what):
        with store.writing() as connection:
            before = connection.execute(READ, [postgres_schema]).fetchall()
            what(connection)
            after = connection.execute(READ, [postgres_schema]).fetchall()
        return [
            Counter({row[0]: row[kind] for row in after}) - Counter({row[0]: row[kind] for row in before})
            for kind in (1, 2)
        ]

    return read


def mark(job_id, due_us=1):
    return StoredTick(job_id, due_us, 1, due_us, RUNNING, started_us=due_us)


def ended(job_id):
    return mark(job_id)._replace(outcome="succeeded", ended_us=2)


def planned(job_ids, due_us):
    return {job_id: Planned(job_id, due_us, "@every 1s", 0) for job_id in job_ids}


def more_than(most, counts):
    return {name: count for name, count in counts.items() if count > most}


def test_a_commit_of_states_marks_and_ends_reads_no_table_as_a_whole(store, reads):
    """PostgreSQL would rather read all jobs than look so many up, and be done with it much later where they are many:
    then more starts wait for the next commit, which reads all jobs again.
    """
    batch = Batch(
        states={job_id: StoredState(job_id, runs=1) for job_id in SOME},
        marks=[mark(job_id, due_us=3) for job_id in SOME],
        ended=[ended(job_id) for job_id in SOME],
    )
    receipts = []
    one_by_one, _ = reads(lambda connection: receipts.append(commit(store, connection, batch)))
    assert not receipts[0].refused
    assert not receipts[0].stale
    assert more_than(FEW, one_by_one) == {}


def test_executions_are_taken_by_their_keys(store, reads):
    """The same, of those that come out of a queue together, with their jobs and where these stand."""
    found = []
    ticks = [(job_id, DUE) for job_id in SOME]
    one_by_one, by_index = reads(
        lambda connection: found.extend(store.executions._take(connection, sorted(ticks))[0].fetchall())
    )
    assert sorted(row[:3] for row in found) == sorted((*tick, TAKEN) for tick in ticks)
    assert more_than(FEW, one_by_one) == {}
    assert more_than(LOOKS * len(SOME), by_index) == {}


def test_executions_are_put_released_and_planned_by_their_keys(store, reads):
    """The same, of the executions that one commit writes while all other jobs are with us, too."""
    store.executions.take([(job_id, DUE) for job_id in JOBS])
    store.commit(Batch(planned=planned(JOBS, 2 * DUE)))
    batch = Batch(
        released=dict.fromkeys(SOME, DUE),
        planned=planned(SOME, 3 * DUE),
        placed=[Placed(job_id, 2 * DUE, "instance", number, 0) for number, job_id in enumerate(SOME)],
    )
    receipts = []
    one_by_one, by_index = reads(lambda connection: receipts.append(commit(store, connection, batch)))
    assert sorted(row.job_id for row in receipts[0].gone) == sorted(SOME)
    assert more_than(FEW, one_by_one) == {}
    assert more_than(LOOKS * len(SOME), by_index) == {}


def test_requests_are_done_and_forgotten_by_their_keys(store, reads):
    """Those of jobs that are gone were looked for by reading all jobs, in each commit that had to do with a request."""
    asked = JOBS[:100]
    store.commit(Batch(requests=[StoredRequest(number, job_id, "run") for number, job_id in enumerate(asked)]))
    batch = Batch(done=[RequestDone(0, JOBS[0], 1)], jobs={JOBS[1]: None})
    one_by_one, by_index = reads(lambda connection: commit(store, connection, batch))
    assert more_than(FEW, one_by_one) == {}
    assert more_than(LOOKS * len(asked), by_index) == {}
    with store.transaction() as connection:
        left = connection.execute(f"SELECT number FROM {store._schema}.request WHERE number < 4").fetchall()
    assert sorted(left) == [(0,), (2,), (3,)]


def test_a_statement_is_put_together_once(store):
    """The driver would do so for each commit, and spend more on it than on all else of a lone run."""
    statement = store._statements.put_states
    assert statement.as_bytes() is statement.as_bytes()
    assert statement.as_string().count("excluded") == len(StoredState._fields) - 1


def commit(store, connection, batch):
    return write(connection, store._statements, store._of_executions, batch, store.epoch)
