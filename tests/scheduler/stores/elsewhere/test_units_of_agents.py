"""Limits of the fleet: agents that share a store never have more runs at once than all of them may, judged by the
tasks.
"""

from collections import Counter
from threading import Thread

import anyio
import pytest

from kit import until, wait_until
from schedule import Every
from scheduler import Scheduler, current_run, fleet, rate
from scheduler.stores import LEASE, Ask, Wish
from scheduler.stores._postgres.connection import StoreConnection

LIMIT = 3


class Log:
    """What the tasks themselves have noted: how many of them there were at once, and who ran them."""

    def __init__(self):
        self.now = self.most = 0
        self.runs = Counter()
        self.dues = []

    def task(self, agent, seconds=0.005):
        async def run():
            self.now += 1
            self.most = max(self.most, self.now)
            self.runs[agent] += 1
            self.dues.append((current_run().due, agent))
            try:
                await anyio.sleep(seconds)
            finally:
                self.now -= 1

        return run


def scheduler(shared_store, limits, **tasks):
    s = Scheduler(store=shared_store(), poll="50ms", limits=limits)
    for name, task in tasks.items():
        s.register(name, task)
    return s


def add(s, count, task="work", every="100ms", needs="http"):
    for number in range(count):
        s.add(task, Every(every), id=f"{task} {number}", needs=needs, on_conflict="keep")


async def test_all_agents_together_have_no_more_runs_than_the_limit_of_the_fleet(shared_store):
    """Each of three agents could have as many alone. There is time between runs, in which jobs go to who has come."""
    log = Log()
    async with scheduler(shared_store, {"http": fleet(LIMIT)}, work=log.task("one", 0.03)) as one:
        add(one, 30, every="1s")
        async with (
            scheduler(shared_store, {"http": fleet(LIMIT)}, work=log.task("two", 0.03)) as two,
            scheduler(shared_store, {"http": fleet(LIMIT)}, work=log.task("three", 0.03)),
        ):
            await until(lambda: len(log.runs) == 3 and min(log.runs.values()) > 10)
            assert two.statistics().limits["http"].size == LIMIT
    assert log.most == LIMIT


async def test_the_units_of_a_family_are_those_of_each_name(shared_store):
    """Two hosts, two units each."""
    logs = {"a": Log(), "b": Log()}
    tasks = {f"task_{host}": log.task("one") for host, log in logs.items()}
    async with (
        scheduler(shared_store, {"host:*": fleet(2), "http": fleet(3)}, **tasks) as one,
        scheduler(shared_store, {"host:*": fleet(2), "http": fleet(3)}, **tasks),
    ):
        for host in logs:
            add(one, 20, f"task_{host}", needs=("http", f"host:{host}"))
        await until(lambda: min(log.runs["one"] for log in logs.values()) > 30)
    assert [log.most for log in logs.values()] == [2, 2]


async def test_it_is_seen_who_has_units_and_who_waits(shared_store):
    """For people: by limit and agent."""
    log = Log()
    store = shared_store()
    s = Scheduler(store=store, limits={"http": fleet(LIMIT)})
    s.register("work", log.task("one", 3600))
    async with s:
        add(s, LIMIT + 2, every="100ms")
        await until(lambda: log.now == LIMIT)
        await until(lambda: any(loan.waiting == 2 for loan in store.lending.loans()))
        (loan,) = store.lending.loans()
        assert (loan.limit, loan.units, loan.size, loan.waiting, loan.left) == ("http", LIMIT, LIMIT, 2, None)
        assert loan.agent.startswith("process ")
        s.stop(0)
    assert log.most == LIMIT


async def test_units_of_a_rate_rest_when_their_agent_has_stopped(shared_store):
    """Who comes after it does not begin more in the window, whoever that is."""
    log = Log()
    async with scheduler(shared_store, {"api": fleet(rate(2, "1h"))}, work=log.task("one")) as s:
        add(s, 5, every="1s", needs="api")
        await until(lambda: len(log.dues) == 2)
    store = shared_store()
    async with Scheduler(store=store, limits={"api": fleet(rate(2, "1h"))}) as s:
        s.register("work", log.task("two"))
        await until(lambda: any(loan.waiting for loan in store.lending.loans()))
        (resting,) = [loan for loan in store.lending.loans() if loan.units]
        assert (resting.units, resting.agent) == (2, None)
        assert 0 < resting.left <= 3600
        s.stop(0)
    assert len(log.dues) == 2


@pytest.mark.parametrize(("window", "longest"), [(0.0, LEASE), (60.0, LEASE + 60)])
def test_a_loan_of_the_dead_ends_though_the_servers_clock_was_set_back(agent, by_hand, window, longest):
    """By that clock it went on for an hour. Nobody knows how much of it is left, so it lasts a whole lease from now."""
    dead, other = agent(), agent()
    for store in (dead, other):
        store.lending.declare({"http": 1}, {"http": window} if window else {})
    assert dead.lending.round({"http": Ask(1, 0, (Wish(1, 1),), window=window)})["http"].held == 1
    by_hand("UPDATE {}.lease SET until = now() - interval '1s' WHERE epoch = " + str(dead.epoch))
    assert other.sharing.bury([dead.epoch]) == [dead.epoch]
    by_hand("UPDATE {}.unit SET until = until + interval '1 hour'")
    assert other.lending.round({"http": Ask(1, 0, (Wish(1, 1),), window=window)})["http"].held == 0
    ((left,),) = by_hand("SELECT extract(epoch FROM until - clock_timestamp())::float8 FROM {}.unit")
    assert longest - 1 < left <= longest


def test_a_size_that_is_told_while_a_round_goes_on_is_said_with_the_next(agent, by_hand):
    """The loop resizes a limit while a thread waits for the answer. The others kept to the old size for good."""
    store = agent()
    store.lending.declare({"http": 3}, {})
    store.lending.round({"http": Ask(3, 0, (Wish(1, 1),))})
    with by_hand("SELECT 1").connection.transaction():
        by_hand("SELECT FROM {}.borrower FOR UPDATE")
        on_its_way = Thread(target=store.lending.round, args=[{"http": Ask(3, 0, (Wish(1, 1),))}])
        on_its_way.start()
        wait_until(lambda: by_hand("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)").fetchone()[0])
        store.lending.declare({"http": 5}, {})
    on_its_way.join()
    store.lending.round({"http": Ask(5, 0, (Wish(1, 1),))})
    assert by_hand("SELECT units FROM {}.fleet_limit").fetchall() == [(5,)]


def test_a_round_is_as_many_statements_for_two_hundred_units_as_for_one(shared_store, monkeypatch):
    """Also when another agent waits, and when they go back."""
    stores = [shared_store(), shared_store()]
    for store in stores:
        store.open(1, lambda: None)
        store.lending.declare({"http": 400}, {})
    said, execute = [], StoreConnection.execute

    def noted(connection, query, *asked, **how):
        said.append(query)
        return execute(connection, query, *asked, **how)

    monkeypatch.setattr(StoreConnection, "execute", noted)
    costs = {}
    for units in (1, 200):
        for store in stores:
            asks = [Ask(400, 0, (Wish(1, units),)), Ask(400, units, (Wish(2, 400),)), Ask(400, 0)]
            held = []
            for ask in asks:
                before = len(said)
                held.append(store.lending.round({"http": ask})["http"].held)
                costs.setdefault((store, len(held)), []).append(len(said) - before)
            assert held == [units, 400, 0]
    for store in stores:
        store.close()
    assert all(one >= many for one, many in costs.values())


async def test_jobs_of_one_place_keep_a_limit_of_their_agent_without_units(shared_store):
    """All of them are on one of the two agents, so that its own limit is the fleet's."""
    log = Log()
    async with (
        scheduler(shared_store, {"host:*": 2}, work=log.task("one")) as one,
        scheduler(shared_store, {"host:*": 2}, work=log.task("two")),
    ):
        for number in range(12):
            one.add("work", Every("100ms"), id=f"job {number}", needs="host:x", place="host:x", on_conflict="keep")
        await until(lambda: log.runs.total() > 60)
        assert len({job.agent for job in one.jobs()}) == 1
    assert log.most == 2
