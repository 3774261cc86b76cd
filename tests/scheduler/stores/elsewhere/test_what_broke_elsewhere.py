"""What broke where other schedulers shared a PostgreSQL, tried on ours: see tests/parity/fleet.toml."""

from collections import Counter, defaultdict
from contextlib import asynccontextmanager
from itertools import pairwise

import anyio
import pytest

from kit import PATIENCE
from schedule import Every
from scheduler import Missed, Scheduler, current_run
from scheduler.stores import rightful_owners
from scheduler.stores.postgres import PostgresStore

JOBS = 12
INTERVAL = 0.2


@pytest.fixture(scope="module")
def anyio_backend():
    """What a store does, it does in threads: test_agents_that_share.py has both backends."""
    return "asyncio"


class Fleet:
    """Agents that share a store. `runs`: the due instants of each job, by when they began. `by`: how many per agent."""

    def __init__(self, dsn, schema):
        self._place = {"schema": schema, "shared": True}
        self._dsn = dsn
        self.runs = defaultdict(list)
        self.by = Counter()
        self._changed = anyio.Event()

    @asynccontextmanager
    async def agent(self, key, name):
        s = Scheduler(store=PostgresStore(self._dsn, name=name, **self._place), poll="50ms")

        async def work():
            run = current_run()
            self.runs[run.job_id].append(run.due.timestamp())
            self.by[key] += 1
            self._changed.set()
            self._changed = anyio.Event()

        s.register("work", work)
        for number in range(JOBS):
            s.add("work", Every(f"{INTERVAL}s"), id=f"job {number}", missed=Missed.ALL, on_conflict="keep")
        async with s:
            yield s

    async def goes_on(self, *keys):
        """Wait until each of these agents has begun something, and each job has, too."""
        by, runs = Counter(self.by), {job_id: len(dues) for job_id, dues in self.runs.items()}
        with anyio.fail_after(PATIENCE):
            while not (
                all(self.by[key] > by[key] for key in keys)
                and len(self.runs) == JOBS
                and all(len(dues) > runs.get(job_id, 0) for job_id, dues in self.runs.items())
            ):
                await self._changed.wait()

    def check(self):
        """See that each job has had each of its ticks once, from the first to the last."""
        for dues in self.runs.values():
            steps = [round((later - before) / INTERVAL) for before, later in pairwise(dues)]
            assert steps == [1] * len(steps)


@pytest.fixture
def fleet(postgres_server, postgres_schema):
    return Fleet(postgres_server.dsn, postgres_schema)


async def test_agents_of_one_name_are_two_agents(fleet):
    """What tells them apart is their incarnation. Machines made from one image have one host name."""
    async with fleet.agent("one", "web"), fleet.agent("two", "web") as s:
        await fleet.goes_on("one", "two")
        assert [agent.name for agent in s.statistics().fleet.agents] == ["web", "web"]
        await fleet.goes_on("one", "two")
    fleet.check()


async def test_no_tick_is_left_out_when_agents_come_and_go(fleet):
    """A shard goes on between two ticks of its jobs, with where they stand."""
    async with fleet.agent("one", "one"):
        await fleet.goes_on("one")
        async with fleet.agent("two", "two"):
            await fleet.goes_on("one", "two")
        await fleet.goes_on("one")
        async with fleet.agent("three", "three"):
            await fleet.goes_on("one", "three")
    fleet.check()


@pytest.mark.parametrize("agents", [2, 3, 5, 10])
def test_agents_have_like_shares(agents):
    """With three each has 28 to 38 percent, whichever incarnations they are; one more moves its own part alone."""
    for first in range(1, 200, 7):
        epochs = range(first, first + agents)
        owners = rightful_owners(epochs)
        shares = [count / len(owners) for count in Counter(owners).values()]
        assert len(shares) == agents
        assert max(abs(share - 1 / agents) for share in shares) < 0.05
        joined = rightful_owners([*epochs, 1_000])
        moved = [after for before, after in zip(owners, joined, strict=True) if before != after]
        assert set(moved) == {1_000}
        assert len(moved) / len(owners) < 1 / (agents + 1) + 0.05
