"""What our queries cost a server is counted, and what is over the budget is asked less often, in a stated order."""

from contextlib import ExitStack, closing, contextmanager
from itertools import pairwise

import psycopg
import pytest
from attrs import evolve

import postgres_versions
from kit import until
from postgres_fleets import fleet_on, probe
from uptime_agent.postgres import CATALOGUE
from uptime_agent.postgres.budget import MAX_STRETCH, WINDOW, CostBudget
from uptime_agent.postgres.contract import Column, OutcomeKind, Type
from uptime_agent.postgres.jobs import job_id

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nearly_full():
    """Start a server with eight places."""
    try:
        with postgres_versions.server(17, max_connections=8, max_wal_senders=0) as server:
            yield server
    except postgres_versions.Missing as error:
        pytest.skip(str(error))


@contextmanager
def guests(server, number):
    """Have so many places taken."""
    with ExitStack() as stack:
        for _ in range(number):
            stack.enter_context(closing(psycopg.connect(server.dsn)))
        yield


def after(budget, costs, windows=1, began=0.0):
    """Spend these costs in each of so many windows."""
    for number in range(windows):
        for name, cost in costs.items():
            budget.spend(name, cost, began + number * WINDOW)
    budget.spend("", 0.0, began + windows * WINDOW)
    return budget


def test_within_the_budget_nothing_is_stretched():
    """Half a second in a minute is less than a hundredth of a core."""
    budget = after(CostBudget(0.01), {"activity": 0.5})
    assert budget.factors == {}
    assert budget.load == 0.5 / WINDOW


def test_the_probe_that_costs_most_is_stretched_first_until_the_rest_fits():
    """One that costs little keeps its interval, and whether the server is there is always asked."""
    budget = after(CostBudget(0.01), {"tables": 1.6, "locks": 0.1, "connectivity": 0.05})
    assert budget.factors == {"tables": 4}


def test_nothing_is_stretched_more_than_sixteen_times():
    """Then the next one is, and in the end all are."""
    budget = after(CostBudget(0.0001), {"tables": 60.0, "locks": 50.0, "node_role": 1.0})
    assert budget.factors == {"tables": MAX_STRETCH, "locks": MAX_STRETCH}


def test_a_stretched_probe_takes_part_in_each_fourth_tick_of_its_grid():
    """Its place in time stays as it is."""
    budget = after(CostBudget(0.01), {"tables": 1.6, "locks": 0.1})
    dues = [1_000_007.0 + 15 * number for number in range(12)]
    taken = [number for number, due in enumerate(dues) if budget.admits("tables", due, 15.0)]
    assert [later - recheck for recheck, later in pairwise(taken)] == [4, 4]


def test_intervals_come_back_one_step_at_a_time():
    """After a window below half of the budget."""
    budget = after(CostBudget(0.01), {"tables": 1.6, "locks": 0.1})
    after(budget, {"locks": 0.1}, began=WINDOW)
    assert budget.factors == {"tables": 2}
    after(budget, {"locks": 0.1}, began=2 * WINDOW)
    assert budget.factors == {}


async def test_ticks_that_the_budget_leaves_out_say_so(postgres_of):
    """A gap in a graph can be asked why."""
    async with fleet_on(postgres_of(18), probe()) as fleet:
        fleet.members["main"].budget.factors["one"] = 2
        await until(lambda: len(fleet.store.samples) >= 2)
        await until(lambda: [each for each in fleet.store.outcomes if each.kind is OutcomeKind.SKIPPED])
    assert any("budget: " in str(each.reason) for each in fleet.store.outcomes)


async def test_blocking_for_more_than_five_seconds_has_a_closer_look(postgres_of):
    """Activity and blocking run every second; after the minute their schedules are as before."""
    server = postgres_of(18)
    sql = "SELECT extract(epoch FROM max(now() - query_start)) FROM pg_stat_activity WHERE query LIKE '%ALTER%'"
    waited = (Column("waited", Type.DOUBLE),)
    blocking = probe("blocking", f"SELECT coalesce(({sql}), 0) + 10", every=30, columns=waited)
    activity = probe("activity", every=30)
    async with fleet_on(server, blocking, activity) as fleet:
        member = fleet.members["main"]
        await until(lambda: len(member.usual) == 2)
        jobs = [fleet._scheduler.get(job_id("main", name)) for name in ("blocking", "activity")]
        assert {job.schedule.interval.total_seconds() for job in jobs} == {1.0}
        await until(lambda: len(fleet.store.of("activity")) >= 3)
        member.burst_until = 0.0
        before = dict(member.usual)
        member.reach.connections.sweep()
        fleet._end_burst(member)
        assert {job.schedule for job in jobs} == set(before.values())


async def test_a_server_that_is_nearly_full_has_a_closer_look(nearly_full):
    """More than nine in ten connections are taken, ours included: activity runs every second, if it may cost that."""
    node_role = evolve(CATALOGUE["node_role"], every=0.2)
    activity = probe("activity", every=30)
    for share, is_expected in ((1.0, True), (0.000_001, False)):
        async with fleet_on(nearly_full, node_role, activity, budget=share) as fleet:
            member = fleet.members["main"]
            member.budget.load = 0.0001
            with guests(nearly_full, 6):
                await looked_twice(fleet)
                assert not member.usual
                with guests(nearly_full, 1):
                    await looked_twice(fleet)
                    assert ("activity" in member.usual) is is_expected


async def looked_twice(fleet):
    """Wait for two more looks at what the server is."""
    before = len(fleet.store.of("node_role"))
    await until(lambda: len(fleet.store.of("node_role")) >= before + 2)
