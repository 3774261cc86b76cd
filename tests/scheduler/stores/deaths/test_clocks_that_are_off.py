"""An agent whose wall clock is off, or was just set, starts nothing of a store that it shares, and says so."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest

from faked_clock import FAKETIME, faked, unshare
from kit import PATIENCE, until, wait_until
from postgres_server import PostgresServer
from programs import path_of
from schedule import Cron, Every
from scheduler import ClockJumped, RunMissed, Scheduler, ShardsMoved, SkewEnded, SkewTooLarge, current_run
from scheduler.stores import LEASE, SHARDS
from scheduler.stores.postgres import PostgresStore
from timerqueue import SystemClock

AGENT = path_of("sharing_agent")
JOBS = 40
HOUR = 3600.0


class SetClock(SystemClock):
    """The machine's clock, which somebody has set by `ahead` seconds."""

    __slots__ = ("ahead", "wall")

    def __init__(self, ahead=0.0):
        super().__init__()
        self.ahead = ahead
        self.wall = lambda: time.time() + self.ahead


class Agent:
    """A scheduler with a clock of its own, and what was heard of it."""

    def __init__(self, store, ticks, clock=None):
        self.events, self.clock = [], clock or SetClock()
        self.scheduler = s = Scheduler(store=store, poll="50ms", crash_floor="50ms", clock=self.clock)

        async def work(name):
            ticks.append((name, current_run().due.timestamp()))

        s.register("work", work)
        s.listen(self.events.append, SkewTooLarge, SkewEnded, RunMissed, ClockJumped, ShardsMoved)
        for number in range(JOBS):
            schedule = Every("200ms") if number % 2 else Cron("* * * * * *")
            s.add("work", schedule, id=f"job {number}", args=(f"job {number}",), on_conflict="keep")

    def heard(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    def shards(self):
        fleet = self.scheduler.statistics().fleet
        return {} if fleet is None else {agent.name: agent.shards for agent in fleet.agents}


def names_since(ticks, since):
    return {name for name, _ in ticks[since:]}


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
async def test_an_agent_whose_clock_was_set_gives_its_shards_away_and_comes_back(shared_store, ahead):
    """It ran an hour of ticks of each job ahead of time before anybody noticed. None runs early, twice, or never."""
    ticks = []
    one, two = Agent(shared_store("one"), ticks), Agent(shared_store("two"), ticks)
    async with one.scheduler, two.scheduler:
        await until(lambda: one.shards().get("two", 0) > SHARDS / 4 and names_since(ticks, 0) >= {"job 1"})
        two.clock.ahead = ahead
        await until(lambda: one.shards() == {"one": SHARDS, "two": 0})
        (told,) = two.heard(SkewTooLarge)
        assert told.seconds == pytest.approx(ahead, abs=1.0)
        assert told.max_skew == 1.0
        (seen,) = (agent for agent in one.scheduler.statistics().fleet.agents if agent.is_off)
        assert (seen.name, seen.skew) == ("two", pytest.approx(ahead, abs=1.0))
        since = len(ticks)
        await until(lambda: len(names_since(ticks, since)) == JOBS)
        two.clock.ahead = 0.0
        await until(lambda: one.shards().get("two", 0) > SHARDS / 4)
        since = len(ticks)
        await until(lambda: len(names_since(ticks, since)) == JOBS)
        assert len(two.heard(SkewEnded)) == 1
        assert one.heard(SkewTooLarge) == []
    assert max(due for _, due in ticks) <= time.time()
    assert [tick for tick, count in Counter(ticks).items() if count > 1] == []
    missed = [event for agent in (one, two) for event in agent.heard(RunMissed)]
    assert [
        event
        for event in missed
        if not datetime.now(UTC) - timedelta(hours=0.5) <= event.first_due <= event.last_due <= datetime.now(UTC)
    ] == []


async def test_a_clock_that_is_set_right_is_followed_and_nothing_is_given_away(shared_store):
    """The store agrees with it. A step within what a clock may be off is one, too."""
    ticks = []
    agent = Agent(shared_store("one"), ticks)
    async with agent.scheduler:
        await until(lambda: len(names_since(ticks, 0)) == JOBS)
        agent.clock.ahead = 0.8
        await until(lambda: agent.heard(ClockJumped))
        since = len(ticks)
        await until(lambda: len(names_since(ticks, since)) == JOBS)
        assert agent.shards() == {"one": SHARDS}
    assert agent.heard(SkewTooLarge) == []
    assert agent.heard(ClockJumped)[0].seconds == pytest.approx(0.8, abs=0.1)


async def test_an_agent_that_comes_with_a_wrong_clock_has_nothing_until_it_is_right(shared_store):
    """Nobody has the jobs meanwhile: of two clocks that disagree the store's is taken to be right."""
    ticks = []
    agent = Agent(shared_store("one"), ticks, SetClock(HOUR))
    async with agent.scheduler:
        await until(lambda: agent.heard(SkewTooLarge))
        assert agent.shards() == {"one": 0}
        agent.clock.ahead = 0.0
        await until(lambda: len(names_since(ticks, 0)) == JOBS)
    assert max(due for _, due in ticks) <= time.time()


async def test_agents_that_agree_with_one_another_do_not_follow_a_database_that_is_off(shared_store):
    """Its clock is one of three. Who opens a store without a bound does not ask for its clock at all."""
    ticks = []
    one, two = Agent(shared_store("one"), ticks, SetClock(HOUR)), Agent(shared_store("two"), ticks, SetClock(HOUR))
    three = Agent(shared_store("three", max_skew=None), ticks, SetClock(2 * HOUR))
    async with one.scheduler, two.scheduler:
        await until(lambda: one.shards().get("two", 0) > SHARDS / 4 and one.shards()["one"] > SHARDS / 4)
        async with three.scheduler:
            await until(lambda: one.shards().get("three", 0) > 0)
        assert three.heard(SkewTooLarge) == []


@pytest.mark.slow
def test_the_clock_of_a_process_is_set_while_it_runs(postgres_server, postgres_schema, tmp_path):
    """Its operating system tells it another time from one moment to the next, and then the right one again."""
    if FAKETIME is None:
        pytest.skip("no libfaketime on this machine: apt-get install faketime")
    log, clock = tmp_path / "runs", tmp_path / "clock"
    clock.write_text("+0")
    shared = {"dsn": postgres_server.dsn, "schema": postgres_schema, "log": str(log), "jobs": JOBS, "every": "200ms"}
    agents = []
    for name, env in (("one", {}), ("two", faked(FAKETIME, clock))):
        with (tmp_path / name).open("w") as errors:
            command = [sys.executable, AGENT, json.dumps(shared | {"name": name})]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
            agents.append(subprocess.Popen(command, text=True, env=os.environ | env, **pipes))
        assert agents[-1].stdout.readline() == "runs\n"
        unshare(agents[-1].pid)

    def runs():
        return [line.split() for line in log.read_text("utf-8").splitlines()]

    def wait_until_run_by(names):
        since = len(runs())
        wait_until(lambda: len({job for _, job, *_ in runs()[since:]}) == JOBS)
        wait_until(lambda: {agent for agent, *_ in runs()[-JOBS:]} == names)

    try:
        wait_until_run_by({"one", "two"})
        clock.write_text("+3600")
        wait_until(lambda: "other nodes" in (tmp_path / "two").read_text("utf-8"))
        wait_until_run_by({"one"})
        clock.write_text("+0")
        wait_until_run_by({"one", "two"})
    finally:
        for agent in agents:
            agent.communicate(timeout=PATIENCE)
    assert max(int(due) for _, _, due, _ in runs()) <= time.time() * 1e6
    assert [tick for tick, count in Counter((job, due) for _, job, due, _ in runs()).items() if count > 1] == []


@pytest.mark.skipif(FAKETIME is None, reason="no libfaketime on this machine: apt-get install faketime")
@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_step_of_the_servers_clock_buries_nobody_who_lives_and_lets_nobody_live_on_who_is_dead(step):
    """By its clock each lease has ended then, or goes on for an hour."""
    with PostgresServer(faketime=FAKETIME) as server, ExitStack() as stack:
        one, two = (PostgresStore(server.dsn, shared=True, name=name) for name in ("one", "two"))
        for store in (one, two):
            store.open(0, lambda: None)
            stack.callback(store.close)

        def left():
            return next(peer.left for peer in two.sharing.renew().peers if peer.epoch == one.epoch)

        assert 0 < left() <= LEASE
        server.step(step)
        assert 0 < left() <= LEASE
        one.sharing.renew()
        assert 0 < left() <= LEASE
        wait_until(lambda: left() < 0)
        assert two.sharing.bury([one.epoch]) == [one.epoch]
