"""What the tests of stores share: failures of the public suite that say what they compared; agents that may die."""

import json
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from psycopg import connect, sql

import agents_in_place
from kit import check_every_slot
from scheduler import Scheduler, current_run
from scheduler.stores.postgres import PostgresStore
from scheduler.stores.sqlite import SQLiteStore


class Agents:
    """Starts agents of crashing_agent.py, one at a time."""

    def __init__(self):
        program = Path(__file__).with_name("crashing_agent.py")
        self._server = subprocess.Popen(
            [sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def start(self, **config):
        """Return its process id."""
        self._server.stdin.write(json.dumps(config) + "\n")
        return int(self._server.stdout.readline())

    def wait(self):
        """Return its exit status; that of a signal is negative."""
        return int(self._server.stdout.readline())

    def live(self, **config):
        self.start(**config)
        return self.wait()

    def close(self):
        self._server.communicate()


@pytest.fixture(scope="session")
def agents():
    agents = Agents()
    yield agents
    agents.close()


class Place:
    """Where a store of some kind is, to be told to others, and a look into it."""

    def __init__(self, spec):
        self.spec = spec

    def store(self):
        options = dict(self.spec)
        return {"sqlite": SQLiteStore, "postgres": PostgresStore}[options.pop("kind")](**options)

    @contextmanager
    def opened(self):
        store = self.store()
        store.open(time.time_ns() // 1000, lambda: None)
        try:
            yield store
        finally:
            store.close()

    def content(self):
        """Return the rows of jobs and states by id, and the ticks by id, first due first."""
        with self.opened() as store:
            rows = {row.id: (row, state) for chunk in store.load() for row, state in chunk}
            ticks = defaultdict(list)
            for tick in reversed(store.history(limit=1_000_000)):
                ticks[tick.job_id].append(tick)
        return rows, ticks


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Name a place for each kind of store that outlives a process."""
    if request.param == "sqlite":
        return Place({"kind": "sqlite", "path": str(tmp_path / "jobs.sqlite")})
    server, schema = map(request.getfixturevalue, ("postgres_server", "postgres_schema"))
    return Place({"kind": "postgres", "dsn": server.dsn, "schema": schema})


@pytest.fixture
def shared_store(postgres_server, postgres_schema):
    """Make stores of agents that share one database, in which nothing is yet. None of them is open."""

    def shared_store(name=None, *, shared=True, **options):
        return PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=shared, name=name, **options)

    return shared_store


@pytest.fixture
def agent(shared_store):
    """Open stores of agents that share one place; called again, another one. They are closed with the test."""
    stores = []

    def agent(*, shared=True, **labels):
        store = shared_store(shared=shared, labels=labels)
        stores.append(store)
        store.open(0, lambda: None)
        return store

    yield agent
    for store in stores:
        store.close()


@pytest.fixture
def end_lease(postgres_server, postgres_schema):
    def end_lease(store):
        with connect(postgres_server.dsn, autocommit=True) as hand:
            hand.execute(
                f"UPDATE {postgres_schema}.lease SET until = now() - interval '1s' WHERE epoch = {store.epoch}"
            )

    return end_lease


@pytest.fixture
def by_hand(postgres_server, postgres_schema):
    """Run a statement as somebody with a client would; {} stands for the schema."""
    with connect(postgres_server.dsn, autocommit=True) as connection:
        yield lambda text, *args: connection.execute(
            sql.SQL(text).format(sql.Identifier(postgres_schema)), args or None
        )


@pytest.fixture
def fleet(postgres_server, postgres_schema):
    """Name a place of its own for agents of this process, with names and labels."""
    return agents_in_place.Place(postgres_server.dsn, postgres_schema)


SLOT = 50_000
"""Microseconds between two starts of the job of `ticking`."""


class Work(list):
    """A task that notes (job id, due in UTC microseconds, attempt) of each of its runs."""

    async def __call__(self):
        run = current_run()
        self.append((run.job_id, round(run.due.timestamp() * 1e6), run.attempt))

    def check(self, ticks):
        """See that these records, by job, know of every run, have none twice, and pass over no slot."""
        records = {(tick.job_id, tick.due_us): tick.attempt for found in ticks.values() for tick in found}
        assert [run for run in self if records.get(run[:2], 0) < run[2]] == []
        assert len(set(self)) == len(self)
        check_every_slot(ticks["ticks"], SLOT)


@pytest.fixture
def work():
    return Work()


@pytest.fixture
def ticking(work, events):
    """Run a scheduler over a store, with one job that starts every 50 ms."""

    @asynccontextmanager
    async def ticking(store):
        scheduler = Scheduler(store=store, blocked_after=None, poll="50ms", crash_floor="50ms")
        scheduler.register("work", work)
        scheduler.listen(events)
        async with scheduler:
            scheduler.add("work", "@every 50ms", id="ticks", on_conflict="keep")
            await scheduler.flush()
            yield scheduler

    return ticking
