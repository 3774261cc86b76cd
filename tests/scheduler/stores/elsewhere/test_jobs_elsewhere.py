"""A job that another agent has: who has it, and what is known of it here."""

from datetime import UTC, datetime, timedelta

import pytest

from kit import until
from schedule import After, Every
from scheduler import JobState, Scheduler
from scheduler.stores.postgres import PostgresStore

IDS = [f"job {number}" for number in range(40)]


async def nothing():
    pass


@pytest.fixture
def agent(postgres_server, postgres_schema):
    def agent(name):
        s = Scheduler(
            store=PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=True, name=name), poll="50ms"
        )
        s.register("nothing", nothing)
        return s

    return agent


def of(s, agent):
    return [job for job in s.jobs() if job.agent == agent]


async def test_each_agent_says_who_has_which_job(agent):
    """So does what it prints of them, and its statistics."""
    async with agent("one") as one:
        jobs = [one.add("nothing", Every("1h"), id=id) for id in IDS]
        await one.flush()
        assert {job.agent for job in jobs} == {"one"}
        async with agent("two") as two:
            await until(lambda: of(one, "two") and [j.agent for j in one.jobs()] == [two.get(i).agent for i in IDS])
            await until(lambda: one.statistics().fleet.jobs_elsewhere == len(of(one, "two")) > 0)
            theirs = of(one, "two")
            assert len(theirs) < len(IDS)
            assert repr(theirs[0]) == f"<Job {theirs[0].id!r} @every 1h scheduled, node two>"
            fleet = one.statistics().fleet
            assert fleet.me == "one"
            assert fleet.jobs_elsewhere == len(theirs)
            assert {agent.name for agent in fleet.agents} == {"one", "two"}
            assert sum(agent.shards for agent in fleet.agents) == 1_024


async def test_a_job_elsewhere_is_not_disabled(agent):
    """It is as its row says: scheduled, or paused, and next at what its schedule says."""
    async with agent("one") as one:
        for id in IDS:
            one.add("nothing", Every("1h"), id=id)
        await one.flush()
        async with agent("two") as two:
            await until(lambda: of(one, "two") and [j.agent for j in one.jobs()] == [two.get(i).agent for i in IDS])
            job = of(one, "two")[0]
            there = two.get(job.id)
            assert (job.state, job.error) == (JobState.SCHEDULED, None)
            assert job.next_start == there.next_start
            assert job.next_starts(3) == there.next_starts(3)
            there.pause("by hand")
            await until(lambda: job.state is JobState.DISABLED)
            assert "by hand" in job.error
            assert (job.next_start, job.next_starts(3)) == (None, [])
            there.resume()
            await until(lambda: job.state is JobState.SCHEDULED)
            assert job.next_start is not None


async def test_what_counts_from_the_end_of_a_run_is_not_known_elsewhere(agent):
    """Its agent knows when that was."""
    async with agent("one") as one:
        for id in IDS:
            one.add("nothing", After("1h"), id=id, start=datetime.now(UTC) + timedelta(hours=1))
        await one.flush()
        async with agent("two"):
            await until(lambda: of(one, "two"))
            assert of(one, "two")[0].next_start is None


async def test_without_a_shared_store_nobody_is_named(postgres_server, postgres_schema):
    """There is nobody else."""
    s = Scheduler(store=PostgresStore(postgres_server.dsn, schema=postgres_schema))
    s.register("nothing", nothing)
    job = s.add("nothing", Every("1h"), id="job")
    async with s:
        assert job.agent is None
        assert s.statistics().fleet is None
    assert "agent" not in repr(job)
