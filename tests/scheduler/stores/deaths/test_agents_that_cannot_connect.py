"""A node that renews its lease and gets no connection for its commits, or its shards, leaves its jobs to the others.

The server is full, or the password was changed, or the host name is gone: what is connected goes on, nothing else is.
"""

import math
from collections import Counter
from contextlib import asynccontextmanager

import anyio
import pytest

from agents_in_place import Place
from kit import until
from proxy import Proxy
from schedule import Every
from scheduler import AgentLost, Scheduler, current_run
from scheduler._commits import commits
from scheduler._fleet import node
from scheduler._values import Backoff
from scheduler.stores import StoreUnavailable, StoreUnreachable

JOBS = 40

FAIR = 400
"""Shards of 1,024 that one of two agents has at least."""


class Members(Place):
    """Agents in one place: "one" behind a proxy, the others not. `events`: who has heard that an agent was lost."""

    def __init__(self, dsn, schema, proxy):
        super().__init__(dsn, schema)
        self.proxy = proxy
        self.events = []

    @asynccontextmanager
    async def member(self, name, work=None):
        place = Place(self.proxy.dsn, self.schema) if name == "one" else self
        s = Scheduler(store=place.store(name), poll="50ms", crash_floor="50ms")
        s.register("work", work or self.works_on(name))
        s.listen(lambda event: self.events.append((name, event)), AgentLost)
        async with s:
            yield s
            s.stop(grace=0)

    def add_jobs(self, s, every="200ms"):
        for number in range(JOBS):
            s.add("work", Every(every), id=f"job {number}")

    async def share(self, *names):
        """Wait until all of these run some of the jobs."""
        since = len(self.runs)
        await until(lambda: {name for name, *_ in self.runs[since:]} == set(names))

    async def run_all(self, name):
        """Wait until each job runs there, from now on."""
        since = len(self.runs)
        await until(lambda: len({id for who, id, _ in self.runs[since:] if who == name}) == JOBS)

    def close_way(self, connection):
        """End that connection of agent "one", which gets no other."""
        self.proxy.fill()
        self.execute("SELECT pg_terminate_backend(%s)", connection.info.backend_pid)

    def lost(self, name):
        """How often that agent has said that it was lost."""
        return sum(event.is_us for who, event in self.events if who == name)

    def unsettled(self):
        found = self.execute("SELECT name FROM agent JOIN lease USING (epoch) WHERE is_unsettled")
        return {name for (name,) in found}

    def shards(self):
        return dict(self.execute("SELECT name, count(*) FROM agent JOIN shard ON owner = epoch GROUP BY name"))

    def twice(self):
        return [tick for tick, count in Counter((id, due) for _, id, due in self.runs).items() if count > 1]


@pytest.fixture
def members(postgres_server, postgres_schema):
    with Proxy(postgres_server.folder / ".s.PGSQL.5432") as proxy:
        yield Members(postgres_server.dsn, postgres_schema, proxy)


@pytest.fixture
def soon(monkeypatch):
    """Let an agent let go of all soon after a way of its own is closed."""
    monkeypatch.setattr(node, "UNSETTLED_AFTER", 0.1)
    monkeypatch.setattr(node, "RESIGNS_AFTER", 0.2)


@pytest.fixture
def never_resigning(monkeypatch):
    """Let an agent whose way is closed give away what it can, and no more."""
    monkeypatch.setattr(node, "UNSETTLED_AFTER", 0.1)
    monkeypatch.setattr(node, "RESIGNS_AFTER", math.inf)


async def test_the_jobs_of_an_agent_that_cannot_commit_run_elsewhere_until_it_can(members, soon):
    """It lets go of all, says so, and joins again once it can."""
    async with members.member("one") as one, members.member("two"):
        members.add_jobs(one)
        await members.share("one", "two")
        members.close_way(one._memory.store._commits.connection)
        await until(lambda: members.lost("one"))
        await members.run_all("two")
        members.proxy.pass_on()
        await members.share("one", "two")
        await until(lambda: members.unsettled() == set())
        await one.flush()
    assert members.lost("one") == 1
    assert members.lost("two") == 0
    assert members.twice() == []


async def test_what_is_durable_goes_to_the_others_while_what_runs_goes_on(members, never_resigning):
    """Nothing is cut off for it. Once commits get through the agent has its part again."""
    may_end, ends = anyio.Event(), []

    async def work():
        await may_end.wait()
        ends.append(current_run().job_id)

    async with members.member("one", work) as one:
        members.add_jobs(one, "9h")
        one.get("job 7").run_now()
        await until(lambda: one.get("job 7").statistics().running)
        async with members.member("two", work):
            await until(lambda: members.shards().get("two", 0) > FAIR)
            members.close_way(one._memory.store._commits.connection)
            one.add("work", "@every 9h", id="late")
            await until(lambda: members.unsettled() == {"one"})
            await until(lambda: members.shards().get("one", 0) <= 2)
            members.proxy.pass_on()
            await until(lambda: members.unsettled() == set())
            await until(lambda: members.shards().get("one", 0) > FAIR)
            may_end.set()
            await until(lambda: ends == ["job 7"])
            await one.flush()
    assert members.lost("one") == members.lost("two") == 0


async def test_an_agent_that_cannot_read_what_is_given_to_it_leaves_it_to_the_others(members, soon):
    """One of three goes. What is the unlucky one's by right comes to the last one."""
    async with members.member("one") as one, members.member("two"):
        async with members.member("three"):
            members.add_jobs(one)
            await members.share("one", "two", "three")
            members.close_way(one._memory.store.beside._connection)
        await members.run_all("two")
        members.proxy.pass_on()
        await members.share("one", "two")
    assert members.lost("one") == 1
    assert members.twice() == []


async def test_an_agent_that_is_alone_keeps_trying(members, soon):
    """Nobody else could do what it cannot, so it lets go of nothing."""
    async with members.member("one") as one:
        members.add_jobs(one)
        await members.share("one")
        members.close_way(one._memory.store._commits.connection)
        await until(lambda: one._memory.membership.node.ways.closed_for() > 3 * node.RESIGNS_AFTER)
        members.proxy.pass_on()
        await members.run_all("one")
        await until(lambda: members.unsettled() == set())
    assert members.lost("one") == 0
    assert members.twice() == []


async def test_where_all_agents_are_unsettled_none_lets_go(members, never_resigning, monkeypatch):
    """Each of them keeps trying: there is nobody who could do it instead."""
    async with members.member("one") as one, members.member("two") as two:
        ways = [each._memory.membership.node.ways for each in (one, two)]
        await until(lambda: members.unsettled() == set() and len(members.shards()) == len(ways))
        for each in ways:  # there are no jobs, so no commit opens it
            each.tried("commits", StoreUnreachable("no connection"))
        views = [each._memory.store.sharing for each in (one, two)]
        await until(lambda: all(peer.is_unsettled for each in views for peer in each.last.peers))
        monkeypatch.setattr(node, "RESIGNS_AFTER", 0.1)
        leases = [each._memory.membership.node.lease for each in (one, two)]
        for _ in range(2):
            for lease, turns in [(lease, lease.turns) for lease in leases]:
                lease.look()
                await until(lambda lease=lease, turns=turns: lease.turns > turns)
        for each in ways:
            each.tried("commits", None)
        await until(lambda: members.unsettled() == set())
    assert members.lost("one") == members.lost("two") == 0


async def test_a_commit_that_fails_is_tried_again_after_a_pause_however_often_the_lease_is_renewed(shared_store):
    """Each failure has the lease renewed at once, and each renewal had the commit sent again: 280 times a second."""
    store = shared_store("one")
    tries, commit = [], store.commit

    def fail(batch):
        tries.append(store.sharing.last)
        raise StoreUnavailable("the disk is full")

    async with Scheduler(store=store, poll="50ms") as s:
        s.register("work", print)
        await s.flush()
        store.commit = fail
        s.add("work", Every("9h"), id="job")
        await until(lambda: len(tries) >= 8)
        held_until = set()
        await until(lambda: held_until.add(s._memory.membership.node.lease._lease_guard.until) or len(held_until) > 3)
        assert len(tries) < 40
        store.commit = commit
        await s.flush()


async def test_what_failed_is_sent_again_as_soon_as_the_lease_is_renewed(shared_store, monkeypatch):
    """Once the server is back. The next try was up to a second away."""
    monkeypatch.setattr(commits, "RETRY", Backoff(3_600.0, 3_600.0))
    store, is_away = shared_store("one"), False
    renew, commit = store.sharing.renew, store.commit

    def away(call):
        def called(*args, **options):
            if is_away:
                raise StoreUnavailable("it is away")
            return call(*args, **options)

        return called

    store.sharing.renew, store.commit = away(renew), away(commit)
    async with Scheduler(store=store, poll="50ms") as s:
        s.register("work", print)
        await s.flush()
        is_away = True
        s.add("work", Every("9h"), id="job")
        await until(lambda: s._memory._commits._failures and s._memory.membership.node.lease._trouble)
        is_away = False
        await s.flush()
