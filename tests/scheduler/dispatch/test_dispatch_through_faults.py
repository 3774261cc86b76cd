"""Agents with a queue while a server is killed, frozen, or loses answers: nothing runs twice, and each job goes on."""

from contextlib import asynccontextmanager

import anyio
import pytest

from kit import until
from proxy import Proxy
from scheduler import Scheduler, current_run
from scheduler.queues.beanstalkd import BeanstalkdQueue
from scheduler.stores.postgres import PostgresStore

JOBS = 20

pytestmark = pytest.mark.slow


class Fleet:
    """Agents on the same servers. `runs`: who began which tick, as the tasks have noted it."""

    def __init__(self, dsn, schema, broker):
        self.dsn = dsn
        self.schema = schema
        self.broker = broker
        self.runs = []

    @asynccontextmanager
    async def agent(self, name, *, dsn=None, broker=None, adds=False):
        store = PostgresStore(dsn or self.dsn, schema=self.schema, shared=True, name=name)
        queue = BeanstalkdQueue(broker or self.broker.address, ttr=5)
        s = Scheduler(store=store, queue=queue, audit="1s", crash_floor="1s")

        async def work():
            run = current_run()
            self.runs.append((name, run.job_id, run.due))

        s.register("work", work)
        async with s:
            for number in range(JOBS if adds else 0):
                s.add("work", "@every 1s", id=f"job-{number}")
            yield s
            s.stop(grace=0)

    async def go_on(self, *agents):
        """Wait until each job has run once more, and each of these agents has run something."""
        since = len(self.runs)

        def all_run():
            ran = self.runs[since:]
            return len({job_id for _, job_id, _ in ran}) == JOBS and {name for name, *_ in ran} >= set(agents)

        await until(all_run)

    def check(self):
        ticks = [tick for _, *tick in self.runs]
        assert [tick for tick in ticks if ticks.count(tick) > 1] == []


@pytest.fixture(scope="module")
def anyio_backend():
    """What the queue and the store do, they do in threads: test_dispatch.py has both backends."""
    return "asyncio"


@pytest.fixture
def fleet(postgres_server, postgres_schema, broker):
    return Fleet(postgres_server.dsn, postgres_schema, broker)


async def test_a_beanstalkd_that_stands_still_gives_everything_again_when_it_goes_on(fleet, broker):
    """What could not be put meanwhile waits in the agents, and what stood in it comes late."""
    async with fleet.agent("a", adds=True) as s, fleet.agent("b"):
        await fleet.go_on("a", "b")
        with broker.frozen():
            await until(lambda: s.statistics().queue.refused)
        await fleet.go_on("a", "b")
    fleet.check()


async def test_a_commit_whose_answer_is_lost_runs_nothing_twice(fleet, postgres_server):
    """It is sent again, and finds that it is there already."""
    with Proxy(f"{postgres_server.folder}/.s.PGSQL.5432") as proxy:
        async with fleet.agent("a", dsn=proxy.dsn, adds=True):
            await fleet.go_on("a")
            for _ in range(3):
                proxy.hold()
                await until(lambda: proxy.held)
                proxy.reset()
                await fleet.go_on("a")
    fleet.check()


async def test_a_postgresql_that_is_killed_costs_time_and_nothing_else(fleet, postgres_server):
    """Nothing begins while it is away. Whoever had come out of the queue is taken afterwards."""
    async with fleet.agent("a", adds=True), fleet.agent("b"):
        await fleet.go_on("a", "b")
        await anyio.to_thread.run_sync(postgres_server.restart)
        await fleet.go_on("a", "b")
    fleet.check()


async def test_an_agent_that_is_cut_off_from_postgresql_leaves_the_jobs_to_the_others(fleet, postgres_server):
    """What comes out to it goes back, and what it had taken is given out again as soon as it has been buried. So is
    what it had planned, in a commit whose answer it never had, and could not put.
    """
    with Proxy(f"{postgres_server.folder}/.s.PGSQL.5432") as proxy:
        async with fleet.agent("a", adds=True), fleet.agent("b", dsn=proxy.dsn):
            await fleet.go_on("a", "b")
            proxy.hold(after=b".execution (job_id")
            await until(lambda: proxy.held)
            proxy.black_hole()
            for _ in range(3):
                await fleet.go_on("a")
            proxy.pass_on()
            await fleet.go_on("a", "b")
    fleet.check()


async def test_the_jobs_of_an_agent_that_is_cut_off_from_beanstalkd_go_on(fleet, broker):
    """What it cannot put runs in itself. What it had reserved comes out elsewhere, also where the server forgets it;
    no audit is due for minutes.
    """
    with Proxy(str(broker.path)) as proxy:
        async with fleet.agent("a", adds=True), fleet.agent("b", broker=f"127.0.0.1:{proxy.port}"):
            await fleet.go_on("a", "b")
            proxy.black_hole()
            for _ in range(3):
                await fleet.go_on("a")
            proxy.pass_on()
            await fleet.go_on("a", "b")
    fleet.check()
