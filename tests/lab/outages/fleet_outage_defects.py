"""Defects for the judge to find when a server has a bad day: each takes away what a fleet then relies on.

Some stand in the tables, where each version of the source meets them alike.
"""

import anyio

from scheduler import Scheduler
from scheduler._fleet.lease import lease_guard
from scheduler.stores import postgres
from scheduler.stores._postgres import connection as connections
from scheduler.stores._postgres.sharing import ends


def outage():
    """The server's clock alone says when leases end, though nobody could renew one while the server was away."""
    ours = ends.Ends.look

    def look(self, look, leases):
        leases = list(leases)
        ours(self, look, leases)
        self._ends = {agent: (until_us, look.answered + left) for agent, until_us, left in leases}
        return {agent: left for agent, _, left in leases}

    ends.Ends.look = look


def doubt():
    """An agent that has once found its store silent begins nothing any more, and goes on to renew its lease."""
    ours = lease_guard.LeaseGuard.dispel

    def dispel(self, doubts):
        if not self.doubts:
            ours(self, doubts)

    lease_guard.LeaseGuard.dispel = dispel


def local():
    """A commit does not wait for a synchronous standby."""
    connections.DEFAULTS["options"] = "-csynchronous_commit=local"


def hoard():
    """A worker with room for one run takes as much as those with more, and lets it wait in its own line."""
    make, register = Scheduler.__init__, Scheduler.register

    def with_room_for_all(self, limit=500, limits=None, **options):
        make(self, 1_000 if limit == 1 else limit, limits, **options)
        self.turns = anyio.CapacityLimiter(limit)

    def register_in_turn(self, name, func, **options):
        async def in_turn(*args):
            async with self.turns:
                await func(*args)

        register(self, name, in_turn, **options)

    Scheduler.__init__, Scheduler.register = with_room_for_all, register_in_turn
    Scheduler.turns = None


def in_the_tables(name, statements):
    """Return a defect that these statements make, the first time that an agent opens the store.

    An agent that joins again while a defect has locks would wait for these.
    """

    def plant():
        ours = postgres.prepare

        def prepare(connection, schema):
            ours(connection, schema)
            with connection.transaction_as(""):
                connection.execute("SELECT pg_advisory_xact_lock(4711)")
                planted = f'"{schema}".planted_{name}'
                ((found,),) = connection.execute(f"SELECT to_regclass('{planted}') IS NOT NULL").fetchall()
                if not found:
                    connection.execute(statements.replace("SCHEMA", f'"{schema}"'))
                    connection.execute(f"CREATE TABLE {planted} ()")

        postgres.prepare = prepare

    return plant


twins = in_the_tables(
    "twins", "ALTER TABLE SCHEMA.agent ALTER incarnation SET DEFAULT '00000000-0000-0000-0000-000000000000'"
)
"""All agents have the same incarnation: with one number two of them are one."""

identity = in_the_tables("identity", "ALTER TABLE SCHEMA.change REPLICA IDENTITY NOTHING")
"""What has been changed cannot be forgotten while it is published."""

bulk = in_the_tables(
    "bulk",
    """
    CREATE FUNCTION SCHEMA.read_all() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
        IF (SELECT count(*) FROM changed) > 100 THEN
            LOCK TABLE SCHEMA.tick IN EXCLUSIVE MODE;
            PERFORM pg_sleep(4);
        END IF;
        RETURN NULL;
    END $body$;
    CREATE TRIGGER bulk AFTER UPDATE ON SCHEMA.job REFERENCING NEW TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION SCHEMA.read_all()
""",
)
"""Commits wait until an edit of many rows has been read."""

snapshot = in_the_tables(
    "snapshot",
    """
    CREATE FUNCTION SCHEMA.wait_for_all() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
        IF EXISTS (SELECT FROM pg_stat_activity WHERE state LIKE 'idle in%' AND xact_start < now() - interval '5 s')
        THEN
            PERFORM pg_sleep(1.5);
        END IF;
        RETURN NULL;
    END $body$;
    CREATE TRIGGER snapshot BEFORE INSERT ON SCHEMA.tick
        FOR EACH STATEMENT EXECUTE FUNCTION SCHEMA.wait_for_all()
""",
)
"""Commits wait for whoever has had a transaction open for some seconds."""

OUTAGES = {
    "outage": outage,
    "doubt": doubt,
    "local": local,
    "hoard": hoard,
    "twins": twins,
    "identity": identity,
    "bulk": bulk,
    "snapshot": snapshot,
}
"""Which kind of trouble shows it: outages, starve, promote_sync, narrow, promote_async, publish, bulk_edit,
hold_snapshots.
"""
