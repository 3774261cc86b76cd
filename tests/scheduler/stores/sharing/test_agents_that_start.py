"""An agent that shares a store starts while the server is away: it waits for it, as one that runs does."""

import logging
from urllib.parse import quote

import anyio
import psycopg
import pytest
from psycopg.pq import PGconn, Ping

from kit import PATIENCE, until
from scheduler import Scheduler, StoreUnavailable, StoreUnusable
from scheduler.stores.postgres import PostgresStore

JOBS = 12
MOMENTS = 10
"""Questions that an agent asks until it runs, and the first after that."""


def scheduler(store):
    begun = []
    s = Scheduler(store=store, poll="50ms")

    async def work(name):
        begun.append(name)

    s.register("work", work)
    for number in range(JOBS):
        s.add("work", "@every 1d", id=f"job {number}", args=(number,), start="now", on_conflict="keep")
    return s, begun


async def test_an_agent_that_shares_starts_once_the_server_is_there(shared_store, postgres_server, caplog):
    """It says what it waits for, once. It ended with an error."""
    postgres_server.stop()
    s, begun = scheduler(shared_store())
    with caplog.at_level(logging.WARNING, "scheduler"), anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            try:
                group.start_soon(s.run)
                await until(lambda: "cannot be opened yet" in caplog.text)
            finally:
                await anyio.to_thread.run_sync(postgres_server.start)
            await until(lambda: len(begun) == JOBS)
            s.stop()
    assert caplog.text.count("cannot be opened yet") < 5  # each trouble once: refused, starting up
    assert sorted(begun) == list(range(JOBS))


async def test_an_agent_that_waits_for_the_server_can_be_stopped(shared_store, postgres_server, caplog):
    """Then it ends with what it waited for."""
    postgres_server.stop()
    try:
        s, begun = scheduler(shared_store())
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(stop_once, s, lambda: "cannot be opened yet" in caplog.text)
                with pytest.raises(StoreUnavailable):
                    await s.run()
    finally:
        postgres_server.start()
    assert begun == []


async def stop_once(s, holds):
    await until(holds)
    s.stop()


async def test_an_agent_that_has_its_store_for_itself_ends_at_once(shared_store, postgres_server):
    """Somebody sees to it that it starts again, or has given a wrong address."""
    postgres_server.stop()
    try:
        with pytest.raises(StoreUnavailable):
            await scheduler(shared_store(shared=False))[0].run()
    finally:
        postgres_server.start()


async def test_run_once_ends_at_once(shared_store, postgres_server):
    """Who calls it waits for its outcomes."""
    postgres_server.stop()
    try:
        with pytest.raises(StoreUnavailable):
            await scheduler(shared_store())[0].run_once()
    finally:
        postgres_server.start()


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
@pytest.mark.parametrize("wrong", ["a password", "a database", "a user"])
async def test_what_the_server_refuses_for_good_is_an_error_at_once(postgres_server, postgres_schema, wrong, shared):
    """Waiting would not make it right."""
    role, database = f"{postgres_schema} with a password", "postgres"
    with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE \"{role}\" LOGIN PASSWORD 'right'")
    rules = postgres_server.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    try:
        rules.write_text(f'local all "{role}" scram-sha-256\n{before}')
        with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
            admin.execute("SELECT pg_reload_conf()")
        password = "wrong" if wrong == "a password" else "right"
        database = "missing" if wrong == "a database" else "postgres"
        user = "nobody" if wrong == "a user" else role
        host = quote(str(postgres_server.folder), safe="")
        store = PostgresStore(f"postgresql://{quote(user)}:{password}@{host}/{database}", shared=shared)
        with pytest.raises(StoreUnusable, match="it answers, and refuses us") as raised:
            await scheduler(store)[0].run()
        assert "wrong" not in str(raised.value)
    finally:
        rules.write_text(before)
        with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
            admin.execute("SELECT pg_reload_conf()")
            admin.execute(f'DROP ROLE "{role}"')


class Cut:
    """A store, or a part of one, whose every session on the server ends right before its verb of some number."""

    def __init__(self, part, server, left):
        self._part, self._server, self._left = part, server, left

    def __getattr__(self, name):
        found = getattr(self._part, name)
        if name == "sharing":
            return Cut(found, self._server, self._left)
        return self._counted(found) if callable(found) and name not in {"close", "leave"} else found

    def _counted(self, verb):
        def call(*args, **kwargs):
            self._count()
            answer = verb(*args, **kwargs)
            return self._rows(answer) if hasattr(answer, "__next__") else answer

        return call

    def _rows(self, rows):
        for chunk in rows:
            yield chunk
            self._count()

    def _count(self):
        self._left[0] -= 1
        if not self._left[0]:
            with psycopg.connect(self._server.dsn, autocommit=True) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                    " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                )


@pytest.mark.slow
async def test_an_agent_starts_though_it_loses_the_server_at_any_moment_of_it(shared_store, postgres_server):
    """Whatever it has read, it has each job once."""
    s, begun = scheduler(shared_store())
    async with s:
        await until(lambda: len(begun) == JOBS)
    for moment in range(1, MOMENTS + 1):
        left = [moment]
        s, again = scheduler(Cut(shared_store(), postgres_server, left))
        with anyio.fail_after(PATIENCE):
            async with s:
                assert len(s.jobs()) == JOBS
                s.get("job 3").run_now()
                await until(lambda again=again: again)
        assert again == [3]
        assert left[0] <= 0, "there was no such moment"


def test_a_server_says_itself_whether_it_takes_connections(postgres_server):
    """Without a password, and in no language: by that a wrong password is told from a server that starts."""
    assert PGconn.ping(postgres_server.dsn.encode()) == Ping.OK
    assert PGconn.ping(f"{postgres_server.dsn} dbname=missing".encode()) == Ping.OK
    postgres_server.stop()
    try:
        assert PGconn.ping(postgres_server.dsn.encode()) == Ping.NO_RESPONSE
    finally:
        postgres_server.start()
