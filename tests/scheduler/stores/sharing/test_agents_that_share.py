"""Agents that share a store: each has a part of the jobs, and the others' when they go."""

from collections import Counter
from datetime import UTC, datetime

import anyio

from kit import PATIENCE
from schedule import Every
from scheduler import Scheduler, current_run

JOBS = 60


class Log:
    """What the tasks themselves have noted: who ran which tick."""

    def __init__(self):
        self.runs = []
        self.changed = anyio.Event()

    def task(self, agent):
        async def run(name):
            self.runs.append((agent, name, current_run().due))
            self.changed.set()
            self.changed = anyio.Event()

        return run

    async def until(self, reached):
        with anyio.fail_after(PATIENCE):
            while not reached(self):
                await self.changed.wait()

    def agents(self, since=0):
        return Counter(agent for agent, _, _ in self.runs[since:])


def scheduler(shared_store, log, agent):
    s = Scheduler(store=shared_store(), poll="50ms")
    s.register("work", log.task(agent))
    for number in range(JOBS):
        s.add("work", Every("200ms"), id=f"job {number}", args=(f"job {number}",), on_conflict="keep")
    return s


async def test_two_agents_share_the_jobs_and_one_has_the_others_when_it_stops(shared_store):
    """Each job runs on one of them, and every tick once."""
    log = Log()
    async with scheduler(shared_store, log, "one") as one:
        await log.until(lambda log: len({name for _, name, _ in log.runs}) == JOBS)
        async with scheduler(shared_store, log, "two"):
            await log.until(lambda log: log.agents()["two"] > JOBS)
            since = len(log.runs)
            await log.until(lambda log: all(log.agents(since)[name] > JOBS for name in ("one", "two")))
            assert {job.id for job in one.jobs()} == {f"job {number}" for number in range(JOBS)}
        since = len(log.runs)
        await log.until(lambda log: len({name for _, name, _ in log.runs[since:]}) == JOBS)
        assert log.agents(since)["two"] == 0
    twice = [tick for tick, count in Counter((name, due) for _, name, due in log.runs).items() if count > 1]
    assert twice == []
    assert datetime.now(UTC)


def test_a_scheduler_that_shares_is_made_anywhere(shared_store):
    """Most programs make it before they start an event loop. It raised NoEventLoopError."""
    assert Scheduler(store=shared_store()).jobs() == []
