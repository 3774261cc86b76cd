"""What one of the agents that share a store does alone: to probe a PostgreSQL server."""

import sqlite3
from contextlib import AsyncExitStack, closing
from urllib.parse import quote

import anyio
import pytest
from attrs import evolve

from kit import PATIENCE, until
from scheduler.stores import SHARDS, Peer, View, shard_of
from uptime_agent.quorum import Duties

SERVERS = 8
NAMES = [f"postgres:db{number}" for number in range(SERVERS)]


class Agent:
    """An agent as its duties see it: a view of the store, and a clock."""

    def __init__(self):
        self.now, self.view = 100.0, None
        self.duties = Duties(lambda: self.view, lambda: self.now)

    def sees(self, owners, me=1):
        peers = tuple(Peer(epoch=each, name=f"agent {each}", left=3.0, format=1, opened_us=0) for each in (1, 2))
        self.view = View(me=me, peers=peers, owners=owners, at_us=0)

    def ours(self, later=0.0):
        self.now += later
        self.duties.look()
        return [name for name in NAMES if self.duties.is_ours(name)]


def owned_by(epoch, names=NAMES):
    shards = {shard_of(name) for name in names}
    return tuple(epoch if shard in shards else 2 for shard in range(SHARDS))


def test_a_duty_is_begun_once_the_agent_before_has_seen_that_it_is_gone():
    """Who has come hears at once whose a shard is, and who had it by its next renewal."""
    agent = Agent()
    assert agent.ours() == []
    agent.sees(owned_by(1))
    assert agent.ours() == []
    agent.view = evolve(agent.view)
    assert agent.ours(later=1.9) == []
    agent.view = evolve(agent.view)
    assert agent.ours(later=0.1) == NAMES
    agent.sees(owned_by(1, NAMES[:3]))
    assert agent.ours(later=0.2) == NAMES[:3]


def test_without_news_of_the_store_nothing_is_ours_before_others_have_it():
    """An agent that is cut off, or was frozen, does not know what became of its lease."""
    agent = Agent()
    agent.sees(owned_by(1))
    agent.ours()
    assert agent.ours(later=2.4) == NAMES
    assert agent.ours(later=0.2) == []
    agent.view = evolve(agent.view)
    assert agent.ours() == []
    assert agent.ours(later=2.0) == NAMES


def test_a_new_incarnation_begins_anew():
    """Others may have had what it has again."""
    agent = Agent()
    agent.sees(owned_by(1))
    agent.ours()
    assert agent.ours(later=2.0) == NAMES
    agent.sees(owned_by(3), me=3)
    assert agent.ours() == []
    assert agent.ours(later=2.0) == NAMES


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the agents are processes with loops of their own
async def test_each_server_is_probed_by_one_agent_and_by_another_after_a_kill(
    started, tmp_path, postgres_server, postgres_schema
):
    """Eight servers, two agents: each has some. After kill -9 the other has all."""
    host = quote(str(postgres_server.folder), safe="")
    files = [tmp_path / "a.toml", tmp_path / "b.toml"]
    for file in files:
        servers = "".join(
            f'[[postgres]]\nname = "db{n}"\nhost = "{postgres_server.folder}"\nuser = "postgres"\nlimit = 1\n'
            for n in range(SERVERS)
        )
        file.write_text(
            f'store = "postgresql://postgres@/postgres?host={host}&schema={postgres_schema}"\n'
            f'[fleet]\nname = "{file.stem}"\n{servers}'
        )

    def lasts(file):
        """Tell when each server was last probed by an agent: each has a file of metrics of its own."""
        metrics = file.with_suffix(".metrics.db")
        if not metrics.exists():
            return {}
        with closing(sqlite3.connect(f"file:{metrics}?mode=ro", uri=True)) as connection:
            try:
                return dict(connection.execute("SELECT target, max(last_us) FROM series GROUP BY target"))
            except sqlite3.OperationalError:  # it is not made yet
                return {}

    async def next_probed():
        """Wait until each server was probed once more, and tell by whom."""
        before = [lasts(file) for file in files]

        def since():
            return [
                {name for name, at in lasts(file).items() if at != old.get(name)}
                for file, old in zip(files, before, strict=True)
            ]

        await until(lambda: len(set.union(*since())) == SERVERS)
        return since()

    async with AsyncExitStack() as stack:
        agents = [await stack.enter_async_context(started("run", str(file), "--plain")) for file in files]
        with anyio.fail_after(PATIENCE):
            one, two = await next_probed()
            while not one or not two or one & two:  # until both are there, and have what is theirs
                one, two = await next_probed()
        agents[0].process.kill()
        await agents[0].process.wait()
        assert await next_probed() == [set(), one | two]
