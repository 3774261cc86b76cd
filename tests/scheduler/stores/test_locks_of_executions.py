"""Executions in PostgreSQL while somebody is at their jobs: who plans waits and looks again, an audit passes by."""

import threading

import psycopg
import pytest

from kit import wait_until
from scheduler.stores import PARTS, Batch, Planned, StoredJob, StoredState
from scheduler.stores.postgres import PostgresStore

DUE = 2**52


@pytest.fixture
def store(postgres_server, postgres_schema):
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=True, name="one")
    store.open(1_000_000, lambda: None)
    job, state = StoredJob("a", "t", "@every 1m"), StoredState("a", next_us=DUE)
    store.commit(Batch(jobs={"a": job}, states={"a": state}, planned={"a": Planned("a", DUE, "@every 1m", 1)}))
    yield store
    store.close()


@pytest.fixture
def taking(postgres_server, postgres_schema, store):
    """Another agent's transaction that takes the job; what it writes is not committed."""
    with psycopg.connect(postgres_server.dsn) as connection:
        connection.execute(f"SET search_path TO {postgres_schema}")
        connection.commit()
        yield connection
        connection.rollback()


LOCK = "SELECT FROM job WHERE id = 'a' FOR NO KEY UPDATE"
TAKE = "UPDATE execution SET status = 'taken', epoch = %s"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'"


def test_who_plans_for_a_job_that_is_being_taken_sees_that_it_was(store, taking, postgres_server):
    """As it was before the lock it was nobody's, and would have been planned for beside its run."""
    asked = []
    taking.execute(LOCK)
    taking.execute(TAKE, [store.epoch])
    planner = threading.Thread(target=lambda: store.executions.reconcile(["a"], asked.append))
    with psycopg.connect(postgres_server.dsn, autocommit=True) as hand:
        planner.start()
        wait_until(lambda: hand.execute(WAITING).fetchone()[0])
    taking.commit()
    planner.join()
    assert asked == []


def test_an_audit_passes_over_a_job_that_is_being_taken(store, taking):
    """An agent has died with it, and somebody takes it just now: to wait for one another would end one of the two."""
    taking.execute(TAKE, [None])
    taking.commit()
    taking.execute(LOCK)
    taking.execute(TAKE, [store.epoch])
    audited = [store.executions.audit(part, now_us=DUE, instance=None, decide=lambda at: None) for part in range(PARTS)]
    assert None not in audited
    assert sum(each.orphans for each in audited) == 0
