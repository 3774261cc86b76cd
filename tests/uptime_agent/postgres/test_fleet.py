"""The probe scheduler on a real server: each (probe, target, database) that is due is asked, and has one outcome."""

from itertools import pairwise

import anyio
import pytest
from attrs import evolve

from kit import until
from postgres_fleets import OURS, MemoryMetrics, fleet_on, ours_on, probe, rows_on
from uptime_agent.postgres.contract import Failure, OutcomeKind, Scope
from uptime_agent.postgres.jobs import job_id
from uptime_agent.postgres.reach import ProbeRequest
from uptime_agent.postgres.reach.reach import CUT_OFF


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


async def test_a_fleet_that_ends_with_an_error_leaves_no_connection_either(postgres_of):
    """The server is rid of them before anybody has collected what is left of the fleet."""

    async def fails():
        async with fleet_on(postgres_of(18), probe()) as fleet:
            fleets.append(fleet)
            await until(lambda: fleet.members["main"].reach.connections.idle)
            raise LookupError

    fleets = []
    with pytest.raises(ExceptionGroup) as raised:
        await fails()
    assert raised.group_contains(LookupError)
    await until(lambda: ours_on(postgres_of(18)) == 0)


async def test_probes_that_fall_due_together_share_a_connection_and_one_that_fails_costs_the_others_nothing(
    postgres_of,
):
    """They go in one pipeline, each in a transaction of its own."""
    good = [probe(f"good{number}", f"SELECT {number}") for number in range(5)]
    bad = probe("bad", "SELECT 1/0")
    async with fleet_on(postgres_of(18), good[0], good[1], bad, *good[2:]) as fleet:
        await until(lambda: all(fleet.store.asked(each.name) for each in (*good, bad)))
        assert ours_on(postgres_of(18)) == 1
    asked = fleet.store.asked()
    assert {each.kind for each in asked if each.probe != "bad"} == {OutcomeKind.STORED}
    assert {each.failure for each in asked if each.probe == "bad"} == {Failure.QUERY}
    assert all("division by zero" in each.reason for each in asked if each.probe == "bad")


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
        await until(lambda: len(fleet.store.asked()) >= 4)
    first = fleet.store.asked()[:4]
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


async def test_who_waits_for_the_one_before_it_in_a_pipeline_is_not_charged_for_that(postgres_of):
    """Waiting and working are told apart: the wait of the second is the work of the first, and its work its own."""
    slow, quick = probe("a", "SELECT 1 FROM pg_sleep(0.2)", every=0.5), probe("b", "SELECT 1", every=0.5)
    async with fleet_on(postgres_of(18), slow, quick) as fleet:
        await until(lambda: fleet.store.asked("a") and fleet.store.asked("b"))
    first, second = fleet.store.asked("a")[0], fleet.store.asked("b")[0]
    assert first.executed >= 0.2
    assert second.waited > first.executed / 2 > second.executed  # it may have been due a little later than the first


async def test_a_statement_has_what_is_left_of_the_budget_of_its_run(postgres_of):
    """The server ends it then by itself; what a run has done before is spent, also of one that is tried again."""

    async def call(connection):
        asked = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"
        found = [await connection.fetch(asked)]
        await connection.fetch("SELECT pg_sleep(0.1)")
        return tuple((int(value),) for ((value,),) in (*found, await connection.fetch(asked)))

    several = evolve(probe("several", every=0.5, timeout=7.0), variants=(), call=call)
    setting = probe("one", "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'", every=0.5, timeout=7.0)
    async with fleet_on(postgres_of(18), several, setting) as fleet:
        await until(lambda: fleet.store.asked("several") and fleet.store.asked("one"))
    found = {sample.probe.name: [value for (value,) in sample.rows] for sample in fleet.store.samples}
    assert found["one"] == [7000]
    assert 7000 >= found["several"][0] >= found["several"][1] + 100
    again = ProbeRequest(setting, None, 0.0, 30.0, lambda request: None)
    again.begin(10.0)
    again.put_back(12.5)
    assert again.left == 4.5


def kinds(outcomes):
    return [each.kind for each in outcomes]


async def test_a_costly_probe_holds_up_nothing_cheap(postgres_of):
    """It has a connection of its own, as long as there is one; cheap ones of the same database go on."""
    slow = probe("slow", "SELECT 1 FROM pg_sleep(600)", every=0.5, timeout=600, is_cheap=False)
    async with fleet_on(postgres_of(18), slow, probe(every=0.5), limit=2) as fleet:
        asked = f"SELECT count(*) FROM pg_stat_activity WHERE {OURS} AND wait_event = 'PgSleep'"
        await until(lambda: rows_on(postgres_of(18), asked)[0][0])
        before = len(fleet.store.of("one"))
        await until(lambda: kinds(fleet.store.of("one")[before:]).count(OutcomeKind.STORED) >= 3)
        assert rows_on(postgres_of(18), asked)[0][0]  # it still goes on
    assert set(kinds(fleet.store.of("one"))) <= {OutcomeKind.STORED, OutcomeKind.SKIPPED}  # by a machine that is busy
    assert fleet.store.of("slow")[-1].reason == CUT_OFF


def checked_ticks(outcomes, every, names):
    """Return the ticks of a probe of which there are records, having seen that each has one for each database."""
    ticks = {}
    for each in outcomes:
        ticks.setdefault(round(each.due, 3), []).append(each.database)
    unknown = [None]  # the list of databases was not there yet
    assert all(sorted(found, key=str) in (names, unknown) for found in ticks.values()), ticks
    dues = sorted(ticks)
    assert {round(after - before, 3) for before, after in pairwise(dues)} <= {every}
    return dues


@pytest.mark.slow
async def test_each_due_probe_has_one_record_under_load_and_over_a_restart(postgres_of, databases):
    """More is due than two connections can do: what was late, left out or cut off at the end has its record as well."""
    servers = [probe(f"server{n}", "SELECT 1 FROM pg_sleep(0.03)", every=0.1, is_cheap=False) for n in range(4)]
    each_one = [
        probe(f"each{n}", "SELECT 1 FROM pg_sleep(0.01)", every=0.2, scope=Scope.DATABASE, is_cheap=False)
        for n in range(3)
    ]
    store = MemoryMetrics()
    lives = []
    for count in (700, 1_400):
        store.last_at = {("main", name): due for name, due in latest(store.outcomes).items()}
        async with fleet_on(
            postgres_of(18), *servers, *each_one, store=store, limit=2, wait=0.3, include=("shop_*",)
        ) as fleet:
            await until(lambda count=count: len(store.outcomes) >= count)
        counts = {each.id: each.statistics() for each in fleet._scheduler.jobs()}
        lives.append((fleet._clock.wall(), counts))
    kinds = {each.kind for each in store.outcomes}
    assert {OutcomeKind.STORED, OutcomeKind.SKIPPED} <= kinds
    assert any(each.lateness for each in store.outcomes)
    for each in (*servers, *each_one):
        names = sorted(databases) if each.scope is Scope.DATABASE else [None]
        records = store.of(each.name)
        first = [record for record in records if record.due <= lives[0][0]]
        second = [record for record in records if record.due > lives[0][0]]
        for found, (_, counts) in zip((first, second), lives, strict=True):
            counted = counts[job_id("main", each.name)]
            assert len(checked_ticks(found, each.every, names)) == counted.runs + counted.missed


def latest(outcomes):
    """Return when each probe was last due, by name."""
    return {each.probe: each.due for each in sorted(outcomes, key=lambda each: each.due)}
