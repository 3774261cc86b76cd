"""What our queries cost a server is counted, and what is over the budget is asked less often, in a stated order."""

from itertools import pairwise

import pytest

from kit import until
from postgres_fleets import fleet_on, probe
from scheduler.agent.postgres.budget import MOST, WINDOW, Budget
from scheduler.agent.postgres.contract import Column, OutcomeKind, Type
from scheduler.agent.postgres.jobs import job_id

pytestmark = pytest.mark.slow


def after(budget, costs, windows=1, began=0.0):
    """Spend these costs in each of so many windows."""
    for number in range(windows):
        for name, cost in costs.items():
            budget.spend(name, cost, began + number * WINDOW)
    budget.spend("", 0.0, began + windows * WINDOW)
    return budget


def test_within_the_budget_nothing_is_stretched():
    """Half a second in a minute is less than a hundredth of a core."""
    budget = after(Budget(0.01), {"activity": 0.5})
    assert budget.factors == {}
    assert budget.load == 0.5 / WINDOW


def test_the_probe_that_costs_most_is_stretched_first_until_the_rest_fits():
    """One that costs little keeps its interval, and whether the server is there is always asked."""
    budget = after(Budget(0.01), {"tables": 1.6, "locks": 0.1, "connectivity": 0.05})
    assert budget.factors == {"tables": 4}


def test_nothing_is_stretched_more_than_sixteen_times():
    """Then the next one is, and in the end all are."""
    budget = after(Budget(0.0001), {"tables": 60.0, "locks": 50.0, "node_role": 1.0})
    assert budget.factors == {"tables": MOST, "locks": MOST}


def test_a_stretched_probe_takes_part_in_each_fourth_tick_of_its_grid():
    """Its place in time stays as it is."""
    budget = after(Budget(0.01), {"tables": 1.6, "locks": 0.1})
    dues = [1_000_007.0 + 15 * number for number in range(12)]
    taken = [number for number, due in enumerate(dues) if budget.admits("tables", due, 15.0)]
    assert [later - sooner for sooner, later in pairwise(taken)] == [4, 4]


def test_intervals_come_back_one_step_at_a_time():
    """After a window below half of the budget."""
    budget = after(Budget(0.01), {"tables": 1.6, "locks": 0.1})
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
