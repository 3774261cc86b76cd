"""How often the server is waited for in one transaction: each way there and back is lateness of a start, and CPU."""

from contextlib import closing

import pytest

from scheduler.stores import PARTS, RUNNING, Batch, NotTaken, Planned, Retention, StoredJob, StoredState, StoredTick
from scheduler.stores._postgres.connection import StoreConnection
from scheduler.stores.postgres import PostgresStore


@pytest.fixture
def store(postgres_server, postgres_schema):
    """One job is in it, whose next execution waits to be taken."""
    with closing(PostgresStore(postgres_server.dsn, schema=postgres_schema)) as store:
        store.open(0, lambda: None)
        planned = {"a": Planned("a", 5, "@every 1s", 0)}
        store.commit(Batch(jobs={"a": StoredJob("a", "task", "@every 1s")}, planned=planned))
        yield store


@pytest.fixture
def ways(monkeypatch, store):
    """A question outside of a pipeline, and a pipeline as a whole, is one. That of who listens for changes is not."""
    ways, execute, pipeline = [], StoreConnection.execute, StoreConnection.pipeline

    def executed(connection, query, *args, **kwargs):
        if connection is store._commits.connection and connection._pipeline is None:
            ways.append(query)
        return execute(connection, query, *args, **kwargs)

    def piped(connection):
        if connection is store._commits.connection:
            ways.append("pipeline")
        return pipeline(connection)

    monkeypatch.setattr(StoreConnection, "execute", executed)
    monkeypatch.setattr(StoreConnection, "pipeline", piped)
    return ways


def test_a_commit_waits_once(store, ways):
    """It took two: the first until it was known that the commit has the row of its node."""
    mark = StoredTick("a", 5, 1, 1, RUNNING, started_us=5)
    store.commit(Batch(states={"a": StoredState("a")}, marks=[mark]))
    assert ways == ["pipeline"]
    assert store.running() == [mark]


def test_a_commit_that_adds_jobs_waits_three_times(store, ways):
    """What stands in their places decides what is written."""
    store.commit(Batch(jobs={"b": StoredJob("b", "task", "@every 1s")}, added={"b": "refuse"}))
    assert [way if way == "pipeline" else "question" for way in ways] == ["pipeline", "question", "pipeline"]


def test_executions_are_taken_in_one_way(store, ways):
    """Commits wait behind it. It took two, and a run of a node that is 0.1 s away began that much later."""
    taken, again = store.executions.take([("a", 5), ("a", 6)])
    assert ways == ["pipeline"]
    assert again is NotTaken.UNKNOWN
    assert taken.job.id == "a"
    assert [each.status for each in store.executions.of_job("a")] == ["taken"]


def test_a_part_is_audited_in_three_ways(store, ways):
    """Commits wait behind it, for sixteen parts. It took six, more than a second for a node that is 0.1 s away."""
    for part in range(PARTS):
        ways.clear()
        assert store.executions.audit(part, now_us=5, instance="i", decide=lambda _: None) is not None
        assert ways == ["pipeline", "pipeline", "pipeline"]


def test_executions_are_read_in_one_way(store, ways):
    """Of each page: commits wait behind it. It took three."""
    [waiting] = store.executions.waiting("pending", before_us=10)
    assert (waiting.job_id, waiting.due_us) == ("a", 5)
    assert store.executions.taken() == []
    assert store.executions.wheres(["a"]) == {}
    assert ways == ["pipeline"] * 3


def test_history_is_pruned_in_few_ways(store, ways):
    """Commits wait behind it. It took fifteen each time, three seconds for a node that is 0.1 s away."""
    for _ in range(2):
        ways.clear()
        store.prune(Retention(per_job=10, age=1.0), 0)
        assert set(ways) == {"pipeline"}
        assert len(ways) < 8


def test_changes_of_others_are_asked_for_in_one_way_and_read_in_another(store, ways, by_hand):
    """Commits wait behind it. It took four, and a node that is 0.1 s away began 0.4 s later after each outage."""
    by_hand("INSERT INTO {}.job (id, task, schedule) VALUES ('b', 'task', '@every 1s')")
    assert set(store.changes().jobs) == {"b"}
    assert ways == ["pipeline", "COMMIT"]


def test_a_new_connection_is_tried_in_one_way(store, monkeypatch):
    """Whether the store is still ours, and whether the server is the one that we logged in to. It took four."""
    said, execute, pipeline = [], StoreConnection.execute, StoreConnection.pipeline

    def executed(connection, query, *args, **kwargs):
        if connection._pipeline is None:
            said.append(connection)
        return execute(connection, query, *args, **kwargs)

    def piped(connection):
        said.append(connection)
        return pipeline(connection)

    monkeypatch.setattr(StoreConnection, "execute", executed)
    monkeypatch.setattr(StoreConnection, "pipeline", piped)
    with closing(store.connect()) as connection:
        assert connection.is_direct()
    assert said.count(connection) == 1
