"""Several agents take executions from one PostgreSQL: a job is with one of them, and two audits share the work."""

import pytest
from psycopg import connect

from scheduler.stores import (
    PARTS,
    Batch,
    NotTaken,
    Planned,
    StoredJob,
    StoredState,
    StoreTakenOver,
    Taken,
)

DUE = 60_000_000
EVERY = "@every 1m"


@pytest.fixture
def hand(postgres_server, postgres_schema):
    with connect(postgres_server.dsn) as hand:
        hand.execute(f"SET search_path TO {postgres_schema}")
        hand.commit()
        yield hand


def planned(id, due_us=DUE):
    return Planned(id, due_us, EVERY, 0)


def put(store, *ids, due_us=DUE):
    store.commit(
        Batch(
            jobs={id: StoredJob(id, "task", EVERY) for id in ids},
            states={id: StoredState(id, next_us=DUE) for id in ids},
            planned={id: planned(id, due_us) for id in ids},
        )
    )


def test_a_job_is_with_one_agent(agent):
    """Neither its execution nor its next one is given to another while that agent lives."""
    one, two = agent(), agent()
    put(one, "a")
    assert isinstance(one.executions.take([("a", DUE)])[0], Taken)
    one.commit(Batch(planned={"a": planned("a", 2 * DUE)}))
    assert two.executions.take([("a", DUE), ("a", 2 * DUE)]) == [NotTaken.RUNNING, NotTaken.RUNNING]
    one.commit(Batch(released={"a": DUE}))
    assert two.executions.take([("a", DUE)]) == [NotTaken.DONE]
    assert isinstance(two.executions.take([("a", 2 * DUE)])[0], Taken)


def test_a_job_of_a_buried_agent_is_free(agent, hand):
    """Nothing of that agent is taken or released any more."""
    one, two = agent(), agent()
    put(one, "a")
    one.executions.take([("a", DUE)])
    hand.execute("UPDATE lease SET until = now() - interval '1s' WHERE epoch = %s", [one.epoch])
    hand.commit()
    assert two.sharing.bury([one.epoch]) == [one.epoch]
    assert isinstance(two.executions.take([("a", DUE)])[0], Taken)
    with pytest.raises(StoreTakenOver):
        one.commit(Batch(released={"a": DUE}))


def test_of_two_audits_at_once_one_is_at_a_part(agent, hand):
    """The other one does not wait: it goes on with the next part."""
    store = agent()
    put(store, *(f"job-{number}" for number in range(100)), due_us=None)
    name = store.executions._name
    hand.execute("SELECT pg_advisory_xact_lock(hashtext(%s), 3)", [name])
    found = audit(store)
    assert [part for part, audited in enumerate(found) if audited is None] == [3]
    hand.rollback()
    assert store.executions.audit(3, now_us=1, instance="i", decide=plan) is not None
    assert len(store.executions.waiting("pending", before_us=2 * DUE)) == 100


def test_an_audit_passes_over_a_job_that_is_being_written(agent, hand):
    """Whoever writes it sees to it, and so does the next audit."""
    store = agent()
    put(store, "a", "b", due_us=None)
    hand.execute("SELECT FROM job WHERE id = 'a' FOR UPDATE")
    found = audit(store)
    assert [row.job_id for part in found for row in part.planned] == ["b"]
    hand.rollback()
    found = audit(store)
    assert [row.job_id for part in found for row in part.planned] == ["a"]


def test_a_whole_store_is_audited_in_statements_that_do_not_grow(agent, monkeypatch):
    """One query finds all that is broken in a part."""
    store = agent()
    counts = []
    for jobs in (10, 900):
        put(store, *(f"job-{number}" for number in range(jobs)), due_us=None)
        statements = count_statements(store, monkeypatch)
        audit(store)
        counts.append(len(statements))
        store.commit(Batch(jobs=dict.fromkeys(f"job-{number}" for number in range(jobs))))
    assert counts[1] <= counts[0] + 2 * PARTS  # parts in which there was nothing to plan
    assert len(store.executions.waiting("pending", before_us=2 * DUE)) == 900


def audit(store):
    return [store.executions.audit(part, now_us=1, instance="i", decide=plan) for part in range(PARTS)]


def count_statements(store, monkeypatch):
    """Note from now on each statement of its connection."""
    seen = []
    with store.transaction() as connection:
        execute = type(connection).execute

    def noted(connection, *args, **how):
        seen.append(args)
        return execute(connection, *args, **how)

    monkeypatch.setattr(type(connection), "execute", noted)
    return seen


def plan(at):
    return planned(at.id) if at.job else Planned(at.id, None, "", 0)
