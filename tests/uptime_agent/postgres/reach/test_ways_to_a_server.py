"""Ways to a server, each on a real one: TLS that is verified, passwords in files, IPv6, a standby, and PgBouncer."""

import contextlib

import anyio
import psycopg
import pytest
from attrs import evolve

from debian_servers import PgBouncer
from kit import until
from postgres_fleets import NAME, fleet_on, probe, rows_on, server_of
from uptime_agent.config import read_config
from uptime_agent.postgres import CATALOGUE
from uptime_agent.postgres.contract import Failure, OutcomeKind, Role
from uptime_agent.postgres.jobs import job_id

HOSTS = {NAME: ["127.0.0.1"], "other.example": ["127.0.0.1"], "db6.example": ["::1"]}


@pytest.fixture
def configured(tmp_path):
    """Read the [[postgres]] of a configuration."""

    def read(text):
        file = tmp_path / "fleet.toml"
        file.write_text(f"[[postgres]]\nname = 'main'\n{text}\n")
        (target,) = read_config(file, {}).postgres
        return target.server

    return read


async def first_of(listening, server):
    """Return the first outcome of a probe that finds rows only over TLS, and what it found."""
    over_tls = probe("tls", "SELECT count(*) FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl", every=0.5)
    async with fleet_on(listening, over_tls, server=server, hosts=HOSTS) as fleet:
        await until(lambda: fleet.store.outcomes)
    return fleet.store.outcomes[0], [sample.rows for sample in fleet.store.samples[:1]]


async def test_tls_is_verified_by_the_authority_and_the_name(listening, authority, configured):
    """`verify-full` checks the name that the configuration has, though an address is dialled."""
    dsn = "dsn = 'postgresql://postgres@{}:{}/postgres?sslmode=verify-full&sslrootcert={}'".format
    well, rows = await first_of(listening, configured(dsn(NAME, listening.port, authority / "ca.pem")))
    assert (well.kind, rows) == (OutcomeKind.STORED, [((1,),)])
    for host, ca, told in (
        ("other.example", "ca.pem", "does not match host name"),
        (NAME, "stranger.pem", "certificate verify failed"),
    ):
        refused, _ = await first_of(listening, configured(dsn(host, listening.port, authority / ca)))
        assert refused.failure is Failure.CONNECT
        assert told in refused.reason


@pytest.mark.parametrize("how", ["password = { file = 'secret' }", "dsn"])
async def test_a_password_may_stand_in_a_file(listening, configured, tmp_path, how):
    """In one of ours, or in libpq's `passfile`; a wrong one is refused, and shown to nobody."""
    (tmp_path / "secret").write_text("open sesame\n")
    (tmp_path / "passfile").write_text("*:*:*:guarded:open sesame\n")
    (tmp_path / "passfile").chmod(0o600)
    where = f"host = '{NAME}'\nport = {listening.port}\nuser = 'guarded'\nsslmode = 'require'\n{how}"
    if how == "dsn":
        where = f"dsn = 'host={NAME} port={listening.port} user=guarded sslmode=require passfile={tmp_path}/passfile'"
    well, rows = await first_of(listening, configured(where))
    assert (well.kind, rows) == (OutcomeKind.STORED, [((1,),)])
    for name in ("secret", "passfile"):
        (tmp_path / name).write_text((tmp_path / name).read_text().replace("sesame", "sea-shell"))
    refused, _ = await first_of(listening, configured(where))
    assert refused.failure is Failure.CONNECT
    assert "password authentication failed" in refused.reason
    assert "sea-shell" not in refused.reason


async def test_a_server_is_reached_over_ipv6(listening, configured):
    """By its address, and by a name that has no other."""
    by_address = probe("v6", "SELECT family(inet_client_addr())", every=0.5)
    for host in ("::1", "db6.example"):
        server = configured(f"host = '{host}'\nport = {listening.port}\nuser = 'postgres'")
        async with fleet_on(listening, by_address, server=server, hosts=HOSTS) as fleet:
            await until(lambda fleet=fleet: fleet.store.samples)
        assert fleet.store.samples[0].rows == ((6,),)


async def test_a_standby_is_asked_what_makes_sense_there(postgres_of, probed_of, standby_of):
    """What is for a primary is skipped and says so; what writes nothing works."""
    standby = standby_of(probed_of(postgres_of(18)))
    names = ("node_role", "wal_receiver", "recovery", "replication", "database", "locks")
    writing = probe("writing", role=Role.PRIMARY, every=0.5)
    async with fleet_on(standby, *(evolve(CATALOGUE[name], every=0.5) for name in names), writing) as fleet:
        await until(lambda: {each.probe for each in fleet.store.outcomes} >= {*names, "writing"})
    kinds = {each.probe: each.kind for each in fleet.store.outcomes}
    assert kinds.pop("writing") is OutcomeKind.SKIPPED
    assert fleet.store.of("writing")[0].reason == "role: the server is a standby, the probe is for a primary"
    assert set(kinds.values()) == {OutcomeKind.STORED}


@pytest.fixture(scope="module")
def pooler(postgres_of):
    """Start a PgBouncer that pools transactions, with two connections for all; return the folder of its socket."""
    with contextlib.closing(PgBouncer(postgres_of(18), connections=2)) as pooler:
        yield pooler.folder


async def test_probes_go_through_a_pooler_of_transactions(postgres_of, pooler):
    """Settings end with the transaction that they are for: who has the pooler's connection next has none of ours."""
    server = server_of(postgres_of(18), host=str(pooler), port=6432)
    names = ("connectivity", "node_role", "activity", "database", "tables", "locks", "blocking")
    slow = probe("slow", "SELECT 1 FROM pg_sleep(60)", every=0.5, timeout=60, is_cheap=False)
    asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"

    def sleeping():
        return rows_on(postgres_of(18), asked)[0][0]

    async with fleet_on(
        postgres_of(18),
        *(evolve(CATALOGUE[name], every=0.5) for name in names),
        slow,
        server=server,
        include=("postgres",),
    ) as fleet:
        await until(lambda: {each.probe for each in fleet.store.outcomes} >= set(names))
        while not await anyio.to_thread.run_sync(sleeping):
            pass
        fleet._scheduler.get(job_id("main", "slow")).remove()
        await until(lambda: not sleeping())
    failed = [(each.probe, each.reason) for each in fleet.store.outcomes if each.kind is OutcomeKind.FAILED]
    assert failed == []
    with psycopg.connect(f"host={pooler} port=6432 user=postgres dbname=postgres", autocommit=True) as next_one:
        for name, value in (("lock_timeout", "0"), ("statement_timeout", "0"), ("transaction_read_only", "off")):
            assert next_one.execute(f"SHOW {name}").fetchone() == (value,)
        assert "pg_catalog" not in next_one.execute("SHOW search_path").fetchone()[0]
