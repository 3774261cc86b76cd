"""The probe scheduler on a real server: each (probe, target, database) that is due is asked, and has one outcome."""

from itertools import pairwise

import anyio
import pytest

from kit import until
from postgres_fleets import fleet_on, ours_on, probe, rows_on
from scheduler.agent.postgres.contract import Failure, OutcomeKind, Scope


async def test_each_tick_of_a_probe_has_one_outcome_and_what_is_stored_a_sample(postgres_of):
    """The thin slice: a job, a connection, a query, rows in the store, each with the instant at which it was due."""
    async with fleet_on(postgres_of(18), probe(sql="SELECT 41 + 1")) as fleet:
        await until(lambda: len(fleet.store.samples) >= 5)
    dues = sorted(each.due for each in fleet.store.outcomes)
    assert {round(after - before, 6) for before, after in pairwise(dues)} == {0.1}
    stored = [each.due for each in fleet.store.outcomes if each.kind is OutcomeKind.STORED]
    assert [(sample.at, sample.rows) for sample in fleet.store.samples] == [(due, ((42,),)) for due in stored]
    assert fleet.store.is_closed
    assert len(fleet.store.threads) == 1


async def test_a_fleet_that_has_ended_leaves_no_connection(postgres_of):
    """What is idle is closed, and seen to be gone, before the block ends."""
    async with fleet_on(postgres_of(18), probe()) as fleet:
        await until(lambda: fleet.store.samples)
        assert ours_on(postgres_of(18)) == 1
    assert ours_on(postgres_of(18)) == 0


async def test_probes_that_fall_due_together_share_a_connection_and_one_that_fails_costs_the_others_nothing(
    postgres_of,
):
    """They go in one pipeline, each in a transaction of its own."""
    good = [probe(f"good{number}", f"SELECT {number}") for number in range(5)]
    bad = probe("bad", "SELECT 1/0")
    async with fleet_on(postgres_of(18), good[0], good[1], bad, *good[2:]) as fleet:
        await until(lambda: all(fleet.store.of(each.name) for each in (*good, bad)))
        assert ours_on(postgres_of(18)) == 1
    assert {each.kind for each in fleet.store.outcomes if each.probe != "bad"} == {OutcomeKind.STORED}
    assert {each.failure for each in fleet.store.of("bad")} == {Failure.QUERY}
    assert "division by zero" in fleet.store.of("bad")[0].reason


@pytest.fixture
def databases(postgres_of):
    """Make databases on a server; they are gone after the test."""
    made = [f"shop_{number}" for number in range(5)]
    for name in made:
        rows_on(postgres_of(18), f"CREATE DATABASE {name}")
    yield made
    for name in made:
        rows_on(postgres_of(18), f"DROP DATABASE {name} WITH (FORCE)")


async def test_each_database_has_an_outcome_and_one_that_fails_costs_the_others_nothing(postgres_of, databases):
    """Partial results are kept: the databases that answer are stored."""
    each_one = probe(
        sql="SELECT CASE current_database() WHEN 'shop_3' THEN 1/(random() * 0)::int ELSE 7 END",
        scope=Scope.DATABASE,
        every=2,
    )
    async with fleet_on(postgres_of(18), each_one, include=("shop_*",), exclude=("shop_1",)) as fleet:
        await until(lambda: len(fleet.store.outcomes) >= 4)
    first = fleet.store.outcomes[:4]
    assert {each.database: each.kind for each in first} == {
        "shop_0": OutcomeKind.STORED,
        "shop_2": OutcomeKind.STORED,
        "shop_3": OutcomeKind.FAILED,
        "shop_4": OutcomeKind.STORED,
    }


async def test_connections_never_exceed_the_limit_as_the_server_counts(postgres_of, databases):
    """Two for six databases and the server: idle ones of siblings make room, and are gone before the next comes."""
    server = probe("server", every=0.05)
    each_one = probe("each", every=0.2, scope=Scope.DATABASE)
    most = 0
    async with fleet_on(postgres_of(18), server, each_one, limit=2) as fleet:
        while len(fleet.store.of("each")) < 24:
            most = max(most, await anyio.to_thread.run_sync(ours_on, postgres_of(18)))
    assert most == 2
    assert not [each for each in fleet.store.outcomes if each.failure is not None]
