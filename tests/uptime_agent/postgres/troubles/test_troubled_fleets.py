"""The probe scheduler beside servers in trouble: it neither takes one down nor leaves anything behind on it."""

import anyio
import psycopg
import pytest

import postgres_versions
from kit import until
from postgres_fleets import OURS, fleet_on, ours_on, probe, rows_on, server_of
from uptime_agent.libpq import Server
from uptime_agent.postgres.contract import Failure, OutcomeKind, Role, Scope
from uptime_agent.postgres.jobs import job_id
from uptime_agent.postgres.reach.reach import CUT_OFF

pytestmark = pytest.mark.slow


def counted(fleet, kind=None, failure=None):
    """Return the outcomes of that kind, or with that failure."""
    return [each for each in fleet.store.outcomes if kind is each.kind or (failure and failure is each.failure)]


@pytest.fixture(scope="module")
def own_server():
    """Start a server that tests may trouble, one after another."""
    try:
        with postgres_versions.server(17, max_connections=8, superuser_reserved_connections=2) as server:
            yield server
    except postgres_versions.Missing as error:
        pytest.skip(str(error))


async def test_a_query_that_is_given_up_is_cancelled_on_the_server(own_server):
    """A job that is removed leaves nothing running, and nothing behind it in its pipeline."""
    slow = [probe(f"slow{number}", "SELECT 1 FROM pg_sleep(60)", every=60, timeout=60) for number in range(3)]
    running = f"SELECT count(*) FROM pg_stat_activity WHERE {OURS} AND state = 'active'"
    async with fleet_on(own_server, *slow) as fleet:
        while not (await anyio.to_thread.run_sync(rows_on, own_server, running))[0][0]:
            pass
        for each in slow:
            fleet._scheduler.get(job_id("main", each.name)).remove()
        await until(lambda: ours_on(own_server) == 0)
        await until(lambda: len(fleet.store.outcomes) == 3)
    assert [each.reason for each in fleet.store.outcomes] == [CUT_OFF] * 3


async def test_nobody_takes_the_answer_of_what_was_given_up_before_it(own_server):
    """Costly probes follow one another on a connection. When the first is turned off, the next has its own answer."""
    slow = probe("slow", "SELECT 1 FROM pg_sleep(3)", scope=Scope.DATABASE, every=0.5, is_cheap=False)
    after = probe("after", "SELECT 2", scope=Scope.DATABASE, every=0.5, is_cheap=False)
    asleep = f"SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND {OURS}"
    async with fleet_on(own_server, slow, after, limit=1) as fleet:
        await until(lambda: rows_on(own_server, asleep) == [(1,)])
        fleet.scheduler.remove(job_id("main", "slow"))
        await until(lambda: [each for each in fleet.store.samples if each.probe.name == "after"])
    assert {each.rows for each in fleet.store.samples if each.probe.name == "after"} == {((2,),)}
    assert {each.failure for each in fleet.store.of("after")} == {None}


async def test_a_query_that_waits_for_a_lock_waits_no_longer_than_200_ms(own_server):
    """An ALTER TABLE that stays open, the thread in which scrapes queued up behind it until the server was full."""
    rows_on(own_server, "DROP TABLE IF EXISTS public.t; CREATE TABLE public.t (a int)")
    size = probe("size", "SELECT pg_relation_size('public.t')", every=0.3)
    other = probe("other", "SELECT 1", every=0.3)
    with psycopg.connect(own_server.dsn) as alter:
        alter.execute("ALTER TABLE public.t ADD b int")
        async with fleet_on(own_server, size, other) as fleet:
            await until(lambda: len(counted(fleet, failure=Failure.TIMEOUT)) >= 3)
            assert ours_on(own_server) <= 1
    blocked = [each for each in fleet.store.of("size") if each.failure is Failure.TIMEOUT]
    assert {each.reason for each in blocked} == {"canceling statement due to lock timeout (55P03)"}
    assert OutcomeKind.STORED in {each.kind for each in fleet.store.of("other")}


async def test_a_frozen_server_is_left_alone_and_never_has_more_than_the_limit(own_server):
    """Postmaster and backends stand still: no connections pile up before it, and when it goes on, so do we."""
    async with fleet_on(own_server, probe(timeout=0.2), limit=2) as fleet:
        await until(lambda: fleet.store.samples)
        backends = [pid for (pid,) in rows_on(own_server, f"SELECT pid FROM pg_stat_activity WHERE {OURS}")]
        member = fleet.members["main"]
        with own_server.frozen(own_server.pid, *backends):
            await until(lambda: counted(fleet, failure=Failure.TIMEOUT))
            await until(lambda: member.reach.connections.used == 2)
            await until(lambda: counted(fleet, OutcomeKind.SKIPPED))
            assert member.reach.connections.used == 2
        stored = len(fleet.store.samples)
        assert ours_on(own_server) <= 2
        await until(lambda: len(fleet.store.samples) > stored)
        assert ours_on(own_server) <= 2


async def test_a_full_server_is_told_as_full_and_left_alone(own_server):
    """53300 is a failure to connect that says so; after three in a row nobody asks for a while."""
    rows_on(own_server, "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN")
    guests = []
    while len(guests) < 6:
        guests.append(psycopg.connect(f"host={own_server.folder} user=guest dbname=postgres"))
    try:
        async with fleet_on(own_server, probe(), server=server_of(own_server, user="guest")) as fleet:
            await until(lambda: [each for each in counted(fleet, OutcomeKind.SKIPPED) if "breaker" in each.reason])
            assert all("53300" in each.reason for each in counted(fleet, failure=Failure.CONNECT))
            assert len(counted(fleet, failure=Failure.CONNECT)) == 3
            guests.pop().close()
            fleet.members["main"].reach.breaker._until = 0.0  # its rest is over
            await until(lambda: fleet.store.samples)
    finally:
        for each in guests:
            each.close()


async def test_an_idle_connection_that_the_server_ended_costs_no_sample(own_server):
    """A restart between two rounds, or an administrator: the requests go over a new connection."""
    async with fleet_on(own_server, probe(every=0.5)) as fleet:
        await until(lambda: fleet.store.samples)
        rows_on(own_server, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OURS}")
        before = len(fleet.store.outcomes)
        await until(lambda: len(fleet.store.outcomes) >= before + 3)
    assert counted(fleet, failure=Failure.CONNECT) == []


async def test_a_server_that_is_away_is_dialled_less_and_less_and_told_of_once(own_server, caplog):
    """Nobody listens there: a refusal each, then the breaker, and one line in the log for all probes."""
    nowhere = Server(host=str(own_server.folder), port=1, user="postgres")
    probes = [probe(f"p{number}", every=0.1) for number in range(4)]
    async with fleet_on(own_server, *probes, server=nowhere) as fleet:
        await until(lambda: len(counted(fleet, OutcomeKind.SKIPPED)) > 8)
    assert fleet.members["main"].reach.breaker.failures == 3
    assert len([record for record in caplog.records if "main: the server fails (connect)" in record.message]) == 1


async def test_samples_wait_while_the_store_is_down(own_server):
    """Probes keep their time; what they found is written when the store works again, in order, none twice."""
    async with fleet_on(own_server, probe()) as fleet:
        fleet.store.is_down = True
        await until(lambda: fleet._recorder.waiting >= 3)
        fleet.store.is_down = False
        await until(lambda: len(fleet.store.samples) >= 4)
    dues = [sample.at for sample in fleet.store.samples]
    assert dues == sorted(set(dues))


def tried(fleet, name):
    """Return the outcomes of a probe but for those of ticks that came while it ran, as they do on a busy machine."""
    return [outcome for outcome in fleet.store.of(name) if outcome.reason != "overlap"]


async def test_what_does_not_fit_the_server_is_skipped_with_its_reason(own_server):
    """Role, extension, version, right, and what is not there: each is told, and none is a mystery."""
    cases = {
        "standby": probe("standby", role=Role.STANDBY),
        "extension": probe("extension", extension="pg_stat_statements"),
        "absent": probe("absent", "SELECT a FROM public.absent"),
        "file": probe("file", "SELECT length(pg_read_file('/etc/hostname'))"),
    }
    rows_on(own_server, "DROP ROLE IF EXISTS watcher; CREATE ROLE watcher LOGIN")
    async with fleet_on(own_server, *cases.values(), server=server_of(own_server, user="watcher")) as fleet:
        await until(lambda: all(tried(fleet, name) for name in cases))
    found = {name: tried(fleet, name)[0] for name in cases}
    assert found["standby"].reason == "role: the server is a primary, the probe is for a standby"
    assert found["extension"].reason == "missing extension: pg_stat_statements is not in this database"
    assert found["absent"].failure is Failure.MISSING_FEATURE
    assert found["file"].failure is Failure.PERMISSION


async def test_a_sample_before_the_start_says_when_the_next_is_due(own_server):
    """Never, or overdue: soon. Not yet: the rest is waited. A sample of the future counts as one of now."""
    from uptime_agent.postgres.jobs import first_start  # noqa: PLC0415

    one = probe(every=60)
    starts = {
        last: first_start("main", one, 60, last, 1_000_000).timestamp() - 1_000_000
        for last in (None, 900_000, 999_950, 2_000_000)
    }
    assert 0 <= starts[None] == starts[900_000] <= 10
    assert (starts[999_950], starts[2_000_000]) == (10, 60)


def test_probes_start_together_where_they_can_share_connections():
    """Cheap ones all; costly ones of databases, each of which takes a connection; a costly one of the server alone."""
    from uptime_agent.postgres.jobs import first_start  # noqa: PLC0415

    def starts(**options):
        return {first_start("main", probe(name, **options), 60, None, 1_000_000) for name in ("one", "two", "three")}

    assert len(starts()) == len(starts(scope=Scope.DATABASE)) == 1
    assert len(starts(scope=Scope.DATABASE, is_cheap=False)) == 1
    assert len(starts(is_cheap=False)) == 3
    assert starts() == starts(scope=Scope.DATABASE) != starts(scope=Scope.DATABASE, is_cheap=False)
