"""Jobs for agents with some labels, whose starts stand in a beanstalkd: only those agents run them, or they wait.

On a real PostgreSQL and a real beanstalkd.
"""

import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from kit import until
from queued_fleets import QueuedFleet
from scheduler import InvalidJob, Outcome, Scheduler, audit_store
from scheduler.queues import Kind, Place, Tick
from scheduler.queues.beanstalkd import BeanstalkdQueue
from scheduler.queues.local import LocalQueue
from scheduler.stores import SCHEDULED
from scheduler.stores.memory import MemoryStore
from scheduler.stores.postgres import PostgresStore
from timerqueue import SystemClock

EU, US = {"region": "eu"}, {"region": "us"}
IN_EU = "region=eu"


@pytest.fixture(scope="module")
def anyio_backend():
    """What the queue and the store do, they do in threads: test_dispatch.py has both backends."""
    return "asyncio"


@pytest.fixture
def fleet(postgres_server, postgres_schema, broker):
    found = QueuedFleet(postgres_server.dsn, postgres_schema, broker)
    yield found
    found.close()


def add(s, ids, where=IN_EU, every="@every 1s"):
    return [s.add("work", every, id=id, where=where) for id in ids]


def ran(fleet, name):
    """Which jobs have run on that agent."""
    return {job_id for job_id, _ in fleet.begun[name]}


def is_settled(fleet):
    """Tell whether the store knows of each execution where it stands."""
    return all(row.status == SCHEDULED for row in fleet.live())


@asynccontextmanager
async def apart(fleet):
    """An agent in each of two regions."""
    async with fleet.agent("us", labels=US) as us, fleet.agent("eu", labels=EU | {"zone": "a"}) as eu:
        yield us, eu
    fleet.check()


async def test_labels_that_no_job_asks_for_any_more_leave_nothing(fleet, monkeypatch):
    """Their shards stood in the table for ever, and each agent read them at each renewal. All else goes on."""
    monkeypatch.setattr("scheduler._fleet.queued.FORGETS", 0.0, raising=False)
    count = "SELECT count(*) FROM labelled_shard"
    async with fleet.agent("eu", labels=EU) as s:
        add(s, ["stays"], None)
        jobs = add(s, ["a", "b"])
        await until(lambda: ran(fleet, "eu") == {"stays", "a", "b"})
        await until(lambda: fleet.ask(count)[0][0] > 0)
        for job in jobs:
            job.remove()
        await until(lambda: fleet.ask(count)[0][0] == 0)
        await fleet.goes_on(2)
        add(s, ["c"])
        await until(lambda: "c" in ran(fleet, "eu"))
    fleet.check()


async def test_jobs_run_where_their_labels_are(fleet):
    """Whoever adds them. Those that ask for none run on both."""
    jobs, rest = [f"job-{number}" for number in range(10)], [f"any-{number}" for number in range(20)]
    async with apart(fleet) as (us, eu):
        add(us, jobs)
        add(eu, ["two labels"], "zone=a, region=eu")
        add(us, rest, None)
        await until(lambda: ran(fleet, "eu") >= {*jobs, "two labels"} and len(fleet.runs) > 120)
        await until(lambda: ran(fleet, "us") & set(rest) and ran(fleet, "eu") & set(rest))
        assert ran(fleet, "us").isdisjoint({*jobs, "two labels"})
        assert us.statistics().queue.dropped.get("sent on", 0) == 0
        assert {job.error for job in us.jobs()} == {None}


async def test_jobs_that_nobody_may_have_wait_and_say_so(fleet, caplog):
    """Their executions stand in the server. They go on as soon as an agent fits."""
    caplog.set_level(logging.INFO, "scheduler")
    async with fleet.agent("us", labels=US) as us:
        jobs = add(us, ["a", "b"])
        await us.flush()
        await until(lambda: us.statistics().fleet.waiting == {IN_EU: 2})
        assert {job.error for job in jobs} == {"no node has region=eu"}
        await until(lambda: "no node has region=eu: jobs for such nodes wait" in caplog.text)
        await until(lambda: len(fleet.live()) == 2 and is_settled(fleet))
        assert PostgresStore(fleet.dsn, schema=fleet.schema).fleet().waiting == {IN_EU: 2}
        assert us._memory.membership.dispatch.queue.census(Kind.RUN).total == 2
        await us._memory.membership.audit.audit()
        await until(lambda: min(row.due_us for row in fleet.live()) < SystemClock().wall() * 1e6)
        assert fleet.runs == []
        async with fleet.agent("eu", labels=EU):
            await until(lambda: ran(fleet, "eu") == {"a", "b"} and us.statistics().fleet.waiting == {})
            assert {job.error for job in jobs} == {None}
    assert ran(fleet, "us") == set()
    fleet.check()


async def test_any_agent_is_asked_for_a_job_that_only_others_may_run(fleet):
    """It is done by one that has the labels, durable once `flush` has returned."""
    async with apart(fleet) as (us, _):
        (job,) = add(us, ["job"], every="@every 1h")
        answer = await job.run_now()
        assert (answer.outcome, ran(fleet, "eu"), ran(fleet, "us")) == (Outcome.SUCCEEDED, {"job"}, set())
        at = datetime.now(UTC) + timedelta(minutes=10)
        job.set_next_start(at)
        await us.flush()
        await until(lambda: [row.due_us for row in fleet.live()] == [round(at.timestamp() * 1e6)])


async def test_a_job_that_is_replaced_goes_to_others(fleet):
    """Also if it starts at the same instant as before, and its execution stands with those it was for."""
    at = datetime.now(UTC) + timedelta(minutes=30)
    async with apart(fleet) as (us, eu):
        us.add("work", "@every 1h", id="job", start=at, where=IN_EU)
        await us.flush()
        await until(lambda: fleet.live() and is_settled(fleet))
        eu.add("work", "@every 1h", id="job", start=at, where="region=us", on_conflict="replace")
        await eu.flush()
        answer = await eu.get("job").run_now()
        assert (answer.outcome, ran(fleet, "us"), ran(fleet, "eu")) == (Outcome.SUCCEEDED, {"job"}, set())
        await until(lambda: [row.due_us for row in fleet.live()] == [round(at.timestamp() * 1e6)])
        await eu._memory.membership.audit.audit()
        await until(lambda: is_settled(fleet) and stands_for(fleet, eu, "region=us"))
        with pytest.raises(InvalidJob, match="keeps its where"):
            eu.get("job").update(where=IN_EU)


def stands_for(fleet, s, where):
    """Tell whether the one execution stands with those that have these labels."""
    (row,) = fleet.live()
    tick = Tick(row.job_id, row.due_us, where=where)
    (position,) = s._memory.membership.dispatch.queue.look([(tick, Place(row.instance, row.number))])
    return position is not None and not position.is_astray


async def add_for_others(fleet, us):
    """Add a job whose labels are not ours, and wait until its execution stands in the queue."""
    add(us, ["job"], every="@every 2s")
    await us.flush()
    await until(lambda: fleet.live() and is_settled(fleet))


async def is_sent_on(fleet, us):
    """Put its execution where ours are too, and wait until we have sent it on."""
    (row,) = fleet.live()
    us._memory.membership.dispatch.queue.put([Tick(row.job_id, row.due_us)])
    await until(lambda: us.statistics().queue.dropped.get("sent on"))


async def test_what_stands_with_others_than_its_own_is_sent_on(fleet):
    """An older agent has put it that knows no labels. Whoever takes it does not run it."""
    async with fleet.agent("us", labels=US) as us:
        await add_for_others(fleet, us)
        await is_sent_on(fleet, us)
        assert fleet.runs == []
        async with fleet.agent("eu", labels=EU):
            await fleet.goes_on(2)
        assert ran(fleet, "us") == set()
    fleet.check()


async def test_what_was_taken_for_ours_is_sent_on_when_its_row_has_come(fleet):
    """The row says for whom a job is, whatever this agent knows of it."""
    async with fleet.agent("us", labels=US) as us:
        await add_for_others(fleet, us)
        us._memory.membership.dispatch.routing.is_for_us = lambda job_id: True
        await is_sent_on(fleet, us)
        assert (fleet.runs, us.statistics().queue.held) == ([], 0)
        async with fleet.agent("eu", labels=EU):
            await fleet.goes_on(2)
        assert ran(fleet, "us") == set()
    fleet.check()


async def test_an_audit_moves_what_stands_with_others_than_its_own(fleet):
    """What waits for an agent that is not there would never come out."""
    async with fleet.agent("us", labels=US) as us:
        add(us, ["job"], every="@every 1h")
        await us.flush()
        await until(lambda: fleet.live() and is_settled(fleet))
        queue, (row,) = us._memory.membership.dispatch.queue, fleet.live()
        (place,) = queue.put([Tick(row.job_id, row.due_us)])
        fleet.ask("UPDATE execution SET number = %s RETURNING 1", place.number)
        for_eu = Tick(row.job_id, row.due_us, where=IN_EU)
        assert queue.look([(for_eu, place)])[0].is_astray
        assert await us._memory.membership.audit.audit() == 1
        await until(lambda: (new := fleet.live()[0]).status == SCHEDULED and new.number != place.number)
        assert queue.look([(for_eu, place)]) == [None]
        (place,) = queue.put([Tick(row.job_id, row.due_us)])
        fleet.ask("UPDATE execution SET number = %s RETURNING 1", place.number)
        visitor = BeanstalkdQueue(fleet.broker.address, reservers=0)
        store = PostgresStore(fleet.dsn, schema=fleet.schema, shared=True)
        found = await anyio.to_thread.run_sync(audit_store, store, visitor)
        assert (found.requeued, found.left) == (1, 0)
        assert queue.look([(for_eu, place)]) == [None]


async def test_a_server_that_loses_everything_has_all_again_where_it_belongs(fleet, broker):
    """An audit by an agent that may not run it puts it to those that may."""
    async with apart(fleet) as (us, eu):
        add(us, [f"job-{number}" for number in range(20)], every="@every 1h")
        await us.flush()
        queue = us._memory.membership.dispatch.queue
        await until(lambda: queue.census(Kind.RUN).total == 20 and is_settled(fleet))
        broker.restart(log=False)
        assert queue.census(Kind.RUN).total == 0
        await us._memory.membership.audit.audit()
        await until(lambda: queue.census(Kind.RUN).total >= 19)
        await until(lambda: is_settled(fleet))
        assert await us._memory.membership.audit.audit() == 0
        assert eu.statistics().queue.dropped.get("sent on", 0) == 0


async def test_while_the_server_is_away_they_wait_for_it(fleet, broker):
    """They stand in an agent that may not run them: it gives them to the server as soon as that is back."""
    async with apart(fleet) as (us, _):
        broker.kill()
        add(us, ["job"])
        await us.flush()
        await until(lambda: us.statistics().queue.dropped.get("sent on"))
        assert fleet.runs == []
        broker.start()
        await fleet.goes_on(2)
        assert ran(fleet, "us") == set()


async def test_parts_are_not_in_a_queue(fleet):
    """What several agents run has no owners of its parts there: it is refused, and says why."""
    async with fleet.agent("eu", labels=EU) as s:
        with pytest.raises(InvalidJob, match=r"agents=2 chooses among nodes.*one node takes each start of a job"):
            s.add("work", "@every 1s", id="job", agents=2)
        assert s.jobs() == []


def test_labels_in_a_queue_need_agents_that_share_a_store():
    """Where nobody else could have the job it would wait for ever."""
    s = Scheduler(store=MemoryStore(), queue=LocalQueue())
    s.register("work", print)
    with pytest.raises(InvalidJob, match="it is for stored jobs of nodes that share a store"):
        s.add("work", "@every 1s", id="job", where=IN_EU)
