"""An agent is buried by the others while it starts, because its machine or the way to the store is slow."""

from types import SimpleNamespace

import anyio
import pytest
from psycopg import connect

from kit import PATIENCE, until
from schedule import Every
from scheduler import Scheduler
from scheduler.stores import SHARDS
from scheduler.stores.postgres import PostgresStore

JOBS = 12


class Troubled:
    """What a store, or its sharing, is asked, with a trouble just before it is asked for that verb the first time."""

    def __init__(self, of, verb, trouble, **parts):
        self.__dict__ |= parts
        self._of, self._verb, self._trouble = of, verb, trouble

    def __getattr__(self, name):
        if name == self._verb and self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            trouble()
        return getattr(self._of, name)


@pytest.fixture
def doomed(postgres_server, postgres_schema):
    """The store of an agent, and a way to bury it."""

    def bury():
        """Do what another agent does, and end our sessions."""
        with connect(postgres_server.dsn, autocommit=True) as hand:
            hand.execute(f"DELETE FROM {postgres_schema}.agent WHERE name = 'one'")
            hand.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                f" WHERE application_name = 'one {postgres_schema}'"
            )

    dsn = f"{postgres_server.dsn} application_name='one {postgres_schema}'"
    store = PostgresStore(dsn, schema=postgres_schema, shared=True, name="one")
    return SimpleNamespace(store=store, bury=bury)


@pytest.mark.parametrize("verb", ["pauses", "running", "owed", "load"])
async def test_an_agent_that_is_buried_while_it_starts_joins_again(doomed, verb):
    """It has lost nothing yet, and its jobs run. It ended with StoreTakenOver."""
    sharing = doomed.store.sharing
    parts = {"sharing": sharing if verb == "pauses" else Troubled(sharing, verb, doomed.bury)}
    s = Scheduler(store=Troubled(doomed.store, verb if verb == "pauses" else "", doomed.bury, **parts), poll="50ms")
    begun = []

    async def work(number):
        begun.append(number)

    s.register("work", work)
    for number in range(JOBS):
        s.add("work", Every("1s"), id=f"job {number}", args=(number,), on_conflict="keep")
    with anyio.fail_after(PATIENCE):
        async with s:
            await until(lambda: set(begun) == set(range(JOBS)))
            await s.flush()
            assert s.statistics().fleet.me == "one"


async def test_what_another_agent_has_by_then_is_not_ours(doomed, agent):
    """It went on with all the shards of its first incarnation, and ran the jobs of the other one beside it."""
    other = agent()

    def bury():
        doomed.bury()
        other.sharing.renew()
        other.sharing.settle(stays=True)
        assert len(other.sharing.claim(range(SHARDS))) == SHARDS

    s = Scheduler(store=Troubled(doomed.store, "pauses", bury, sharing=doomed.store.sharing), poll="50ms")
    with anyio.fail_after(PATIENCE):
        async with s:
            assert s._memory.membership._shares.all() == []
            assert s._memory.membership.node._view.me == doomed.store.epoch
            s.stop(grace=0)
