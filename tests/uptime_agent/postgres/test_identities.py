"""Which server a target is, is watched: what happens to it is told and stored, and no rate spans it."""

import datetime as dt
import logging

import psycopg
import pytest
from attrs import evolve

import postgres_versions
from kit import until
from postgres_fleets import fleet_on, probe, rows_on, server_of
from uptime_agent.postgres import CATALOGUE, resets
from uptime_agent.postgres.contract import Column, Type
from uptime_agent.postgres.identity import IDENTITY, changes
from uptime_agent.postgres.storage import MemoryMetrics, rates
from uptime_agent.postgres.storage.reading import StoredSample

NAMES = tuple(column.name for column in IDENTITY.columns)
NODE_ROLE = evolve(CATALOGUE["node_role"], every=0.2)
COMMITS = probe(
    "commits",
    "SELECT sum(xact_commit)::bigint FROM pg_stat_database",
    every=0.2,
    columns=(Column("commits", Type.BIGINT, is_counter=True),),
)


def row(**changed):
    """Make what node_role found of a server."""
    found = {
        "is_in_recovery": False,
        "timeline": 1,
        "system_identifier": 7,
        "server_version_num": 170005,
        "started": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    } | changed
    return tuple(found[name] for name in NAMES)


def stored(at, started, **changed):
    """Make a sample as it is stored, with a start in seconds."""
    return StoredSample("main", IDENTITY.name, None, at, NAMES, (row(started=started * 1_000_000, **changed),))


@pytest.fixture
def own_server():
    """Start a server that a test may end."""
    try:
        with postgres_versions.server(17) as server:
            yield server
    except postgres_versions.Missing as error:
        pytest.skip(str(error))


class SpiedMetrics(MemoryMetrics):
    """Metrics in memory that a test looks into from another thread: in one step each."""

    def count(self, name):
        """Count the samples of a probe."""
        return len(self.samples(probe=name, limit=10_000))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, []),
        ({"is_in_recovery": True}, ["it is a standby instead of a primary"]),
        ({"timeline": 2}, ["its timeline is 2 instead of 1"]),
        ({"system_identifier": 8}, ["it is another system, 8 instead of 7"]),
        ({"server_version_num": 180001}, ["its version is 18.1 instead of 17.5"]),
        (
            {"started": dt.datetime(2026, 1, 2, tzinfo=dt.UTC)},
            ["it was started at 2026-01-02 00:00:00+00:00, so its counters may begin anew"],
        ),
    ],
)
def test_what_has_happened_to_a_server_is_said(changed, told):
    """Each change by itself, and nothing where nothing has changed."""
    assert list(changes(row(), row(**changed))) == told
    assert list(changes(None, row(**changed))) == []


def test_counters_begin_anew_with_a_start_or_another_system_and_not_with_a_promotion():
    """A start that lies between two samples counts where it was, and where it was seen."""
    samples = [stored(100, 50), stored(200, 50, timeline=2), stored(300, 250), stored(400, 10)]
    assert resets(samples[::-1]) == [250, 300, 400]
    assert resets([]) == []


async def test_a_crash_is_told_and_stored_and_no_rate_spans_it(own_server, caplog):
    """Counters are gone with the crash, and overtake what they were: a rate over that would be a wrong one."""
    caplog.set_level(logging.INFO, "uptime_agent.postgres")
    rows_on(own_server, "SELECT pg_stat_force_next_flush()")
    store = SpiedMetrics()
    async with fleet_on(own_server, NODE_ROLE, COMMITS, store=store):
        await until(lambda: store.count("commits") >= 2 and store.count("identity") == 1)
        own_server.restart("immediate")
        await until(lambda: store.count("identity") == 2)
        after = store.count("commits")
        await until(lambda: store.count("commits") >= after + 3)
    assert [each.message for each in caplog.records if "main: it was started at" in each.message]
    found = resets(store.samples(probe="identity"))
    points = [(each.at, each.rows[0][0]) for each in reversed(store.samples(probe="commits", limit=10_000))]
    known = rates(points, found)
    assert [rate for _, rate in known if rate is None]
    assert all(rate is None or rate >= 0 for _, rate in known)
    (seen,) = (at for at in found if at == max(found))
    assert all(rate is None for at, rate in known if at == next(at for at, _ in known if at >= seen))


async def test_another_server_behind_the_same_name_is_another_one(postgres_of, tmp_path, caplog):
    """A failover: the name leads elsewhere, with another version and since another time."""
    caplog.set_level(logging.INFO, "uptime_agent.postgres")
    name, after = tmp_path / "db", postgres_of(18)  # which is up before: that it was started is no news
    name.symlink_to(postgres_of(17).folder)
    store = SpiedMetrics()
    async with fleet_on(
        postgres_of(17), NODE_ROLE, store=store, server=server_of(postgres_of(17), host=str(name))
    ) as fleet:
        await until(lambda: store.count("identity") == 1)
        name.unlink()
        name.symlink_to(after.folder)
        rows_on(
            postgres_of(17),
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'timerqueue'",
        )
        await until(lambda: store.count("identity") == 2)
        assert fleet.members["main"].reach.version >= 180_000
    told = " ".join(each.message for each in caplog.records)
    assert "main: its version is 18." in told
    assert len(resets(store.samples(probe="identity"))) == 1


async def test_a_promotion_is_told_and_resets_nothing(own_server, caplog):
    """The standby becomes a primary while we look on, over the same connections."""
    caplog.set_level(logging.INFO, "uptime_agent.postgres")
    standby = postgres_versions.standby(own_server, "promoted")
    standby.start()
    store = SpiedMetrics()
    try:
        async with fleet_on(standby, NODE_ROLE, store=store):
            await until(lambda: store.count("identity") == 1)
            with psycopg.connect(standby.dsn, autocommit=True) as connection:
                connection.execute("SELECT pg_promote()")
            await until(lambda: "it is a primary instead of a standby" in caplog.text)
    finally:
        standby.close()
    assert resets(store.samples(probe="identity")) == []
