"""What pgEdge's collector does wrong, and ours does not: those of its defects that no other test here has shown yet.

tests/parity/pgedge.toml names the test for each of them, and for each scenario of theirs.
"""

import logging
import socket
from contextlib import closing

import psycopg
import pytest
from anyio.to_thread import run_sync
from attrs import evolve

import postgres_versions
from kit import until
from postgres_fleets import OURS, fleet_on, ours_on, probe, rows_on, server_of
from uptime_agent.libpq import Server
from uptime_agent.postgres import fleet as fleet_module
from uptime_agent.postgres.contract import Failure, OutcomeKind, Scope
from uptime_agent.postgres.jobs import SPREAD_S, first_start, job_id
from uptime_agent.postgres.reach.reach import CUT_OFF

pytestmark = pytest.mark.slow

BACKENDS = f"SELECT pid FROM pg_stat_activity WHERE {OURS}"


def failures_of(fleet):
    """Return the outcomes that are failures."""
    return [each for each in fleet.store.outcomes if each.failure is not None]


@pytest.fixture(scope="module")
def shops(postgres_of):
    """Make three databases on a server; they are gone after the tests."""
    server, names = postgres_of(17), ("shop_a", "shop_b", "shop_c")
    for name in names:
        rows_on(server, f"CREATE DATABASE {name}")
    yield server
    for name in names:
        rows_on(server, f"DROP DATABASE {name} WITH (FORCE)")


def test_defect_5_targets_begin_at_different_instants_and_costly_probes_by_themselves():
    """Cheap probes of one target begin together, for they share a connection; those of a fleet are spread."""
    cheap, costly = probe("cheap", every=300), probe("costly", every=300, is_cheap=False)
    starts = {first_start(f"db{n}", cheap, 300.0, None, 0.0).timestamp() for n in range(100)}
    assert len(starts) == 100
    assert max(starts) <= SPREAD_S
    assert first_start("db1", evolve(cheap, name="other"), 300.0, None, 0.0) == first_start(
        "db1", cheap, 300.0, None, 0.0
    )
    assert first_start("db1", costly, 300.0, None, 0.0) > first_start("db1", cheap, 300.0, None, 0.0)


async def test_defect_6_a_timeout_in_one_database_costs_the_others_nothing(shops):
    """Rows of those that are done are kept, and those behind it are asked. A run that is cut off keeps what it has."""
    slow = "SELECT 1 FROM pg_sleep(CASE current_database() WHEN 'shop_b' THEN 60 ELSE 0 END)"
    each = probe("each", slow, every=2, scope=Scope.DATABASE, timeout=0.8)
    endless = evolve(each, name="endless", timeout=60.0, is_cheap=False)

    def asked(database):
        found = fleet.store.of("each", database)
        return [each for each in found if each.kind is not OutcomeKind.SKIPPED]

    async with fleet_on(shops, each, endless, include=("shop_*",), limit=2) as fleet:
        await until(lambda: all(asked(name) for name in ("shop_a", "shop_b", "shop_c")))
        await until(lambda: len(fleet.store.of("endless")) >= 2)
        fleet.scheduler.get(job_id("main", "endless")).remove()
        await until(lambda: fleet.store.of("endless", "shop_b"))
    ends = {name: (asked(name)[0].kind, asked(name)[0].failure) for name in ("shop_a", "shop_b", "shop_c")}
    assert ends["shop_b"] == (OutcomeKind.FAILED, Failure.TIMEOUT)
    assert ends["shop_a"] == ends["shop_c"] == (OutcomeKind.STORED, None)
    assert fleet.store.of("endless", "shop_b")[-1].reason == CUT_OFF
    assert OutcomeKind.STORED in {each.kind for each in fleet.store.of("endless", "shop_a")}


async def test_defect_8_a_timeout_while_connecting_is_a_failure_to_connect_and_told_until_it_is_over(listening, caplog):
    """Somebody listens and says nothing, which is told once; then the server itself is there, which is told too."""
    caplog.set_level(logging.WARNING, "uptime_agent.postgres")
    with closing(socket.create_server(("127.0.0.2", listening.port))) as silent:
        server = Server(host="db.test", port=listening.port, user="postgres")
        async with fleet_on(listening, probe(every=0.3), server=server, hosts={"db.test": ["127.0.0.2"]}) as fleet:
            connections = fleet.members["main"].reach.connections
            connections._dialler = evolve(connections._dialler, within=0.2)
            await until(lambda: failures_of(fleet))
            connections._dialler.resolver.follow({"db.test": ["127.0.0.1"]})
            connections._dialler = evolve(connections._dialler, within=5.0)
            silent.accept()[0].close()
            await until(lambda: fleet.store.samples)
    first = failures_of(fleet)[0]
    assert (first.failure, "does not answer within" in first.reason) == (Failure.CONNECT, True)
    told = [each.message for each in caplog.records]
    assert len([text for text in told if "the server fails (connect)" in text]) == 1
    assert "main: the server works again" in told


async def test_defect_9_an_extension_that_comes_or_goes_is_seen_at_the_next_run(shops):
    """Nothing of what a server has is remembered for ever."""
    asked = probe(
        "calls", "SELECT count(*) FROM @extschema@.pg_stat_statements", extension="pg_stat_statements", every=0.2
    )
    async with fleet_on(shops, asked) as fleet:
        await until(lambda: fleet.store.outcomes)
        assert fleet.store.outcomes[0].reason.startswith("missing extension")
        rows_on(shops, "CREATE EXTENSION pg_stat_statements")
        await until(lambda: fleet.store.samples)
        rows_on(shops, "DROP EXTENSION pg_stat_statements")
        known = len(fleet.store.outcomes)
        await until(lambda: OutcomeKind.SKIPPED in {each.kind for each in fleet.store.outcomes[known:]})


async def test_defect_11_an_error_closes_no_connection(shops):
    """Queries that fail, and are told, leave the connection what it is."""
    async with fleet_on(shops, probe("good"), probe("bad", "SELECT 1/0"), include=("postgres",)) as fleet:
        await until(lambda: fleet.store.of("bad"))
        before = rows_on(shops, BACKENDS)
        await until(lambda: len(fleet.store.of("bad")) >= 5)
        assert rows_on(shops, BACKENDS) == before
    assert len(before) == 1


async def test_defect_19_a_database_that_we_may_not_connect_to_is_not_asked(shops):
    """As a cloud's own one: it is left out of the list, and no error comes back every time."""
    rows_on(shops, "CREATE ROLE watcher LOGIN")
    rows_on(shops, "REVOKE CONNECT ON DATABASE shop_b FROM PUBLIC")
    try:
        each = probe("each", scope=Scope.DATABASE, every=0.3)
        async with fleet_on(shops, each, server=server_of(shops, user="watcher"), include=("shop_*",)) as fleet:
            await until(lambda: len(fleet.store.outcomes) >= 6)
    finally:
        rows_on(shops, "GRANT CONNECT ON DATABASE shop_b TO PUBLIC")
        rows_on(shops, "DROP ROLE watcher")
    assert {outcome.database for outcome in fleet.store.outcomes} == {"shop_a", "shop_c"}
    assert {outcome.failure for outcome in fleet.store.outcomes} == {None}


async def test_defect_21_the_end_waits_for_nobody_for_ever(monkeypatch):
    """A server that stands still keeps its connections; the fleet ends all the same, and has told of each run."""
    monkeypatch.setattr(fleet_module, "FLUSH_WITHIN", 0.3)
    try:
        server = postgres_versions.server(17)
    except postgres_versions.Missing as error:
        pytest.skip(str(error))
    with server:
        async with fleet_on(server, probe(every=0.3, timeout=30.0)) as fleet:
            await until(lambda: fleet.store.samples)
            (pid,) = (pid for (pid,) in rows_on(server, BACKENDS))
            frozen = server.frozen(server.pid, pid)
            frozen.__enter__()
            await until(lambda: fleet._jobs.pairs and any(job.runs for job in fleet.scheduler._core.jobs.jobs()))
        frozen.__exit__(None, None, None)
        assert fleet.store.is_closed
        await until(lambda: ours_on(server) == 0)


async def test_defect_22_a_probe_is_run_now_paused_and_asked_when_it_is_next_due(shops):
    """Its job is one like any other."""
    async with fleet_on(shops, probe(every=3_600)) as fleet:
        await until(fleet.scheduler.jobs)
        job = fleet.scheduler.get(job_id("main", "one"))
        assert job.next_start is not None
        await job.run_now()
        await until(lambda: len(fleet.store.samples) == 1)
        job.pause()
        assert job.is_paused
        job.resume()
        assert not job.is_paused


async def test_who_finds_no_connection_within_its_wait_is_skipped_and_says_so(shops):
    """The wait has a bound of its own, and is charged to nobody's work."""
    endless = probe("endless", "SELECT 1 FROM pg_sleep(60)", timeout=60, is_cheap=False)
    async with fleet_on(shops, endless, probe("late", every=0.3), limit=1, wait=0.2) as fleet:
        await until(
            lambda: any("budget: no connection was free" in str(each.reason) for each in fleet.store.of("late"))
        )
        late = next(each for each in fleet.store.of("late") if "budget" in str(each.reason))
        assert await run_sync(ours_on, shops) == 1
    assert late.kind is OutcomeKind.SKIPPED
    assert late.executed == 0.0 < late.waited


async def test_a_wrong_password_costs_no_place(listening):
    """Nor does a database that is not there."""
    for database, user, told in (("postgres", "guarded", "password"), ("absent", "postgres", "does not exist")):
        server = Server(host="127.0.0.1", port=listening.port, user=user, password="wrong", database=database)
        async with fleet_on(listening, probe(every=0.5), server=server) as fleet:
            await until(lambda fleet=fleet: failures_of(fleet))
            await until(lambda fleet=fleet: fleet.members["main"].reach.connections.used == 0)
        assert failures_of(fleet)[0].failure is Failure.CONNECT
        assert told in failures_of(fleet)[0].reason
    with psycopg.connect(listening.dsn) as connection:
        assert connection.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {OURS}").fetchone() == (0,)
