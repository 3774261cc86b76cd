"""Signals in a fleet: whichever agent one comes to, the agent that has the target judges it."""

from contextlib import asynccontextmanager

import pytest

from agents_in_place import Place
from kit import until
from scheduler import RunEnded, RunMissed, Scheduler, StoreDown, StoreUp
from timerqueue import SystemClock
from uptime_agent.checks import Said, Signal
from uptime_agent.checks.contract.check import Attempt
from uptime_agent.checks.contract.stopwatch import Stopwatch
from uptime_agent.config.config import parse_config
from uptime_agent.push import LIMIT, MAX_AT_ONCE, Signals
from uptime_agent.standing import TASK
from uptime_agent.targets import add_job
from uptime_agent.web import Peers

NAMES = [f"backup{number}" for number in range(20)]
FILE = 'store = "memory"\n[push]\nlisten = "127.0.0.1:8075"\n' + "".join(
    f'[[check]]\nname = "{name}"\nurl = "push://{name}"\ntoken = "the-token-of-{name}"\ninterval = "30d"\n'
    for name in NAMES
)


@pytest.fixture(scope="module")
def anyio_backend():
    """The store is asked in threads; which loop waits for them makes no difference."""
    return "asyncio"


class Agent:
    """One of two agents that share a store and know the same targets; what it has judged."""

    def __init__(self, scheduler, behind=0.0):
        self.scheduler, self.judged = scheduler, []
        self.targets = {each.name: each for each in parse_config(FILE, "uptime.toml", {}).targets}
        scheduler.register(TASK, self.check)
        self.signals = Signals(scheduler, lambda _: None, now=lambda: SystemClock().wall() - behind, peers=Peers(10))
        scheduler.listen(self.signals.listen, RunMissed, RunEnded, StoreDown, StoreUp)
        self.signals.follow(self.targets.values())
        for each in self.targets.values():
            add_job(scheduler, each, None, 10.0)

    async def check(self, name):
        found = await self.targets[name].check.attempt(Attempt("", Stopwatch(SystemClock()), 1.0))
        self.judged.append((name, found.status.value, found.detail.get("run"), found.detail.get("log")))

    def has(self, name):
        return self.scheduler.get(name).is_ours

    async def send(self, name, said=Said.SUCCESS, **more):
        signal = Signal(said=said, at=SystemClock().wall(), **more)
        return await self.signals.take(f"the-token-of-{name}", signal, "192.0.2.1")


@asynccontextmanager
async def agent(place, name, behind=0.0):
    async with Scheduler(store=place.store(name), limits={"push": 10, LIMIT: MAX_AT_ONCE}, poll="50ms") as s:
        yield Agent(s, behind)
        s.stop(grace=0)


@pytest.fixture
def place(postgres_server, postgres_schema):
    return Place(postgres_server.dsn, postgres_schema)


async def test_any_agent_takes_a_signal_and_the_one_that_has_the_target_judges_it(place):
    """The others answered 503, and no script can know whom to ask: behind a balancer half of the signals failed."""
    async with agent(place, "one") as one, agent(place, "two") as two:
        await until(lambda: {one.has(name) for name in NAMES} == {True, False} == {two.has(name) for name in NAMES})
        for name in NAMES:
            assert await one.send(name, Said.FAIL, run="7", code=3, log="disk full")
            owner = one if one.has(name) else two
            await until(lambda owner=owner, name=name: (name, "down", "7", "disk full") in owner.judged)
            deadline = owner.scheduler.get(name).next_start
            assert deadline.timestamp() > SystemClock().wall() + 29 * 86_400
        assert len(one.judged + two.judged) == len(NAMES)


async def test_a_signal_is_handed_on_however_long_its_thread_waited_for_the_processor(place):
    """Its job was to start a millisecond later. By the time it was added that was over, and the sender got an error."""
    async with agent(place, "one") as one, agent(place, "two", behind=0.5) as two:
        await until(lambda: {one.has(name) for name in NAMES} == {True, False} == {two.has(name) for name in NAMES})
        theirs = next(name for name in NAMES if one.has(name))
        assert await two.send(theirs, run="1")
        await until(lambda: (theirs, "up", "1", None) in one.judged + two.judged)  # it may move meanwhile


async def test_a_signal_that_was_handed_on_survives_the_agent_that_took_it(place):
    """OK is said once it is in the store: whoever has the target next judges it."""
    async with agent(place, "one") as one:
        async with agent(place, "two") as two:
            await until(lambda: {two.has(name) for name in NAMES} == {True, False})
            theirs = next(name for name in NAMES if not two.has(name))
            one.check = None
            assert await two.send(theirs, Said.SUCCESS, run="1")
        await until(lambda: (theirs, "up", "1", None) in one.judged)


async def test_an_agent_moves_no_deadline_of_a_target_that_another_has(place):
    """Each that started, or read its configuration again, gave all targets of the others another interval of time: a
    silent one was told late, or never.
    """
    async with agent(place, "one") as one, agent(place, "two") as two:
        await until(lambda: {one.has(name) for name in NAMES} == {True, False} == {two.has(name) for name in NAMES})
        theirs = next(name for name in NAMES if two.has(name))
        assert await two.send(theirs, run="1")
        deadline = two.scheduler.get(theirs).next_start
        one.signals.plan()
        assert await one.send(theirs, Said.LOG, run="2")  # comes after whatever was asked for before
        await until(lambda: any(name == theirs and run == "2" for name, _, run, _ in two.judged))
        assert two.scheduler.get(theirs).next_start == deadline
