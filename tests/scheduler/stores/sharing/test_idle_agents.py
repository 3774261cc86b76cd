"""What an agent asks of PostgreSQL while nothing happens: counts of statements, whatever the machine does meanwhile."""

from datetime import UTC, datetime, timedelta

import anyio
import pytest
from psycopg import connect

from kit import PATIENCE, until
from schedule import Every
from scheduler import Scheduler
from scheduler._fleet.lease import lease
from scheduler._memory import polling
from scheduler.stores._postgres.connection import StoreConnection
from scheduler.stores.postgres import PostgresStore

FAST = 0.02
"""Seconds for what takes one otherwise: renewals, and looks at what has changed."""

ASKED = 7
"""Statements by which it is asked what has changed."""


@pytest.fixture
def statements(monkeypatch):
    """All that is said to PostgreSQL, with the connection."""
    said = []
    execute = StoreConnection.execute

    def noted(connection, query, *args, **kwargs):
        said.append((connection, query if isinstance(query, str) else query.as_string()))
        return execute(connection, query, *args, **kwargs)

    monkeypatch.setattr(StoreConnection, "execute", noted)
    return said


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(lease, "RENEWAL_S", FAST)
    monkeypatch.setattr(polling, "TOLD", FAST)


@pytest.fixture
def agent(postgres_server, postgres_schema):
    """Make schedulers whose jobs are due tomorrow."""

    def agent(name=None, *, shared=True):
        store = PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=shared, name=name)
        s = Scheduler(store=store, poll=FAST)

        @s.task("work")
        async def work():
            """It is never due."""

        tomorrow = datetime.now(UTC) + timedelta(days=1)
        s.add_many("work", [(f"job {n}", Every("1d")) for n in range(20)], start=tomorrow, on_conflict="keep")
        return s

    return agent


def renewals(statements):
    return sum(query.startswith("WITH renewed") for _, query in statements)


async def quiet(statements):
    """Wait until nothing but renewals has been said for a while."""
    with anyio.fail_after(PATIENCE):
        while True:
            since = len(statements)
            await until(lambda since=since: renewals(statements[since:]) > 10)
            if renewals(statements[since:]) == len(statements) - since:
                return


async def test_an_idle_agent_says_one_statement_at_a_time(agent, fast, statements):
    """Two agents renew their leases, which tells them that there is no news. Each also asked what it was, in seven."""
    async with agent(), agent():
        await quiet(statements)
        since = len(statements)
        await until(lambda: renewals(statements[since:]) > 100)
        others = [query for _, query in statements[since:] if not query.startswith("WITH renewed")]
        assert len(others) <= 2 + 2, others  # each has begun to listen for the other anew, at most


async def test_an_agent_alone_says_no_more_than_it_did(agent, statements):
    """It has nobody who says that there is news, so it asks."""
    async with agent(shared=False):
        await until(lambda: sum("WITH page AS" in query for _, query in statements) > 20)
        asks = sum("pg_current_snapshot" in query for _, query in statements[-5 * ASKED :])
        assert asks >= 5


async def test_what_is_changed_by_hand_is_seen_without_a_word(agent, fast, postgres_server, postgres_schema):
    """NOTIFY is lost behind a pooler. The renewal of the lease says that there is news."""
    s = agent()
    async with s:
        await s.flush()
        s._memory.store._listener.close()
        with connect(postgres_server.dsn, autocommit=True) as hand:
            hand.execute(f"UPDATE {postgres_schema}.job SET name = 'by hand' WHERE id = 'job 3'")
            hand.execute(f"INSERT INTO {postgres_schema}.pause (scope) VALUES ('tag:x')")
        await until(lambda: s.get("job 3").name == "by hand")


async def test_what_another_asks_for_is_done_without_a_word(agent, fast):
    """Each asks the other for runs of its jobs, and waits for what becomes of them."""
    async with agent("one") as one, agent("two") as two:
        await until(lambda: len({job.agent for job in one.jobs()}) > 1)
        for s in (one, two):
            s._memory.store._listener.close()
        for job in one.jobs():
            with anyio.fail_after(PATIENCE):
                assert (await job.run_now()).outcome.value == "succeeded"
