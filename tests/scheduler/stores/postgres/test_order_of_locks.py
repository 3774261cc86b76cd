"""Rows are written in one order by all who share a store: two that have the same rows to write wait, and none fails."""

import threading

import pytest
from psycopg import connect, sql

from kit import wait_until
from scheduler.stores import Batch, JobPause, Placed, Planned, StoredJob, StoredState
from scheduler.stores._postgres.commits import commit

DUE = 2**52
IDS = ["b", "a"]

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'"


def job(id, schedule="@every 1m"):
    return StoredJob(id, "task", schedule)


@pytest.fixture
def store(agent, monkeypatch):
    """Open a store that waits for locked rows for as long as a test takes."""
    monkeypatch.setattr(commit, "BRIEFLY", sql.SQL("SELECT"))
    store = agent()
    store.commit(
        Batch(
            jobs={id: job(id) for id in IDS},
            states={id: StoredState(id, next_us=DUE) for id in IDS},
            planned={id: Planned(id, DUE, "@every 1m", 1) for id in IDS},
        )
    )
    return store


@pytest.mark.parametrize(
    ("batch", "table", "key"),
    [
        pytest.param(Batch(jobs=dict.fromkeys(IDS)), "job", "id", id="removed"),
        pytest.param(Batch(jobs=dict.fromkeys(IDS)), "job_state", "job_id", id="removed with its state"),
        pytest.param(Batch(finished=dict.fromkeys(IDS, "@every 1m")), "job", "id", id="finished"),
        pytest.param(Batch(jobs={id: job(id, "@every 2m") for id in IDS}), "job", "id", id="edited"),
        pytest.param(Batch(paused=dict.fromkeys(IDS, JobPause("by hand", None))), "job", "id", id="paused"),
        pytest.param(Batch(states={id: StoredState(id) for id in IDS}), "job_state", "job_id", id="state"),
        pytest.param(Batch(placed=[Placed(id, DUE, "it", 1, 1) for id in IDS]), "execution", "job_id", id="placed"),
        pytest.param(
            Batch(planned={id: Planned(id, DUE + 1, "@every 1m", 1) for id in IDS}), "execution", "job_id", id="planned"
        ),
    ],
)
def test_who_waits_for_the_first_row_has_no_other_yet(store, postgres_server, postgres_schema, batch, table, key):
    """Else who has that one and wants the other would wait too, until the server ends one of the two after a second."""
    with connect(postgres_server.dsn) as other, connect(postgres_server.dsn, autocommit=True) as hand:
        select = f"SELECT FROM {postgres_schema}.{table} WHERE {key} = %s FOR UPDATE NOWAIT"
        other.execute(select, ["a"])
        writer = threading.Thread(target=store.commit, args=[batch])
        writer.start()
        wait_until(lambda: hand.execute(WAITING).fetchone()[0])
        other.execute(select, ["b"])
        other.commit()
        writer.join()


def test_jobs_that_two_agents_add_at_once_are_added_in_one_order(store, postgres_server, postgres_schema):
    """Each adds what the other does, in an order of its own."""
    rows = {id: job(id) for id in ("d", "c")}
    with connect(postgres_server.dsn) as other, connect(postgres_server.dsn, autocommit=True) as hand:
        add = f"INSERT INTO {postgres_schema}.job (id, task, schedule) VALUES (%s, 'task', '@every 1m')"
        other.execute("SET lock_timeout = '1s'")
        other.execute(add, ["c"])
        writer = threading.Thread(target=store.commit, args=[Batch(jobs=rows, added=dict.fromkeys(rows, "keep"))])
        writer.start()
        wait_until(lambda: hand.execute(WAITING).fetchone()[0])
        other.execute(add, ["d"])
        other.commit()
        writer.join()
