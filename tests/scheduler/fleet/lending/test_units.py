"""Units of the fleet's limits between agents on one clock: who gets them, when they go back, and what they cost."""

import logging
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from schedule import Every
from scheduler import InvalidJob, RunEnded, Scheduler, Subtask, fleet
from scheduler._fleet.lending.demand import bounded, wishes_of
from scheduler.stores import Wish
from scheduler.stores.memory import MemoryStore
from scheduler.stores.postgres import PostgresStore
from timerqueue import UnknownLimit
from timerqueue.testing import START
from units_kit import Agent, Ledger

HOURLY = Every("1h", anchor=START)


class Meter:
    """A task that takes some seconds and knows how many of it ran at a time, and in which order they began."""

    def __init__(self, clock):
        self.clock = clock
        self.now = self.most = 0
        self.order = []
        self.ended = Counter()

    async def __call__(self, name, seconds):
        self.order.append(name)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.clock.sleep(seconds)
            self.ended[name] += 1
        finally:
            self.now -= 1


@pytest.fixture
def meter(clock):
    return Meter(clock)


@pytest.fixture
def ledger(clock):
    return Ledger(clock.monotonic)


@asynccontextmanager
async def agents(ledger, clock, count, limits, **options):
    async with AsyncExitStack() as stack:
        made = [Agent(ledger, clock, number + 1, limits, **options) for number in range(count)]
        for agent in made:
            await stack.enter_async_context(agent)
        yield made
        for agent in made:
            agent.scheduler.stop(0)


def ask(agent, meter, name, seconds=1.0, needs="http", **options):
    agent.scheduler.add(meter, HOURLY, id=name, args=(name, seconds), needs=needs, start="now", **options)


async def test_work_may_wait_for_units_before_the_first_round(clock):
    """A job that is due when its scheduler starts ended the whole scheduler, if it came before the first look."""
    agent = Agent(Ledger(clock.monotonic), clock, 1, {"http": 2})
    async with agent.scheduler:
        agent.units.begin()
        agent.units.refused("http")
        await clock.travel(1)
    assert agent.lending.ledger.count >= 1


async def test_an_agent_uses_only_units_that_are_lent_to_it(clock, ledger, meter):
    """Of three units ten runs on two agents have three at any time, and all run."""
    async with agents(ledger, clock, 2, {"http": 3}) as (one, two):
        for number in range(5):
            ask(one, meter, f"one {number}")
            ask(two, meter, f"two {number}")
        await clock.travel(6)
        assert (len(meter.order), meter.most) == (10, 3)


async def test_units_go_to_who_has_waited_longest_on_whichever_agent(clock, ledger, meter):
    """One unit: what waits is served in the order of its due times, though one agent has the unit all the time."""
    async with agents(ledger, clock, 2, {"http": 1}) as (one, two):
        ask(one, meter, "first", 10)
        await clock.travel(1)
        for number in range(3):
            ask(one, meter, f"one {number}", 2)
            await clock.travel(1)
            ask(two, meter, f"two {number}", 2)
            await clock.travel(1)
        await clock.travel(20)
        assert meter.order == ["first", "one 0", "two 0", "one 1", "two 1", "one 2", "two 2"]


async def test_an_agent_that_waits_is_served_before_one_that_holds_units_for_later_work(clock, ledger, meter):
    """One agent has all units and a long line; the other's work is older than all of that and gets the next unit."""
    async with agents(ledger, clock, 2, {"http": 2}) as (one, two):
        ask(one, meter, "a", 3)
        ask(one, meter, "b", 3)
        await clock.travel(1)
        ask(two, meter, "old", 1)
        await clock.travel(1)
        for number in range(20):
            ask(one, meter, f"later {number}", 1)
        await clock.travel(4)
        assert meter.order[2] in {"old", "later 0"}
        assert meter.order.index("old") <= 3


async def test_idle_units_go_back_within_a_second(clock, ledger, meter):
    """A run is over, nobody waits: a second later nothing is lent."""
    async with agents(ledger, clock, 1, {"http": 3}) as (one,):
        ask(one, meter, "a", 0.2)
        ask(one, meter, "b", 30)
        await clock.travel(0.1)
        assert ledger.lent("http", 1) == 2
        await clock.travel(1.1)
        assert ledger.lent("http", 1) == 1


async def test_an_idle_agent_asks_nothing(clock, ledger, meter):
    """Once it has nothing and wants nothing, no round follows."""
    async with agents(ledger, clock, 1, {"http": 3}) as (one,):
        ask(one, meter, "a", 0.2)
        await clock.travel(3)
        before = ledger.count
        await clock.travel(600)
        assert ledger.count == before


async def test_a_long_run_costs_a_round_a_second_and_no_more(clock, ledger, meter):
    """Its agent looks who waits for the unit, in case no hint gets through."""
    async with agents(ledger, clock, 1, {"http": 3}) as (one,):
        ask(one, meter, "a", 600)
        await clock.travel(3)
        before = ledger.count
        await clock.travel(100)
        assert ledger.count - before <= 100


async def test_who_is_not_sure_of_its_lease_starts_nothing_and_ends_what_runs(clock, ledger, meter):
    """Its units may be another's soon. With the lease it goes on."""
    ends = []
    async with agents(ledger, clock, 1, {"http": 2}) as (one,):
        one.scheduler.listen(ends.append, RunEnded)
        ask(one, meter, "running", 60)
        ask(one, meter, "free", 60, needs=())
        await clock.travel(1)
        one.is_held = False
        ask(one, meter, "waiting", 1)
        await clock.travel(0.5)
        assert [(end.job_id, end.outcome.value) for end in ends] == [("running", "failed")]
        assert "units of the fleet's limits" in ends[0].error
        assert meter.now == 1
        one.is_held = True
        await clock.travel(0.5)
        assert meter.order[-1] == "waiting"


async def test_subtasks_that_hold_units_end_with_the_lease_too(clock, ledger, meter):
    """Not their parents alone."""
    ends = []

    async def parent():
        return [Subtask(meter, "child", 60, needs="http")]

    async with agents(ledger, clock, 1, {"http": 1}) as (one,):
        one.scheduler.listen(ends.append, RunEnded)
        one.scheduler.add(parent, HOURLY, id="parent", start="now")
        await clock.travel(1)
        assert meter.order == ["child"]
        one.is_held = False
        await clock.travel(0.5)
        assert [end.outcome.value for end in ends] == ["failed"]


async def test_answers_that_are_lost_cost_time_and_no_unit(clock, ledger, meter):
    """Rounds fail for a while; then all goes on, with as many at once as before."""
    async with agents(ledger, clock, 2, {"http": 2}) as (one, two):
        for number in range(6):
            ask(one, meter, f"one {number}", 0.5)
            ask(two, meter, f"two {number}", 0.5)
        await clock.travel(0.3)
        one.writer.cut = True
        await clock.travel(2)
        one.writer.cut = False
        await clock.travel(8)
        assert (meter.most, len(meter.order)) == (2, 12)


async def test_a_dead_agents_units_come_back_when_its_lease_has_ended(clock, ledger, meter):
    """Not when it is buried, however early that is heard."""
    async with agents(ledger, clock, 2, {"http": 1}) as (one, two):
        ask(one, meter, "a", 60)
        await clock.travel(1)
        ask(two, meter, "b", 1)
        ledger.bury(1)
        one.is_held = False
        await clock.travel(1.5)
        assert meter.order == ["a"]
        await clock.travel(1.5)
        assert meter.order == ["a", "b"]


async def test_work_that_waits_for_a_full_host_holds_no_unit_of_the_rest(clock, ledger, meter):
    """Members of families are wished for first, and the other only with them in hand."""
    async with agents(ledger, clock, 2, {"http": 2, "zone:*": 1}) as (one, two):
        ask(one, meter, "long", 60, needs=("http", "zone:a"))
        await clock.travel(1)
        ask(two, meter, "held up", 1, needs=("http", "zone:a"))
        await clock.travel(1)
        ask(one, meter, "free", 1, needs=("http", "zone:b"))
        await clock.travel(1)
        assert meter.order == ["long", "free"]


async def test_heavy_work_gets_all_that_it_needs_in_the_end(clock, ledger, meter):
    """It needs three of three, and lighter work comes all the time on both agents."""
    async with agents(ledger, clock, 2, {"http": 3}) as (one, two):
        for number in range(30):
            ask(one if number % 2 else two, meter, f"light {number}", 0.5)
        await clock.travel(0.1)
        ask(two, meter, "heavy", 1, needs={"http": 3})
        for number in range(30):
            await clock.travel(0.1)
            ask(one, meter, f"more {number}", 0.5)
        await clock.travel(20)
        assert meter.ended["heavy"] == 1
        assert len(meter.ended) == 61


@pytest.mark.parametrize(("seconds", "every"), [(0.05, "100ms"), (0.2, "1s"), (0.02, "100ms")])
async def test_three_agents_do_four_fifths_of_what_one_does_with_the_same_limit(clock, seconds, every):
    """More work than seven units can do, and a store that takes six milliseconds for a round. By time on the clock."""
    done = {}
    for count in (1, 3):
        meter, ledger = Meter(clock), Ledger(clock.monotonic)
        async with agents(ledger, clock, count, {"http": 7}, delay=0.006) as made:
            for number in range(90):
                agent = made[number % count].scheduler
                agent.add(meter, Every(every), id=f"job {number}", args=("x", seconds), needs="http")
            await clock.travel(1)
            before = len(meter.order)
            await clock.travel(3)
            done[count] = len(meter.order) - before
            assert meter.most <= 7
    assert done[3] >= 0.8 * done[1]


async def test_agents_that_say_different_sizes_have_the_lowest_and_say_so(clock, ledger, meter, caplog):
    """fleet(3) here and fleet(1) there: one, until that agent is gone."""
    caplog.set_level(logging.INFO, "scheduler")
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(Agent(ledger, clock, 1, {"http": 3}))
        two = await stack.enter_async_context(Agent(ledger, clock, 2, {"http": 1}))
        await clock.travel(0.1)
        for number in range(4):
            ask(one, meter, f"one {number}")
        await clock.travel(2.5)
        assert (meter.most, len(meter.order)) == (1, 3)
        assert "limit 'http' has fleet(3) here, and 1 elsewhere: the lowest holds" in caplog.text
        two.scheduler.stop(0)
        ledger.bury(2)
        for number in range(4, 8):
            ask(one, meter, f"one {number}")
        await clock.travel(3)
        assert meter.most == 3
        assert "limit 'http' has 3 units, as all nodes say now" in caplog.text
        one.scheduler.stop(0)


async def test_a_new_size_holds_for_all(clock, ledger, meter):
    """Lowering drains."""
    async with agents(ledger, clock, 2, {"http": 3}) as (one, two):
        for number in range(9):
            ask(two, meter, f"two {number}")
        await clock.travel(0.5)
        assert meter.now == 3
        one.units.resize({"http": 1})
        await clock.travel(2)
        meter.most = 0
        await clock.travel(3)
        assert meter.now == 1


def test_a_limit_of_the_fleet_needs_a_store_that_agents_share():
    """Else it would be one of this agent alone, and nobody would know."""
    for store in (None, MemoryStore(), PostgresStore("host=/nowhere")):
        with pytest.raises(InvalidJob, match=r"'http' is fleet\(7\).*shared=True.*or 7 for this node alone"):
            Scheduler(store=store, limits={"http": fleet(7)})


@pytest.mark.parametrize("units", [0, -1, 1.5, True, "7", None, 10_001])
def test_a_size_of_the_fleet_is_a_whole_number_that_can_be_lent(units):
    """With the value and what to write instead."""
    with pytest.raises(InvalidJob, match=r"fleet\(\)|fleet\(10001\)"):
        fleet(units)


@pytest.mark.parametrize("name", ["", "a\0", "a\ud800", "x" * 513, "host:eu:*"])
async def test_a_limit_of_the_fleet_has_a_name_that_a_store_can_tell_from_others(name):
    """Two names must not be one row."""
    with pytest.raises(InvalidJob, match=r"printable|family"):
        Scheduler(store=PostgresStore("host=/nowhere", shared=True), limits={name: fleet(7)})


def shared_scheduler():
    return Scheduler(
        store=PostgresStore("host=/nowhere", shared=True), limits={"http": fleet(7), "host:*": fleet(2), "cpu": 3}
    )


async def test_what_can_never_have_room_or_is_unknown_is_refused_as_for_any_limit():
    """By the size of the whole fleet."""
    s = shared_scheduler()
    s.register("work", lambda: None)
    with pytest.raises(ValueError, match="7 units and never room for 8"):
        s.add("work", "@hourly", id="a", needs={"http": 8})
    with pytest.raises(UnknownLimit, match="there is no limit 'htp'"):
        s.add("work", "@hourly", id="a", needs="htp")
    with pytest.raises(ValueError, match="must be printable"):
        s.add("work", "@hourly", id="a", needs="host:\0")


async def test_a_limit_stays_the_fleets_or_the_agents_own():
    """What changes its kind under way would be counted twice or not at all."""
    s = shared_scheduler()
    with pytest.raises(InvalidJob, match=r"'http' is the fleet's: give its new size as fleet\(5\)"):
        s.resize(limits={"http": 5})
    with pytest.raises(InvalidJob, match="'cpu' cannot become the fleet's"):
        s.resize(limits={"cpu": fleet(5)})
    s.resize(limits={"http": fleet(5), "cpu": 4})
    assert s.statistics().limits["http"].size == 5


def test_wishes_are_for_one_limit_after_another():
    """What has its host's unit wishes for the next limit; the others of that line do not."""
    lines = [((("host:a", 1), ("http", 2)), [1.0, 2.0, 3.0], 5), ((("http", 2),), [1.5], 1), ((("cpu", 1),), [0.0], 1)]
    wishes = wishes_of(lines, {"host:a": 2, "http": 1}, lambda name: name != "cpu")
    assert wishes == {"host:a": [(1.0, 1), (2.0, 1), (3.0, 1), (3.0, 2)], "http": [(1.0, 2), (1.5, 2), (2.0, 2)]}


def test_nobody_wishes_for_more_than_there_can_be():
    """The first that fill the limit."""
    assert bounded([Wish(1, 2), Wish(2, 9), Wish(3, 1)], 5) == (Wish(1, 2), Wish(2, 3))
