"""Agents with a queue while a server is killed, frozen, or loses answers: nothing runs twice, and each job goes on."""

from contextlib import asynccontextmanager

import anyio
import pytest

from kit import until
from proxy import Proxy
from queued_fleets import QueuedFleet

JOBS = 20

pytestmark = pytest.mark.slow


class Fleet(QueuedFleet):
    """Agents that audit often, and jobs that all of them run."""

    @asynccontextmanager
    async def agent(self, name, *, adds=False, **options):
        async with super().agent(name, **options) as s:
            for number in range(JOBS if adds else 0):
                s.add("work", "@every 1s", id=f"job-{number}")
            yield s

    async def go_on(self, *agents):
        """Wait until each job has run once more, and each of these agents has run something."""
        since, of_agents = len(self.runs), {name: len(self.begun[name]) for name in agents}

        def all_run():
            have_run = all(len(self.begun[name]) > before for name, before in of_agents.items())
            return have_run and len({job_id for job_id, _ in self.runs[since:]}) == JOBS

        await until(all_run)


@pytest.fixture(scope="module")
def anyio_backend():
    """What the queue and the store do, they do in threads: test_dispatch.py has both backends."""
    return "asyncio"


@pytest.fixture
def fleet(postgres_server, postgres_schema, broker):
    return Fleet(postgres_server.dsn, postgres_schema, broker, ttr=5, audit="1s", crash_floor="1s")


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
