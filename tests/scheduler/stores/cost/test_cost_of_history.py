"""To keep a job's history within its bounds costs little: its records are not read again for each new one."""

from contextlib import closing

import pytest

from scheduler.stores import RUNNING, Batch, Retention, StoredTick
from scheduler.stores.postgres import PostgresStore
from scheduler.stores.sqlite import SQLiteStore

MOST = 160
SLACK = MOST // 16
BOUNDS = Retention(per_job=MOST, age=None, total_bytes=None)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        store = SQLiteStore(tmp_path / "jobs.db")
    else:
        server, schema = (request.getfixturevalue(name) for name in ("postgres_server", "postgres_schema"))
        store = PostgresStore(server.dsn, schema=schema)
    with closing(store):
        store.open(0, lambda: None)
        yield store


def run(store, *dues):
    for due in dues:
        tick = StoredTick("job", due, 1, due + 1, RUNNING, started_us=due)
        store.commit(Batch(marks=[tick]))
        store.commit(Batch(ended=[tick._replace(outcome="succeeded", ended_us=due)]))


def test_records_of_a_job_are_counted_once_it_has_a_sixteenth_too_many(store):
    """Then all that are too many go. One by one each new record would have all others of its job read."""
    run(store, *range(MOST + 1))
    assert store.prune(BOUNDS, 0) == 1  # what is there at the start is counted
    gone = []
    for due in range(MOST + 1, 2 * MOST):
        run(store, due)
        gone.append(store.prune(BOUNDS, 0))
        assert len(store.history(limit=2 * MOST)) <= MOST + SLACK
    assert 0 < sum(map(bool, gone)) <= 2 * len(gone) / SLACK
