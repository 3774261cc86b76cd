"""An outage of the server that all nodes share is nobody's death: nobody is buried, and no run is cut off."""

from contextlib import AsyncExitStack, ExitStack, contextmanager

import anyio
import pytest
from anyio.to_thread import run_sync
from psycopg import connect

from kit import PATIENCE, until
from postgres_server import PostgresServer
from proxy import Proxy
from schedule import Every
from scheduler import AgentLost, RunEnded, Scheduler, current_run
from scheduler._fleet.node import RESIGNS_AFTER
from scheduler.stores import LEASE, SHARDS
from scheduler.stores.postgres import PostgresStore
from server_outages import altered
from timerqueue import boottime

LONG, SHORT = 12, 12


@contextmanager
def stopped(server):
    server.stop()
    try:
        yield
    finally:
        server.start()


@contextmanager
def frozen(server):
    """The postmaster and all who serve a connection, as with a disk or a hypervisor that stands still."""
    with connect(server.dsn) as hand:
        pids = [pid for (pid,) in hand.execute("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")]
    with server.frozen(server.pid, *pids):
        yield


@contextmanager
def locked(server):
    """By somebody who alters the table of nodes."""
    with connect(server.dsn) as hand:
        hand.execute("LOCK TABLE timerqueue.agent")
        yield


class Node:
    """A scheduler that shares the store, and what happened to it and to its runs."""

    def __init__(self, name, dsn, begun, long):
        self.store, self.events = PostgresStore(dsn, shared=True, name=name), []
        self.scheduler = s = Scheduler(store=self.store, crash_floor="100ms")

        async def short(id):
            begun[id] = boottime()

        async def work():
            long.append(current_run().job_id)
            await anyio.sleep_forever()

        s.register("long", work)
        s.register("short", short)
        s.listen(self.events.append, AgentLost)
        s.listen(lambda end: self.events.append(end) if end.job_id.startswith("long") else None, RunEnded)

    @property
    def shards(self):
        fleet = self.scheduler.statistics().fleet
        return next((each.shards for each in fleet.agents if each.name == fleet.me), 0) if fleet else 0


@pytest.mark.slow
async def test_an_outage_of_more_than_a_lease_is_nobodys_death():
    """Whoever was back first buried all others. Their runs were on record as crashes, and rested for five minutes."""
    begun, long = {}, []
    with PostgresServer() as server, ExitStack() as stack:
        way = stack.enter_context(Proxy(server.folder / ".s.PGSQL.5432"))
        way.delay(0.02)
        nodes = [
            Node(name, server.dsn if name == "near" else way.dsn, begun, long) for name in ("near", "far", "further")
        ]
        with anyio.fail_after(4 * PATIENCE):
            async with AsyncExitStack() as running:
                for node in nodes:
                    await running.enter_async_context(node.scheduler)
                await until(lambda: all(node.shards > SHARDS / 6 for node in nodes))
                add_jobs(nodes[0].scheduler)
                await until(lambda: len(set(long)) == LONG)
                for node in nodes:
                    node.events.clear()
                for outage in (stopped, frozen, locked):
                    back = await passes(outage(server), nodes)
                    await until(lambda back=back: len(begun) == SHORT and min(begun.values()) > back)
                    await until(lambda back=back: all(has_watched(node.store.sharing.last, back) for node in nodes))
                    assert (outage.__name__, [event for node in nodes for event in node.events]) == (
                        outage.__name__,
                        [],
                    )
                for node in nodes:
                    node.scheduler.stop(grace=0)


@pytest.mark.slow
async def test_a_death_while_a_step_of_the_schema_goes_on_makes_nobody_resign():
    """Nobody can be buried meanwhile. That looked as if the server was out of reach, and 17 of 20 runs were cut off."""
    begun, long = {}, []
    with PostgresServer() as server, anyio.fail_after(4 * PATIENCE):
        nodes = [Node(name, server.dsn, begun, long) for name in ("one", "two")]
        async with nodes[0].scheduler, nodes[1].scheduler:
            add_jobs(nodes[0].scheduler)
            dead = PostgresStore(server.dsn, shared=True, name="dead")
            await run_sync(dead.open, 0, lambda: None)
            await run_sync(dead.sharing.renew)
            await until(lambda: len(set(long)) == LONG and all(node.shards > SHARDS / 3 for node in nodes))
            await until(lambda: all(len(node.store.sharing.last.peers) == 3 for node in nodes))
            for node in nodes:
                node.events.clear()
            with altered(server, "timerqueue"):
                await run_sync(dead.close)
                since = boottime()
                await until(lambda: all(is_held_up(node.store.sharing.last, since) for node in nodes))
            await until(lambda: all(len(node.store.sharing.last.peers) == 2 for node in nodes))
            await until(lambda: any(node.events for node in nodes))  # the loop tells what the lease's thread has seen
            told = [event for node in nodes for event in node.events]
            assert {(type(event), event.agent) for event in told} == {(AgentLost, "dead")}
            for node in nodes:
                node.scheduler.stop(grace=0)


def is_held_up(view, since):
    """Tell whether that node has seen the dead one for longer than it puts up with one whose ways are closed."""
    return view.answered - since > LEASE + RESIGNS_AFTER + 2 and min(peer.left for peer in view.peers) < 0


def add_jobs(scheduler):
    for number in range(LONG):
        scheduler.add("long", Every("1s"), id=f"long {number}", delivery="at_least_once")
    for number in range(SHORT):
        id = f"short {number}"
        scheduler.add("short", Every("200ms"), id=id, args=(id,))


async def passes(outage, nodes):
    """Wait for an outage that lasts until no lease is left, and return when the server was back."""
    with ExitStack() as out:
        await run_sync(out.enter_context, outage)
        await until(lambda: all(boottime() - node.store.sharing.last.asked > LEASE for node in nodes))
        await run_sync(out.close)
    return boottime()


def has_watched(view, since):
    """Tell whether that node has looked at the others for a whole lease and a little more, since then."""
    return view.since > since - 1 and view.answered - view.since > LEASE + 0.5
