"""The watchdog of a node with a queue closes no record of a run that goes on at another node. The servers are real."""

import anyio
import pytest

from kit import until
from queued_fleets import QueuedFleet


@pytest.fixture(scope="module")
def anyio_backend():
    """What the queue and the store do, they do in threads."""
    return "asyncio"


@pytest.fixture
def fleet(postgres_server, postgres_schema, broker):
    """Make a fleet of which each node has a queue."""
    return QueuedFleet(postgres_server.dsn, postgres_schema, broker, ttr=3)


async def test_a_long_run_of_another_node_is_left_alone_by_audits(fleet):
    """The first node claims every shard. Two of its audits in a row used to take the run for one without a process."""
    gate = anyio.Event()

    async def hold():
        fleet.note("two")
        await gate.wait()

    async with fleet.agent("one", hold=hold) as one, fleet.agent("two", hold=hold) as two:
        two.add("hold", "@every 1h", id="long", start="now")
        await until(lambda: fleet.runs)
        for _ in range(3):
            await one.audit()
        (record,) = await two.history("long")
        assert record.outcome is None, record.error
        gate.set()
        await until(lambda: not two.statistics().active_jobs)
        await two.flush()
        (record,) = await two.history("long")
        assert record.outcome is not None
        assert record.error is None
