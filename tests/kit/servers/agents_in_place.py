"""Agents in one process that share a store in PostgreSQL, each with its name and its labels."""

from contextlib import asynccontextmanager

from psycopg import connect

from kit import until
from scheduler import Scheduler, current_run
from scheduler.stores.memory import MemoryStore
from scheduler.stores.postgres import PostgresStore
from scheduler.stores.sqlite import SQLiteStore


class Place:
    """A store in a schema of its own: agents with names and labels, and which of them has run what."""

    def __init__(self, dsn, schema):
        self.dsn = dsn
        self.schema = schema
        self.runs = []

    def store(self, name="visitor", **labels):
        return PostgresStore(self.dsn, schema=self.schema, shared=True, name=name, labels=labels)

    def store_of(self, kind, folder):
        """A store in which nobody else is, of that kind; for what is not stored, or in a queue, one that is shared."""
        return {
            "none": lambda: None,
            "memory": MemoryStore,
            "sqlite": lambda: SQLiteStore(folder / "jobs"),
            "postgres": lambda: PostgresStore(self.dsn, schema=self.schema),
            "not stored": self.store,
            "queue": self.store,
        }[kind]()

    def works_on(self, name):
        """Return a task that notes its runs as those of that agent."""

        async def work():
            run = current_run()
            self.runs.append((name, run.job_id, run.due))

        return work

    def scheduler(self, name, store=None, **labels):
        s = Scheduler(store=store or self.store(name, **labels), poll="50ms")
        s.register("work", self.works_on(name))
        return s

    @asynccontextmanager
    async def agent(self, name, **labels):
        async with self.scheduler(name, **labels) as s:
            yield s
            s.stop(grace=0)

    def execute(self, statement, *asked):
        with connect(self.dsn, autocommit=True) as hand:
            hand.execute(f"SET search_path TO {self.schema}")
            return hand.execute(statement, asked or None)

    def runners(self):
        return {name for name, *_ in self.runs}

    async def all_run(self, ids, since=None):
        """Wait until each of these has run since now, or since so many runs. Return on which agents."""
        since = len(self.runs) if since is None else since
        await until(lambda: {id for _, id, _ in self.runs[since:]} >= set(ids))
        return {name for name, id, _ in self.runs[since:] if id in ids}
