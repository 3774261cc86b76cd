"""Executions in PostgreSQL while somebody is at their jobs: who plans waits and looks again, an audit passes by."""

import threading

import psycopg
import pytest

from kit import wait_until
from scheduler.stores import PARTS, Batch, Planned, StoredJob, StoredState
from scheduler.stores._memory.executions import part_of
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


GATE = """
ALTER TABLE pause RENAME TO paused;
CREATE FUNCTION gate() RETURNS SETOF paused LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN QUERY SELECT * FROM paused; END $$;
CREATE VIEW pause AS SELECT * FROM gate();
"""
"""Who looks at pauses waits until nobody holds that lock: in the middle of a statement, which has its snapshot."""


def test_an_audit_plans_nothing_for_a_job_that_was_taken_before_it_had_its_row(store, taking, postgres_server):
    """It was found broken by what stood there before, and is locked by nobody by then."""
    other = next(id for id in map(str, range(1_000)) if part_of(id) == part_of("a"))  # without a start, so it is asked
    store.commit(Batch(jobs={"a": StoredJob("a", "t", "@every 2m"), other: StoredJob(other, "t", "@every 1m")}))
    taking.execute(GATE)
    taking.execute("SELECT pg_advisory_lock(7)")
    taking.commit()
    asked, answers = [], {"now_us": DUE, "instance": None, "decide": lambda at: asked.append(at.id)}
    audit = threading.Thread(target=lambda: store.executions.audit(part_of("a"), **answers))
    with psycopg.connect(postgres_server.dsn, autocommit=True) as hand:
        audit.start()
        wait_until(lambda: hand.execute(WAITING).fetchone()[0])
    taking.execute(LOCK)
    taking.execute(TAKE, [store.epoch])
    taking.commit()
    taking.execute("SELECT pg_advisory_unlock(7)")
    audit.join()
    assert asked == [other]
