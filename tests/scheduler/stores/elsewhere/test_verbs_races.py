"""Verbs of agents that share a store, asked at the worst moment: of both at once, and of an agent that is no more."""

from contextlib import AsyncExitStack

import pytest

from kit import until
from schedule import Every
from scheduler import DuplicateJob, Outcome, Scheduler
from scheduler.stores.postgres import PostgresStore

FAR = Every("400d")
IDS = [f"job {number}" for number in range(12)]


@pytest.fixture
async def agents(postgres_server, postgres_schema):
    """Two agents that agree on who has which job, and what their tasks have noted."""
    ran = []
    async with AsyncExitStack() as stack:

        async def start(name):
            store = PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=True, name=name)
            s = Scheduler(store=store, poll="50ms")

            async def work(word):
                ran.append((name, word))
                return word

            s.register("work", work)
            for id in IDS:
                s.add("work", FAR, id=id, args=(id,), on_conflict="keep")
            return await stack.enter_async_context(s)

        one, two = await start("one"), await start("two")
        await until(lambda: {job.agent for job in one.jobs()} == {"one", "two"} and names(one) == names(two))
        yield one, two, ran


def names(s):
    return {job.id: job.agent for job in s.jobs()}


async def test_of_two_jobs_that_are_added_at_once_one_stays(agents):
    """Both agents have it then, and the one that was second is told so."""
    one, two, _ = agents
    words, told = ("first", "second"), []
    for number in range(6):
        for s, word in zip((one, two), words, strict=True):
            s.add("work", FAR, id=f"new {number}", args=(word,))
    for s in (one, two):
        try:
            await s.flush()
        except DuplicateJob as exc:
            told.append(str(exc))
    assert told
    assert "there is a job 'new " in told[0]
    for number in range(6):
        jobs = [s.get(f"new {number}") for s in (one, two)]
        await until(lambda jobs=jobs: jobs[0].args == jobs[1].args)
        assert (await jobs[0].run_now()).result in words


async def test_of_two_jobs_that_are_kept_at_once_one_stays(agents):
    """Nobody is told anything: that is what was asked for."""
    one, two, ran = agents
    for s, word in ((one, "first"), (two, "second")):
        s.add("work", FAR, id="new", args=(word,), on_conflict="keep", start="now")
    await one.flush()
    await two.flush()
    await until(lambda: one.get("new").args == two.get("new").args)
    await until(lambda: [word for _, word in ran if word in {"first", "second"}])
    records = await one.history("new")
    assert len([word for _, word in ran if word in {"first", "second"}]) == 1
    assert len(records) == 1


async def test_an_act_for_a_job_whose_agent_stops_is_done_by_the_next(agents):
    """It was durable before the other one heard of it."""
    one, two, ran = agents
    asked = [job.run_now() for job in one.jobs() if job.agent == "two"]
    ids = sorted(asked_run.job_id for asked_run in asked)
    two.stop(grace=0)
    await one.flush()
    ends = [await each for each in asked]
    assert {end.outcome for end in ends} <= {Outcome.SUCCEEDED, Outcome.CANCELLED}
    assert sorted(word for _, word in ran) == sorted({word for _, word in ran})
    assert {word for _, word in ran} <= set(ids)
    await until(lambda: set(names(one).values()) == {"one"})
    assert (await one.get(ids[0]).run_now()).outcome is Outcome.SUCCEEDED


async def test_a_job_that_runs_on_one_is_removed_by_another(agents, postgres_server, postgres_schema):
    """Its run is cancelled there, and its record stays."""
    one, two, _ = agents
    job = next(job for job in one.jobs() if job.agent == "two")
    end = job.run_now()
    job.remove()
    await one.flush()
    await until(lambda: job.id not in two)
    assert (await end).outcome in {Outcome.SUCCEEDED, Outcome.CANCELLED, Outcome.MISSED}


async def test_history_is_that_of_all_agents(agents):
    """Whoever is asked for it."""
    one, two, _ = agents
    ends = [await job.run_now() for job in one.jobs()]
    await one.flush()
    await two.flush()
    assert {end.outcome for end in ends} == {Outcome.SUCCEEDED}
    for s in (one, two):
        records = await s.history()
        assert {(record.job_id, record.result) for record in records} == {(id, id) for id in IDS}
