"""Threads in which a monitor took a database down, or stood still itself, re-enacted with ours on real servers.

| thread | here |
|---|---|
| nbari/pg_exporter#23: scrapes queue up behind a waiting ALTER | test_behind_a_waiting_alter_... |
| prometheus-community/postgres_exporter#1228: scrapes overlap, 53 connections | test_what_never_ends_... |
| open-telemetry/opentelemetry-collector-contrib#49351: it stalls for ever | test_who_stands_still_... |
| cherts/pgscv#329: the waiting AccessExclusiveLock blocks, too | test_behind_a_waiting_alter_... |
| innogames/igcollect#192: nothing bounds the wait for a lock | test_a_wait_for_a_lock_... |

In each our connections are counted on the server, and never exceed the limit.
"""

import threading
from contextlib import ExitStack, closing, contextmanager

import anyio
import psycopg
import pytest
from attrs import evolve

import postgres_versions
from kit import until
from postgres_fleets import OURS, fleet_of, fleet_on, most_of_ours, ours_on, probe, rows_on, server_of
from scheduler import MissedReason
from uptime_agent.postgres import CATALOGUE, PostgresTarget
from uptime_agent.postgres.contract import Failure, OutcomeKind, Scope

pytestmark = pytest.mark.slow

SIZE = probe("size", "SELECT pg_relation_size('public.t')", every=0.2)
OTHERS = [
    evolve(CATALOGUE[name], every=0.5) for name in ("activity", "blocking", "locks", "tables", "indexes", "database")
]
WAITS_OF_OURS = f"SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND {OURS}"
END_OURS = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OURS}"
LOCK_TIMEOUT = "canceling statement due to lock timeout (55P03)"


@pytest.fixture(scope="module")
def small():
    """Start a server with few places, and a table in it."""
    try:
        with postgres_versions.server(17, max_connections=12, max_wal_senders=0) as server:
            rows_on(server, "CREATE TABLE public.t (a int)")
            yield server
    except postgres_versions.Missing as error:
        pytest.skip(str(error))


@contextmanager
def waiting_alter(server):
    """Hold a reader of the table, and an ALTER TABLE that waits for it; give what says whether it still waits."""
    with ExitStack() as stack:
        reader, alter, look = (stack.enter_context(closing(psycopg.connect(server.dsn))) for _ in range(3))
        look.autocommit = True
        reader.execute("SELECT count(*) FROM public.t")

        def change():
            alter.execute("ALTER TABLE public.t ADD COLUMN IF NOT EXISTS b int")
            alter.rollback()

        thread = threading.Thread(target=change, daemon=True)
        thread.start()
        asked = "SELECT count(*) FROM pg_locks WHERE pid = %s AND NOT granted"

        def waits():
            return bool(look.execute(asked, (alter.info.backend_pid,)).fetchone()[0])

        while not waits():
            pass
        try:
            yield waits, reader
        finally:
            reader.rollback()
            thread.join()


def failed_of(fleet, failure):
    """Return the outcomes with that failure."""
    return [each for each in fleet.store.outcomes if each.failure is failure]


async def test_behind_a_waiting_alter_nothing_of_ours_queues_up(small):
    """Who wants the table waits 200 ms, over and over, on one connection; who asks for statistics is not held up."""
    async with fleet_on(small, SIZE, *OTHERS, limit=2) as fleet:
        with waiting_alter(small) as (waits, reader):
            before = len(fleet.store.outcomes)
            assert await most_of_ours(small, lambda: len(failed_of(fleet, Failure.TIMEOUT)) >= 5) <= 2
            assert waits()
            reader.rollback()
            await until(lambda: not waits())
        during = fleet.store.outcomes[before:]
        stored = len(fleet.store.of("size"))
        await until(lambda: OutcomeKind.STORED in {each.kind for each in fleet.store.of("size")[stored:]})
    assert {each.reason for each in failed_of(fleet, Failure.TIMEOUT)} == {LOCK_TIMEOUT}
    kinds = {each.probe: each.kind for each in during if each.kind is not OutcomeKind.SKIPPED and each.probe != "size"}
    assert set(kinds) >= {each.name for each in OTHERS}
    assert set(kinds.values()) <= {OutcomeKind.STORED, OutcomeKind.PARTIAL}


async def test_what_never_ends_is_not_begun_again_beside_itself(small):
    """Ten times due, and on one connection: a run goes on, and the ticks meanwhile are skipped and say so."""
    endless = [probe(f"endless{n}", "SELECT 1 FROM pg_sleep(60)", timeout=10, is_cheap=n > 1) for n in range(3)]
    async with fleet_on(small, *endless, limit=3) as fleet:
        most = await most_of_ours(small, lambda: len(fleet.store.of("endless0")) >= 10)
    assert most <= 3
    assert {each.kind for each in fleet.store.of("endless0")[:10]} == {OutcomeKind.SKIPPED}
    assert "overlap" in {each.reason for each in fleet.store.of("endless0")}
    await until(lambda: ours_on(small) == 0)


async def test_who_stands_still_is_given_up_and_asked_again_when_it_goes_on(small):
    """One backend freezes while it answers, then the whole server: neither holds us for ever, or costs a connection."""
    async with fleet_on(small, probe(timeout=0.2, every=0.2), limit=2) as fleet:
        await until(lambda: fleet.store.samples)
        (backend,) = (pid for (pid,) in rows_on(small, f"SELECT pid FROM pg_stat_activity WHERE {OURS}"))
        with small.frozen(backend):
            await until(lambda: failed_of(fleet, Failure.TIMEOUT))
            stored = len(fleet.store.samples)
            assert await most_of_ours(small, lambda: len(fleet.store.samples) > stored) <= 2
        await until(lambda: ours_on(small) == 1)
        backends = [pid for (pid,) in rows_on(small, f"SELECT pid FROM pg_stat_activity WHERE {OURS}")]
        with small.frozen(small.pid, *backends):
            failed = len(failed_of(fleet, Failure.TIMEOUT))
            await until(lambda: len(failed_of(fleet, Failure.TIMEOUT)) > failed)
            assert fleet.members["main"].reach.connections.used <= 2
        stored = len(fleet.store.samples)
        assert await most_of_ours(small, lambda: len(fleet.store.samples) > stored) <= 2
    await until(lambda: ours_on(small) == 0)


async def test_a_wait_for_a_lock_waits_no_longer_than_lock_timeout(small):
    """The server ends it, and says why; it is set for each statement, whatever the role or the database says."""
    asked = probe("setting", "SELECT setting FROM pg_settings WHERE name = 'lock_timeout'", every=0.3)
    rows_on(small, "ALTER ROLE postgres SET lock_timeout = '1h'")
    try:
        with psycopg.connect(small.dsn) as holder:
            holder.execute("LOCK TABLE public.t IN ACCESS EXCLUSIVE MODE")
            async with fleet_on(small, SIZE, asked, limit=1) as fleet:
                assert await most_of_ours(small, lambda: len(failed_of(fleet, Failure.TIMEOUT)) >= 3) <= 1
    finally:
        rows_on(small, "ALTER ROLE postgres RESET lock_timeout")
    assert {each.reason for each in failed_of(fleet, Failure.TIMEOUT)} == {LOCK_TIMEOUT}
    assert {sample.rows for sample in fleet.store.samples if sample.probe.name == "setting"} == {((200,),)}


async def test_servers_in_trouble_leave_the_one_that_is_well_alone(small, postgres_of):
    """One frozen, one full, one with a waiting ALTER: the fourth fails in nothing. Nothing stays behind."""
    frozen, full, well = (postgres_of(major) for major in (15, 16, 18))
    rows_on(full, "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN")
    servers = {"frozen": frozen, "full": full, "altered": small, "well": well}
    targets = [
        PostgresTarget(name=name, limit=2, server=server_of(each, user="guest" if name == "full" else "postgres"))
        for name, each in servers.items()
    ]
    size = evolve(SIZE, variants=(evolve(SIZE.variants[0], sql="SELECT pg_relation_size(to_regclass('public.t'))"),))
    each_one = probe("each", every=0.5, scope=Scope.DATABASE, timeout=1.5)

    def of(name, failure=None):
        return [each for each in fleet.store.outcomes if each.target == name and failure in {None, each.failure}]

    def stored():
        """Return what was stored of what: a connection to each database has been made."""
        return {(each.target, each.probe) for each in fleet.store.outcomes if each.kind is OutcomeKind.STORED}

    async with fleet_of(targets, size, each_one, evolve(CATALOGUE["node_role"], every=0.5, timeout=1.5)) as fleet:
        await until(lambda: stored() >= {(name, probe) for name in servers for probe in ("size", "each")})
        rows_on(full, "ALTER ROLE guest CONNECTION LIMIT 0")
        backends = [pid for (pid,) in rows_on(frozen, f"SELECT pid FROM pg_stat_activity WHERE {OURS}")]
        with waiting_alter(small), frozen.frozen(frozen.pid, *backends):
            began = len(of("well"))
            while not of("full", Failure.CONNECT):
                await anyio.to_thread.run_sync(rows_on, full, END_OURS)
            await until(lambda: of("frozen", Failure.TIMEOUT) or of("frozen", Failure.CONNECT))
            await until(lambda: len(of("altered", Failure.TIMEOUT)) >= 5 and len(of("well")) >= began + 20)
            for server in (full, small, well):
                assert await anyio.to_thread.run_sync(ours_on, server) <= 2
            assert fleet.members["frozen"].reach.connections.used <= 2
        rows_on(full, "ALTER ROLE guest CONNECTION LIMIT -1")
        assert {each.failure for each in of("well")} == {None}
        assert {each.reason for each in of("well")} <= {None, *(reason.value for reason in MissedReason)}
        assert any("53300" in each.reason for each in of("full", Failure.CONNECT))
        assert {each.reason for each in of("altered", Failure.TIMEOUT)} == {LOCK_TIMEOUT}
    rows_on(full, "DROP ROLE guest")
    await until(lambda: {name: ours_on(server) for name, server in servers.items()} == dict.fromkeys(servers, 0))
