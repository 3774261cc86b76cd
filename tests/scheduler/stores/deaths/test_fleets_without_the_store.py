"""A node goes without the store if nobody else can have its jobs; where others may have them, it waits."""

from contextlib import AsyncExitStack

import anyio
import pytest
from anyio.to_thread import run_sync

from kit import PATIENCE, until
from postgres_server import PostgresServer
from schedule import Every
from scheduler import Scheduler, StoreDown
from scheduler.stores import LEASE
from scheduler.stores.postgres import PostgresStore

EVERY = 0.2
AWAY = 2 * LEASE


class Node:
    """A scheduler that shares the store. `begun`: the ticks of its checks, by whether the store worked."""

    def __init__(self, name, dsn, begun):
        self.scheduler = s = Scheduler(store=PostgresStore(dsn, shared=True, name=name), blocked_after=None)
        self.is_down = anyio.Event()
        s.register("check", begun.append, inline=True, without_store=True)
        s.listen(lambda _: self.is_down.set(), StoreDown)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
async def test_only_a_node_that_is_alone_goes_without_the_store(count):
    """Two nodes would tell the same twice."""
    begun = []
    with PostgresServer() as server, anyio.fail_after(2 * PATIENCE):
        async with AsyncExitStack() as running:
            nodes = [Node(f"node {number}", server.dsn, begun) for number in range(count)]
            for node in nodes:
                await running.enter_async_context(node.scheduler)
            first = nodes[0].scheduler
            await until(lambda: first.statistics().fleet and len(first.statistics().fleet.agents) == count)
            for number in range(4):
                first.add("check", Every(EVERY), id=f"check {number}", args=(number,))
            await until(lambda: set(begun) == set(range(4)))
            await run_sync(server.stop)
            for node in nodes:
                await node.is_down.wait()
            before = len(begun)
            if count == 1:
                await until(lambda: len(begun) > before + 4 * AWAY / EVERY)
            else:
                await anyio.sleep(AWAY)
                assert len(begun) <= before + 4
            await run_sync(server.start)
            back = len(begun)
            await until(lambda: len(begun) > back + 20)
            await first.flush()
            for node in nodes:
                node.scheduler.stop(grace=0)
        records = PostgresStore(server.dsn, shared=True).history(limit=10_000)
    runs = [each for each in records if each.outcome == "succeeded"]
    assert len({(each.job_id, each.due_us) for each in records}) == len(records)
    assert len(runs) >= len(begun) - 4 * count  # a run may be cut off at the end
