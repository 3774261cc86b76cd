"""What the tests of the probe scheduler share: a fleet on a real server, and a store in memory that can be troubled."""

import threading
from contextlib import asynccontextmanager

import anyio
import psycopg

from kit import PATIENCE
from scheduler import Scheduler
from timerqueue import SystemClock
from uptime_agent.checks import Resolver
from uptime_agent.libpq import Server
from uptime_agent.postgres.contract import Column, OutcomeKind, Probe, Scope, StoreUnavailable, Type, Variant
from uptime_agent.postgres.fleet import Fleet
from uptime_agent.postgres.target import PostgresTarget
from uptime_agent.tables.rows import TableRow

OURS = "application_name = 'timerqueue'"
NAME = "db.example"
"""A name of the server that listens, in its certificate."""


class MemoryMetrics:
    """A metric store in memory. While `is_down`, it cannot be reached; `last_at` is when each last sample was due."""

    def __init__(self, last_at=None):
        self.samples, self.outcomes, self.is_down, self.is_closed = [], [], False, False
        self.last_at = last_at or {}
        self.threads = set()

    def open(self):
        """Do nothing."""

    def write(self, samples, outcomes):
        """Keep them, unless it is down."""
        self.threads.add(threading.get_ident())
        if self.is_down:
            raise StoreUnavailable("down")
        self.samples += samples
        self.outcomes += outcomes

    def newest(self, target, probe, database):
        """Know nothing."""

    def last(self, target, probe):
        """Say what the test has said."""
        return self.last_at.get((target, probe))

    def maintain(self, now):
        """Do nothing."""

    def close(self):
        """Take note."""
        self.is_closed = True

    def of(self, probe, database=...):
        """Return the outcomes of a probe."""
        return [each for each in self.outcomes if each.probe == probe and database in (..., each.database)]

    def asked(self, probe=...):
        """Return the outcomes of what was asked of a server. A busy machine may skip some before, and some after."""
        skipped = OutcomeKind.SKIPPED
        return [each for each in self.outcomes if probe in (..., each.probe) and each.kind is not skipped]


def probe(name="one", sql="SELECT 1", *, every=0.1, scope=Scope.SERVER, **options):
    """Make a probe of one column."""
    columns = options.pop("columns", (Column("value", Type.BIGINT),))
    return Probe(
        name=name, purpose="a test", scope=scope, every=every, columns=columns, variants=(Variant(sql),), **options
    )


def server_of(postgres, **options):
    """Say where a test server is."""
    return Server(**{"host": str(postgres.folder), "user": "postgres"} | options)


@asynccontextmanager
async def fleet_of(targets, *probes, store=None, hosts=()):
    """Run these probes on these targets for as long as the block lasts."""
    store = MemoryMetrics() if store is None else store
    clock = SystemClock()
    scheduler = Scheduler(clock=clock)
    known = {each.name: each for each in probes}
    fleet = Fleet(targets, known, scheduler, store=store, resolver=Resolver(dict(hosts)), clock=clock)
    fleet.store, fleet.scheduler = store, scheduler
    with anyio.fail_after(2 * PATIENCE):  # of a whole test, in which each wait has patience of its own
        async with anyio.create_task_group() as group, fleet.running():
            group.start_soon(scheduler.run)
            yield fleet
            scheduler.stop(0)


@asynccontextmanager
async def fleet_on(postgres, *probes, store=None, name="main", server=None, hosts=(), **options):
    """Run these probes on a server for as long as the block lasts."""
    target = PostgresTarget(name=name, server=server or server_of(postgres), **options)
    async with fleet_of([target], *probes, store=store, hosts=hosts) as fleet:
        yield fleet


def rows_on(postgres, sql, *, dbname="postgres"):
    """Ask a server as somebody else would."""
    with psycopg.connect(postgres.dsn, dbname=dbname, autocommit=True) as connection:
        found = connection.execute(sql)
        return found.fetchall() if found.description else []


def ours_on(postgres):
    """Count our connections as the server does."""
    return rows_on(postgres, f"SELECT count(*) FROM pg_stat_activity WHERE {OURS}")[0][0]


async def most_of_ours(postgres, enough):
    """Count our connections as the server does until that is enough; return the most."""
    most = 0
    while not enough():
        most = max(most, await anyio.to_thread.run_sync(ours_on, postgres))
    return most


def server_row(name, **values):
    """A row of the table of servers as it is read."""
    keys = "password_env password_file cluster group databases exclude most_databases connection_limit wait budget tags"
    return TableRow("servers", name, dict.fromkeys(keys.split()) | {"dsn": f"host={name}", "is_enabled": True} | values)
