"""Limits on the pace: so many begin in any window, whatever they do afterwards, on one agent and on several."""

from contextlib import AsyncExitStack

import pytest

from schedule import Every
from scheduler import InvalidJob, Retry, RunEnded, Scheduler, fleet, rate
from timerqueue.testing import START
from units_kit import Agent, Ledger

HOURLY = Every("1h", anchor=START)


class Log:
    """What a task notes: when it begins. `most(window)`: how many have begun within less than that, at most."""

    def __init__(self, clock):
        self.clock = clock
        self.begun = []
        self.names = []

    async def __call__(self, name, seconds=0.0):
        self.begun.append(self.clock.monotonic())
        self.names.append(name)
        await self.clock.sleep(seconds)

    def most(self, window):
        return max(sum(0 <= at - first < window for at in self.begun) for first in self.begun)


@pytest.fixture
def log(clock):
    return Log(clock)


@pytest.fixture
def ledger(clock):
    return Ledger(clock.monotonic)


def ask(s, log, count, seconds=0.0, needs="api", **options):
    for number in range(count):
        s.add(
            log,
            HOURLY,
            id=f"{needs} {seconds} {number} {len(log.begun)}",
            args=("x", seconds),
            needs=needs,
            start="now",
            **options,
        )


@pytest.mark.parametrize("seconds", [0.0, 0.3, 5.0])
async def test_so_many_begin_in_a_window_however_long_they_run(clock, log, seconds):
    """Three a second: neither short runs nor long ones change that."""
    async with Scheduler(clock=clock, limits={"api": rate(3, "1s")}) as s:
        before = clock.monotonic()
        ask(s, log, 9, seconds)
        await clock.travel(2.5)
        assert [round(at - before, 3) for at in log.begun] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        s.stop(0)


async def test_the_window_slides(clock, log):
    """One that has begun late lets the next begin late, not at the next full second."""
    async with Scheduler(clock=clock, limits={"api": rate(2, "1s")}) as s:
        before = clock.monotonic()
        ask(s, log, 1)
        await clock.travel(0.7)
        ask(s, log, 3)
        await clock.travel(2)
        assert [round(at - before, 3) for at in log.begun] == [0, 0.7, 1, 1.7]
        s.stop(0)


async def test_heavy_work_counts_as_often_as_it_says_and_each_name_of_a_family_for_itself(clock, log):
    """Two units of three leave one."""
    async with Scheduler(clock=clock, limits={"api": rate(3, "1s"), "host:*": rate(1, "2s")}) as s:
        ask(s, log, 2, needs={"api": 2})
        await clock.travel(0.5)
        assert len(log.begun) == 1
        await clock.travel(1)
        assert len(log.begun) == 2
        for host in ("a", "b"):
            ask(s, log, 2, needs=f"host:{host}")
        await clock.travel(1)
        assert len(log.begun) == 4
        await clock.travel(2)
        assert len(log.begun) == 6
        s.stop(0)


async def test_what_never_begins_leaves_its_part_to_others(clock, log):
    """Its job is removed while it waits, and another one has its place."""
    async with Scheduler(clock=clock, limits={"api": rate(1, "10s")}) as s:
        ask(s, log, 1)
        await clock.travel(1)
        waits = s.add(log, HOURLY, id="waits", args=("waits",), needs="api", start="now")
        s.add(log, HOURLY, id="next", args=("next",), needs="api", start="now")
        await clock.travel(1)
        waits.remove()
        await clock.travel(8.5)
        assert log.names == ["x", "next"]
        s.stop(0)


async def test_a_retry_counts_again(clock):
    """It begins again."""
    begun = []

    async def fails():
        begun.append(clock.monotonic())
        raise ValueError

    async with Scheduler(clock=clock, limits={"api": rate(1, "5s")}) as s:
        s.add(fails, HOURLY, needs="api", start="now", retry=Retry.constant("1s", max_retries=1))
        await clock.travel(12)
        assert len(begun) == 2
        assert begun[1] - begun[0] >= 5
        s.stop(0)


async def test_a_rate_may_change_while_it_holds(clock, log):
    """To more of them in a longer window: what has begun before rests as it was told then."""
    async with Scheduler(clock=clock, limits={"api": rate(1, "1s")}) as s:
        ask(s, log, 6)
        await clock.travel(0.5)
        s.resize(limits={"api": rate(2, "3s")})
        await clock.travel(2.9)
        assert len(log.begun) == 3
        await clock.travel(0.2)
        assert len(log.begun) == 4
        with pytest.raises(InvalidJob, match=r"'api' is a rate: give its new size as rate\(5, \"3s\"\)"):
            s.resize(limits={"api": 5})
        with pytest.raises(InvalidJob, match="'new' cannot become a rate"):
            s.resize(limits={"new": rate(5, "1s")})
        s.stop(0)


@pytest.mark.parametrize("units", [0, -1, 1.5, True, "7", None, 10_001])
def test_a_rate_is_of_a_whole_number(units):
    """With the value and what to write instead."""
    with pytest.raises(InvalidJob, match=r"rate\(\)|rate\(10001"):
        rate(units, "1s")


@pytest.mark.parametrize("window", [0, "0.1ms", "8d", "soon", None, -1])
def test_the_window_of_a_rate_is_between_a_millisecond_and_a_week(window):
    """Others could not be kept."""
    with pytest.raises(InvalidJob, match=r"the window of rate\(\)"):
        rate(1, window)


def test_a_rate_of_the_fleet_is_one_as_well():
    """And shows itself as it was written."""
    assert repr(fleet(rate(10, "2s"))) == 'fleet(rate(10, "2s"))'
    with pytest.raises(InvalidJob, match=r"'api' is fleet\(10\).*shared=True"):
        Scheduler(limits={"api": fleet(rate(10, "1s"))})


# -- of a fleet --------------------------------------------------------------------------------------------------------


async def lives(stack, ledger, clock, count, limits):
    return [await stack.enter_async_context(Agent(ledger, clock, n + 1, limits)) for n in range(count)]


async def test_all_agents_together_keep_a_rate_of_the_fleet(clock, ledger, log):
    """Each of three agents could begin as many alone; and together they reach what one may."""
    async with AsyncExitStack() as stack:
        agents = await lives(stack, ledger, clock, 3, {"api": rate(5, "1s")})
        for each in agents:
            ask(each.scheduler, log, 40)
        await clock.travel(10)
        assert log.most(1.0) == 5
        assert len(log.begun) >= 40
        for each in agents:
            each.scheduler.stop(0)


async def test_units_of_a_dead_agent_rest_from_the_end_of_its_lease_on(clock, ledger, log):
    """Until then it may have begun work with them."""
    async with AsyncExitStack() as stack:
        one, two = await lives(stack, ledger, clock, 2, {"api": rate(1, "4s")})
        ask(one.scheduler, log, 1)
        await clock.travel(0.1)
        began, ends = clock.monotonic(), ledger.leases[1]
        ledger.bury(1)
        one.is_held = False
        ask(two.scheduler, log, 1)
        await clock.travel(ends + 3.9 - began)
        assert len(log.begun) == 1
        await clock.travel(1)
        assert len(log.begun) == 2
        two.scheduler.stop(0)
        one.scheduler.stop(0)


async def test_what_has_begun_goes_on_when_the_lease_is_in_doubt(clock, ledger, log):
    """A rate asks when it begins, and not how long it runs. Nothing more begins."""
    ends = []
    async with AsyncExitStack() as stack:
        (one,) = await lives(stack, ledger, clock, 1, {"api": rate(2, "1s")})
        one.scheduler.listen(ends.append, RunEnded)
        ask(one.scheduler, log, 5, 3.0)
        await clock.travel(0.5)
        one.is_held = False
        await clock.travel(4)
        assert [end.outcome.value for end in ends] == ["succeeded", "succeeded"]
        assert len(log.begun) == 2
        one.scheduler.stop(0)


async def test_the_longest_window_that_an_agent_says_holds_for_all(clock, ledger, log):
    """rate(1, "1s") here and rate(1, "3s") there: three seconds."""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(Agent(ledger, clock, 1, {"api": rate(1, "1s")}))
        two = await stack.enter_async_context(Agent(ledger, clock, 2, {"api": rate(1, "3s")}))
        await clock.travel(0.5)
        ask(one.scheduler, log, 9)
        await clock.travel(12)
        assert log.most(3.0) == 1
        assert len(log.begun) >= 4
        two.scheduler.stop(0)
        one.scheduler.stop(0)
