"""Schedulers that share a real PostgreSQL and a real beanstalkd: each tick runs once, whatever happens to either."""

from collections import Counter
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

import beanstalkd_server
from fleet_agent import SteppedClock
from kit import settle, until
from queued_fleets import QueuedFleet
from schedule import Missed
from scheduler import Outcome, Overlap, RunEnded
from scheduler.queues import Kind, Place, QueueUnavailable, Tick
from scheduler.queues._beanstalkd import connection
from scheduler.stores import SCHEDULED


@pytest.fixture(scope="module")
def anyio_backend():
    """What the queue and the store do, they do in threads: test_dispatch.py has both backends."""
    return "asyncio"


@pytest.fixture
def broker():
    if why := beanstalkd_server.why_not(steps=True):
        pytest.skip(why)
    with beanstalkd_server.BeanstalkdServer(steps=True, options=("-s", "65536")) as server:
        yield server


@pytest.fixture
def fleet(postgres_server, postgres_schema, broker):
    found = QueuedFleet(postgres_server.dsn, postgres_schema, broker)
    yield found
    found.close()


async def test_agents_share_the_runs_of_all_jobs(fleet):
    """Whoever is there takes what is due, also one that has added none of the jobs. No tick runs twice."""
    async with fleet.agent("a") as a, fleet.agent("b"):
        for number in range(40):
            a.add("work", "@every 1s", id=f"job-{number}")
        await until(lambda: len(fleet.runs) >= 120)
        fleet.check()
        assert len({job_id for job_id, _ in fleet.runs}) == 40
        assert fleet.begun["b"], "the one that has added nothing takes part"
    live = [row.job_id for row in fleet.live()]
    assert len(live) == len(set(live)), "a job has more than one"


@asynccontextmanager
async def queued(fleet):
    """Two agents and a job that one of them has added; the other one's handle of it."""
    async with fleet.agent("a") as a, fleet.agent("b") as b:
        a.add("work", "@every 1h", id="job", start=datetime.now(UTC) + timedelta(minutes=30))
        await a.flush()
        await until(lambda: fleet.live() and is_settled(fleet) and any(job.id == "job" for job in b.jobs()))
        yield b, b.get("job")
        await until(lambda: b._memory.membership.dispatch.queue.census(Kind.RUN).total == 1)
        fleet.check()


async def test_any_agent_is_asked_for_a_job_that_stands_in_the_queue(fleet):
    """It is fetched, runs, is skipped and set, and stands in the queue once afterwards, as its row says."""
    async with queued(fleet) as (s, job):
        (first,) = fleet.live()
        answer = await job.run_now()
        assert (answer.outcome, len(fleet.runs)) == (Outcome.SUCCEEDED, 1)
        job.skip()
        await s.flush()
        await until(
            lambda: [row.due_us for row in fleet.live()] == [first.due_us + 3_600_000_000] and is_settled(fleet)
        )
        at = datetime.now(UTC) + timedelta(minutes=10)
        job.set_next_start(at)
        await s.flush()
        await until(lambda: [row.due_us for row in fleet.live()] == [round(at.timestamp() * 1e6)])
    assert len(fleet.runs) == 1


async def test_what_was_asked_of_a_job_in_the_queue_is_done_though_the_asker_is_gone(fleet):
    """It is a row, and whoever has the job's shard finds it."""
    async with queued(fleet) as (s, job):
        s._memory.membership.dispatch.fetching.fetch = lambda requests: None
        job.run_now()
        await s.flush()
        await until(lambda: len(fleet.runs) == 1)


def is_settled(fleet):
    """Tell whether the store knows of each execution where it stands."""
    return all(row.status == SCHEDULED for row in fleet.live())


async def test_an_agent_without_reservers_adds_jobs_and_leaves_their_runs_to_others(fleet):
    """It may live as long as it likes: nothing comes out to it."""
    async with fleet.agent("adds", reservers=0) as s, fleet.agent("runs"):
        for number in range(20):
            s.add("work", "@every 1s", id=f"job-{number}")
        await until(lambda: len({job_id for job_id, _ in fleet.begun["runs"]}) == 20)
        assert fleet.begun["adds"] == []
        assert s.statistics().queue.held == 0
    fleet.check()


async def test_a_server_that_loses_everything_has_all_again_after_one_audit(fleet, broker):
    """Each job has exactly one execution in it, and no tick has run twice."""
    async with fleet.agent("a") as a:
        for number in range(200):
            a.add("work", "@every 1h", id=f"job-{number}")
        await a.flush()
        queue = a._memory.membership.dispatch.queue
        await until(lambda: queue.census(Kind.RUN).total == 200 and is_settled(fleet))
        broker.restart(log=False)
        assert queue.census(Kind.RUN).total == 0
        await a._memory.membership.audit.audit()
        await until(lambda: queue.census(Kind.RUN).total >= 199)  # one may have been due just now
        live = fleet.live()
        assert len({row.job_id for row in live}) == len(live) >= 199
        await a._memory.membership.audit.audit()
        assert queue.census(Kind.RUN).total <= 200


@pytest.mark.slow
async def test_a_server_that_keeps_its_log_has_all_without_an_audit(fleet, broker):
    """What was in it when it was killed comes out in time, once."""
    async with fleet.agent("a") as a:
        for number in range(20):
            a.add("work", "@every 1s", id=f"job-{number}")
        await until(lambda: len(fleet.runs) >= 40)
        broker.restart(log=True)
        before = len(fleet.runs)
        await until(lambda: len(fleet.runs) >= before + 60)
        fleet.check()


async def test_what_comes_out_again_while_it_is_at_work_is_no_crash(fleet, broker):
    """A server that kept its log gives all of it anew that we had taken, also what is just about to end."""
    ended = []
    async with fleet.agent("one") as s:
        s.listen(ended.append, RunEnded)
        for number in range(60):
            s.add("work", "@every 1s", id=f"job-{number}")
        for _ in range(3):
            await fleet.goes_on(120)
            broker.restart()
        before = len(fleet.runs)
        await fleet.goes_on(120)
        assert [event for event in ended if event.outcome is Outcome.CRASHED] == []
        assert len({job_id for job_id, _ in fleet.runs[before:]}) == 60
    fleet.check()


async def test_a_server_that_is_drained_makes_nothing_late(fleet, broker):
    """The next starts wait in the agent itself, and it says so."""
    async with fleet.agent("a") as a:
        for number in range(20):
            a.add("work", "@every 1s", id=f"job-{number}")
        await until(lambda: len(fleet.runs) >= 20)
        broker.drain()
        before = len(fleet.runs)
        await until(lambda: len(fleet.runs) >= before + 60)
        fleet.check()
        assert list(a.statistics().queue.refused) == ["the server is being drained"]


async def test_a_server_whose_disk_is_full_makes_nothing_late(fleet, broker):
    """It says so of each put, and takes again as soon as there is room."""
    async with fleet.agent("a") as a:
        for number in range(10):
            a.add("work", "@every 1s", id=f"job-{number}")
        await until(lambda: len(fleet.runs) >= 10)
        with broker.full():
            before = len(fleet.runs)
            await until(lambda: len(fleet.runs) >= before + 30)
            assert list(a.statistics().queue.refused) == ["the server has no room, in memory or on its disk"]
        placed = a._memory.membership.dispatch.queue.statistics().placed
        await until(lambda: a._memory.membership.dispatch.queue.statistics().placed > placed)
        before = len(fleet.runs)
        await until(lambda: len(fleet.runs) >= before + 20)
        fleet.check()


async def test_a_server_that_stands_still_loses_nothing(fleet, broker, monkeypatch):
    """What would be put meanwhile waits in the agent; what it held comes out when it goes on."""
    monkeypatch.setattr(connection, "PATIENCE", 0.5)
    async with fleet.agent("a") as a:
        for number in range(10):
            a.add("work", "@every 1s", id=f"job-{number}")
        await until(lambda: len(fleet.runs) >= 10)
        with broker.frozen():
            await until(lambda: "the server cannot be reached" in a.statistics().queue.refused)
        done = len(fleet.runs)
        await until(lambda: {job_id for job_id, _ in fleet.runs[done:]} == {f"job-{number}" for number in range(10)})
        fleet.check()


def answers(queue):
    """Tell whether its server can be asked."""
    with suppress(QueueUnavailable):
        return bool(queue.instance())
    return False


@pytest.mark.parametrize("log", [True, False])
async def test_a_server_that_is_killed_within_a_put_has_all_again_after_one_audit(fleet, broker, monkeypatch, log):
    """Of some nobody knows whether they arrived. Each job has an execution afterwards, and its row says where."""
    exchange, exchanges = connection.BeanstalkConnection.exchange, []

    def killing(self, commands):
        if len(commands) > 1:
            exchanges.append(commands)
            if len(exchanges) == 2:
                broker.restart(log=log)
        return exchange(self, commands)

    async with fleet.agent("a") as a:
        await until(lambda: a._memory.membership.dispatch.queue.census(Kind.RUN).total == 0)
        monkeypatch.setattr(connection.BeanstalkConnection, "exchange", killing)
        for number in range(250):
            a.add("work", "@every 1d", id=f"job-{number}", start=datetime.now(UTC) + timedelta(hours=1))
        await a.flush()
        await until(lambda: len(fleet.live()) == 250)
        await until(lambda: answers(a._memory.membership.dispatch.queue))
        await until(
            lambda: not a._memory.membership.dispatch.publisher._on_way
        )  # an audit leaves alone what has not arrived yet
        await a._memory.membership.audit.audit()
        queue = a._memory.membership.dispatch.queue

        def stand():
            places = [(Tick(row.job_id, row.due_us), Place(row.instance, row.number)) for row in fleet.live()]
            return None not in queue.look(places)

        await until(lambda: is_settled(fleet) and stand())
        assert len({row.job_id for row in fleet.live()}) == 250


@pytest.mark.slow
async def test_a_server_that_is_gone_makes_nothing_late(fleet, broker):
    """What it would not have waits in the agent; what it had comes out again when it is back, with its log."""
    async with fleet.agent("a") as a:
        for number in range(20):
            a.add("work", "@every 1s", id=f"job-{number}")
        await until(lambda: len(fleet.runs) >= 20)
        broker.kill()
        await settle()
        broker.start()
        before = len(fleet.runs)
        await until(lambda: len(fleet.runs) >= before + 60)
        fleet.check()


@pytest.mark.slow
@pytest.mark.parametrize("step", [3_600, -3_600])
async def test_a_step_of_the_server_s_clock_lets_nothing_begin_early(fleet, broker, step):
    """Forward: what comes out too early goes back. Back: what would be an hour late is put anew by the next audit."""
    async with fleet.agent("a") as a:
        for number in range(20):
            a.add("work", "@every 1s", id=f"job-{number}")
        await until(lambda: len(fleet.runs) >= 20)
        broker.step(step)
        await a._memory.membership.audit.audit()
        before = len(fleet.runs)
        await until(lambda: len(fleet.runs) >= before + 60)
        fleet.check()


@pytest.mark.slow
async def test_an_agent_whose_clock_is_set_and_set_back_runs_nothing_twice_and_loses_nothing(fleet):
    """What it had taken is planned by the clock that it had before; and its grid is that of the others afterwards."""
    clock = SteppedClock()
    async with fleet.agent("a") as a, fleet.agent("b", clock=clock) as b:
        every = {"missed": Missed.ALL, "catch_up": 1_000, "overlap": Overlap.QUEUE}
        for number in range(40):
            a.add("work", "@every 1s", id=f"job-{number}", **every)
        await until(lambda: len(fleet.begun["b"]) >= 40)
        for step in (-20.0, 20.000_007):
            clock.offset = step
            await until(lambda: b._core.clock_guard.is_off)
            before = len(fleet.runs)
            await until(lambda before=before: len(fleet.runs) >= before + 80)
            clock.offset = 0.0
            await until(lambda: b._core.clock_guard.is_given)
        before = len(fleet.begun["b"])
        await until(lambda: len(fleet.begun["b"]) >= before + 40)
        await until(lambda: len([id for id, runs in Counter(id for id, _ in fleet.runs).items() if runs > 1]) == 40)
    for number in range(40):
        dues = sorted(due for job_id, due in fleet.runs if job_id == f"job-{number}")
        assert {late - early for early, late in pairwise(dues)} == {timedelta(seconds=1)}


@pytest.mark.slow
async def test_an_agent_that_leaves_leaves_nothing_behind(fleet):
    """Its jobs go on with the other one, and the store says that nobody has them."""
    async with fleet.agent("b"):
        async with fleet.agent("a") as a:
            for number in range(40):
                a.add("work", "@every 1s", id=f"job-{number}")
            await until(lambda: fleet.begun["a"] and fleet.begun["b"])
        before = len(fleet.begun["b"])
        await until(lambda: len(fleet.begun["b"]) >= before + 120)
        fleet.check()
    async with fleet.agent("c"):  # also what was just being taken when the last one left
        await until(lambda: len({job_id for job_id, _ in fleet.begun["c"]}) == 40)
        fleet.check()
