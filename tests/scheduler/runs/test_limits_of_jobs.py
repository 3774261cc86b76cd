"""Room for so many at a time, in all and by name, and who goes first."""

import math
from collections import Counter
from datetime import timedelta
from functools import partial

import pytest

from kit import since_start
from schedule import Every
from scheduler import InvalidJob, Outcome, Overlap, RunEnded, RunStarted, Scheduler
from timerqueue import UnknownLimit
from timerqueue.testing import START

EVERY_HOUR = Every("1h", anchor=START)


class Meter:
    """A task that takes a second and knows how many of it ran at a time."""

    def __init__(self, clock):
        self.clock = clock
        self.running = Counter()
        self.peak = Counter()
        self.order = []

    async def __call__(self, name):
        """Take a second."""
        self.order.append(name)
        kind = name.partition("-")[0]
        self.running[kind] += 1
        self.peak[kind] = max(self.peak[kind], self.running[kind])
        await self.clock.sleep(1)
        self.running[kind] -= 1


@pytest.fixture
def meter(clock):
    """A task that counts itself."""
    return Meter(clock)


async def test_the_limit_holds_for_all_jobs_together(clock, meter):
    """A hundred that want to run at once run ten at a time, and all of them do."""
    async with Scheduler(limit=10, clock=clock) as s:
        for number in range(100):
            s.add(meter, EVERY_HOUR, args=(f"a-{number}",), start="now")
        await clock.travel(0)
        assert (s.statistics().active_tasks, s.statistics().waiting_tasks) == (10, 90)
        await clock.travel(10)
        assert meter.peak["a"] == 10
        assert meter.order == [f"a-{number}" for number in range(100)]


async def test_a_named_limit_holds_up_no_others(clock, meter):
    """A full target leaves room for the rest."""
    async with Scheduler(limit=50, limits={"full": 1, "free": 40}, clock=clock) as s:
        for number in range(30):
            s.add(meter, EVERY_HOUR, args=(f"full-{number}",), needs="full", start="now")
        for number in range(30):
            s.add(meter, EVERY_HOUR, args=(f"free-{number}",), needs="free", start="now")
        await clock.travel(0)
        assert meter.running == {"full": 1, "free": 30}
        s.stop(grace=0)


async def test_a_task_that_waits_for_several_limits_holds_none(clock, meter):
    """All or nothing, so two that need the same two cannot block each other."""
    async with Scheduler(limits={"a": 1, "b": 1}, clock=clock) as s:
        s.add(meter, EVERY_HOUR, args=("b-0",), needs="b", start="now")
        s.add(meter, EVERY_HOUR, args=("both-0",), needs=("a", "b"), start="now")
        s.add(meter, EVERY_HOUR, args=("both-1",), needs=("b", "a"), start="now")
        s.add(meter, EVERY_HOUR, args=("a-0",), needs="a", start="now")
        await clock.travel(0)
        assert s.statistics().limits["a"].used <= 1
        assert "b-0" in meter.order
        await clock.travel(4)
        assert sorted(meter.order) == ["a-0", "b-0", "both-0", "both-1"]


async def test_a_family_gives_each_member_a_limit_of_its_own(clock, meter):
    """Made when first needed, gone when idle."""
    async with Scheduler(limits={"server:*": 2}, clock=clock) as s:
        for number in range(5):
            for server in ("a", "b"):
                s.add(meter, EVERY_HOUR, args=(f"{server}-{number}",), needs=f"server:{server}", start="now")
        await clock.travel(0)
        assert {name: limit.used for name, limit in s.statistics().limits.items()} == {"server:a": 2, "server:b": 2}
        await clock.travel(3)
        assert meter.peak == {"a": 2, "b": 2}
        assert dict(s.statistics().limits) == {}


async def test_a_member_with_a_size_of_its_own_keeps_it(clock, meter):
    """The family is for the others."""
    async with Scheduler(limits={"server:*": 1, "server:big": 3}, clock=clock) as s:
        for number in range(4):
            s.add(meter, EVERY_HOUR, args=(f"big-{number}",), needs="server:big", start="now")
            s.add(meter, EVERY_HOUR, args=(f"small-{number}",), needs="server:small", start="now")
        await clock.travel(0)
        assert meter.running == {"big": 3, "small": 1}
        await clock.travel(4)


async def test_needs_may_weigh_more_than_one_unit(clock, meter):
    """A mapping says how many."""
    async with Scheduler(limits={"memory": 10}, clock=clock) as s:
        for number in range(5):
            s.add(meter, EVERY_HOUR, args=(f"a-{number}",), needs={"memory": 4}, start="now")
        await clock.travel(0)
        assert s.statistics().limits["memory"].used == 8
        await clock.travel(3)
        assert meter.peak["a"] == 2


@pytest.mark.parametrize("verb", ["add", "update"])
def test_an_unknown_limit_is_an_error_at_once(verb):
    """It names the limit and those that there are, and nothing has changed."""
    s = Scheduler(limits={"http": 1, "server:*": 2})
    job = s.add(print, EVERY_HOUR, needs="http")
    with pytest.raises(UnknownLimit, match=r"'htpp'.*http, server:\*"):
        s.add(print, EVERY_HOUR, needs="htpp") if verb == "add" else job.update(needs="htpp")
    assert s.jobs() == [job]
    assert job.policy.needs == (("http", 1),)


def test_needs_that_can_never_be_met_are_an_error_at_once():
    """Such a job would wait for ever."""
    s = Scheduler(limits={"http": 2})
    with pytest.raises(ValueError, match="2 units and never room for 3"):
        s.add(print, EVERY_HOUR, needs={"http": 3})
    assert s.jobs() == []


async def test_priority_goes_first_among_ties(clock, meter):
    """Higher first; equals in the order added."""
    async with Scheduler(limit=1, clock=clock) as s:
        for name, priority in (("low", -1), ("a", 0), ("high", 5), ("b", 0)):
            s.add(meter, EVERY_HOUR, args=(name,), priority=priority)
        await clock.travel(3605)
        assert meter.order == ["high", "a", "b", "low"]


async def test_priority_goes_first_in_a_full_pool(clock, meter):
    """What came later overtakes what waits, if it matters more."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.add(meter, EVERY_HOUR, args=("hog",), start="now")
        await clock.travel(0)
        s.add(meter, EVERY_HOUR, args=("low",), start="now")
        clock.advance(0.1)
        s.add(meter, EVERY_HOUR, args=("high",), priority=1, start="now")
        await clock.travel(3)
        assert meter.order == ["hog", "high", "low"]


async def test_waiting_makes_up_for_priority(clock, meter):
    """Ten seconds weigh a step, so a stream of important work starves nobody."""
    async with Scheduler(limit=1, clock=clock) as s:
        for number in range(8):
            s.add(meter, Every("3s", anchor=START), id=f"vip-{number}", args=(f"vip-{number}",), priority=2)
        await clock.travel(3)
        s.add(meter, "@every 10h", args=("humble",), start="now")
        await clock.travel(40)
        assert 18 <= meter.order.index("humble") <= 28
        s.stop(grace=0)


@pytest.mark.parametrize(("old", "new"), [("full", "free"), ("full", ()), (("full", "free"), {"free": 2})])
async def test_a_run_that_waits_needs_what_its_job_needs_by_now(clock, meter, old, new):
    """It stood in line for what its job needed before: nobody waits for that any more."""
    async with Scheduler(limits={"full": 1, "free": 2}, clock=clock) as s:
        s.add(meter, EVERY_HOUR, args=("full-hog",), needs="full", start="now")
        await clock.travel(0)
        job = s.add(meter, EVERY_HOUR, args=("moved",), needs=old, start="now")
        await clock.travel(0)
        assert meter.order == ["full-hog"]
        job.update(needs=new)
        await clock.travel(0)
        assert meter.order == ["full-hog", "moved"]
        await clock.travel(1)
        assert {limit.used for limit in s.statistics().limits.values()} == {0}


async def test_a_run_that_waits_for_capacity_waits_for_new_needs_too(clock, meter):
    """It shared a place with others, which keep it."""
    async with Scheduler(limit=1, limits={"free": 1}, clock=clock) as s:
        s.add(partial(clock.sleep, 5), EVERY_HOUR, start="now")
        soon = clock.now() + timedelta(seconds=1)
        jobs = [s.add(meter, EVERY_HOUR, args=(f"a-{number}",), start=soon) for number in range(4)]
        await clock.travel(1)
        jobs[0].update(needs="free")
        jobs[2].update(needs="free")
        assert s.statistics().waiting_tasks == 4
        s.resize(10)
        await clock.travel(0)
        assert meter.running["a"] == 3
        await clock.travel(1)
        assert meter.running["a"] == 1
        await clock.travel(1)
        assert sorted(meter.order) == ["a-0", "a-1", "a-2", "a-3"]


async def test_a_run_that_waits_ranks_as_its_job_does_by_now(clock, meter):
    """So what came later cannot overtake it by the priority that both have."""
    async with Scheduler(limit=1, limits={"a": 1}, clock=clock) as s:
        s.add(meter, EVERY_HOUR, args=("hog",), start="now")
        for name, needs in (("plain", ()), ("limited", "a"), ("last", ())):
            s.add(meter, EVERY_HOUR, id=name, args=(name,), needs=needs, start="now")
        await clock.travel(0)
        s.get("last").update(priority=1)
        s.get("limited").update(priority=2)
        await clock.travel(4)
        assert meter.order == ["hog", "limited", "last", "plain"]


@pytest.mark.parametrize("changes", [{"needs": "free"}, {"needs": ()}, {"priority": 7}])
async def test_ticks_begin_in_their_order_whatever_changes_meanwhile(clock, events, changes):
    """Under ALLOW the one that waits for the old limit goes before the next tick, which asks for the new one."""
    async with Scheduler(limit=3, limits={"full": 1, "free": 1}, clock=clock) as s:
        s.listen(events)
        s.add(partial(clock.sleep, 22), EVERY_HOUR, id="hog", needs="full", start="now")
        every = Every("10s", anchor=START)
        job = s.add(partial(clock.sleep, 3), every, id="job", needs="full", overlap=Overlap.ALLOW, max_running=2)
        await clock.travel(11)
        job.update(**changes)
        await clock.travel(24)
        dues = [since_start(event.due) for event in events.of(RunStarted, job_id="job")]
        assert dues == [10, 20, 30]
        s.stop(grace=0)


async def test_raising_a_limit_starts_what_waits_and_lowering_drains(clock, meter):
    """Nothing that runs is disturbed."""
    async with Scheduler(limit=1, clock=clock) as s:
        for number in range(20):
            s.add(meter, EVERY_HOUR, args=(f"a-{number}",), start="now")
        await clock.travel(0)
        s.resize(5)
        await clock.travel(0)
        assert meter.running["a"] == 5
        s.resize(2)
        await clock.travel(0)
        assert meter.running["a"] == 5
        await clock.travel(1)
        assert meter.running["a"] == 2
        s.resize(math.inf)
        await clock.travel(0)
        assert meter.running["a"] == 15
        await clock.travel(1)
        assert len(meter.order) == 20


async def test_named_limits_can_be_changed_and_added_while_it_runs(clock, meter):
    """New names can be needed from then on."""
    async with Scheduler(limits={"http": 1}, clock=clock) as s:
        for number in range(4):
            s.add(meter, EVERY_HOUR, args=(f"http-{number}",), needs="http", start="now")
        await clock.travel(0)
        s.resize(limits={"http": 3, "dns": 1})
        s.add(meter, EVERY_HOUR, args=("dns-0",), needs="dns", start="now")
        await clock.travel(0)
        assert meter.running == {"http": 3, "dns": 1}
        await clock.travel(2)


@pytest.mark.parametrize("size", [0, -1, 1.5, math.nan, True, "5", None])
def test_a_senseless_limit_is_refused_by_name(size):
    """When it is made and when it is resized; the last good value is kept."""
    if size is not None:
        with pytest.raises(ValueError, match=r"limit|capacity"):
            Scheduler(limit=size)
        with pytest.raises(ValueError, match=r"limit|capacity"):
            Scheduler().resize(size)
    with pytest.raises(ValueError, match="http"):
        Scheduler(limits={"http": size})
    s = Scheduler(limits={"http": 3})
    with pytest.raises(ValueError, match="http"):
        s.resize(limits={"http": size})
    assert s.statistics().limits["http"].size == 3


async def test_a_failed_run_gives_its_units_back(clock, events):
    """As does one that was cancelled while it waited."""
    async with Scheduler(limit=1, limits={"http": 1}, clock=clock) as s:
        s.listen(events)

        async def fail():
            raise ValueError

        for number in range(10):
            s.add(fail, EVERY_HOUR, id=f"{number}", needs="http", start="now")
        s.get("5").remove()
        await clock.travel(0)
        assert Counter(events.outcomes()) == {Outcome.FAILED: 9}
        assert s.statistics().limits["http"].used == s.statistics().active_tasks == 0


async def test_lateness_is_measured_by_type(clock, meter):
    """The first of its needs is a job's type; each has a histogram."""
    async with Scheduler(limits={"http": 1}, clock=clock) as s:
        for number in range(3):
            s.add(meter, EVERY_HOUR, args=(f"a-{number}",), needs="http", start="now")
        s.add(meter, EVERY_HOUR, args=("b-0",), start="now")
        await clock.travel(3)
        lateness = s.statistics().lateness
        assert set(lateness) == {"http", "default"}
        assert lateness["http"].total == 3
        assert lateness["http"].quantile(0.99) >= 1.9
        assert lateness["http"].quantile(0.3) <= 1e-6
        assert lateness["default"].quantile(1) <= 1e-6


@pytest.mark.parametrize("needs", [{"http": 0}, {"http": -1}, {"http": 1.5}, {"http": True}, [1], {None: 1}])
def test_senseless_needs_are_refused_by_name(needs):
    """The message says what needs may be."""
    with pytest.raises(InvalidJob, match="needs"):
        Scheduler(limits={"http": 2}).add(print, EVERY_HOUR, needs=needs)


async def test_no_order_of_ends_leaks_a_unit(clock, events):
    """After a day of jobs of all kinds every limit stands at nought."""
    async with Scheduler(limit=7, limits={"x": 3, "y:*": 2}, clock=clock) as s:
        s.listen(events)

        async def task(number):
            await clock.sleep(number % 4)
            if number % 3 == 0:
                raise ValueError

        for number in range(60):
            needs = [(), "x", ("x", f"y:{number % 5}"), {f"y:{number % 3}": 2}][number % 4]
            s.add(task, Every("7s"), args=(number,), needs=needs, timeout=[None, "1500ms"][number % 2])
        await clock.travel(60)
        for job in s.jobs():
            job.remove()
        await clock.travel(10)
        statistics = s.statistics()
        assert statistics.active_tasks == statistics.waiting_tasks == statistics.active_jobs == 0
        assert {limit.used for limit in statistics.limits.values()} == {0}
        assert len(events.of(RunEnded)) > 200


@pytest.mark.parametrize("changes", [{"needs": "free"}, {"needs": ()}, {"priority": 9}])
async def test_no_tick_is_counted_twice_when_needs_change_before_a_stop(processes, clock, changes):
    """What is due and has no run is the newest end of a job's ticks: no newer one has begun."""
    every = Every("10s", anchor=START)
    async with processes.one(1, limits={"full": 1, "free": 1}) as s:
        s.add(partial(clock.sleep, 1_000), EVERY_HOUR, id="hog", needs="full", start="now", durable=False)
        job = s.add("work", every, id="job", needs="full", overlap=Overlap.ALLOW, max_running=3)
        await clock.travel(11)
        job.update(**changes)
        await clock.travel(14)
    clock.advance(7)
    async with processes.one(1, limits={"full": 1, "free": 1}) as s:
        await clock.travel(2)
        statistics = s.get("job").statistics()
        assert statistics.runs + statistics.missed == 3
        assert len(processes.begun) == len(set(processes.begun)) == statistics.runs
