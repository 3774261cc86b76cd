"""An agent that the others took for dead starts nothing more, says so, and joins again as somebody new."""

import threading
from collections import Counter

import anyio
import pytest
from psycopg import connect

from fleet_members import MARKS
from kit import PATIENCE, settle, until, wait_until
from proxy import Proxy
from schedule import Every
from scheduler import AgentJoined, AgentLost, Outcome, RunEnded, Scheduler, current_run
from scheduler._commits.commits import RETRY
from scheduler.stores import Batch, StoredPause
from scheduler.stores.postgres import PostgresStore

JOBS = 40


@pytest.fixture
def bury(postgres_server, postgres_schema):
    """Do what another agent does to one whose lease has ended."""

    def bury(name):
        with connect(postgres_server.dsn, autocommit=True) as hand:
            hand.execute(f"DELETE FROM {postgres_schema}.agent WHERE name = '{name}'")

    return bury


class Agent:
    """A scheduler and what was heard of it."""

    def __init__(self, store, ticks, work=None):
        self.events = []
        self.scheduler = s = Scheduler(store=store, poll="50ms", crash_floor="50ms")

        async def note(name):
            ticks.append((name, current_run().due))
            if work is not None:
                await work(name)

        s.register("work", note)
        s.listen(self.events.append, AgentLost, AgentJoined, RunEnded)
        for number in range(JOBS):
            s.add("work", Every("200ms"), id=f"job {number}", args=(f"job {number}",), on_conflict="keep")

    def heard(self, kind, **values):
        return [e for e in self.events if isinstance(e, kind) and all(getattr(e, k) == v for k, v in values.items())]


def twice(ticks):
    return [tick for tick, count in Counter(ticks).items() if count > 1]


async def test_an_agent_whose_connection_broke_asks_whether_it_is_still_there_before_it_begins_anything(
    shared_store, postgres_server
):
    """Others may have heard the end of its session, though its lease goes on. See tests/scheduler/lease."""
    ticks, store = [], shared_store("one")
    agent = Agent(store, ticks)
    async with agent.scheduler as s:
        await until(lambda: len(ticks) > JOBS)
        lease_guard = s._memory.membership.node.lease._lease_guard
        with connect(postgres_server.dsn, autocommit=True) as hand:
            hand.execute("SELECT pg_terminate_backend(%s)", [store._commits.connection.info.backend_pid])
        await until(lambda: lease_guard.doubts)
        await until(lease_guard.is_sure)
        begun = len(ticks)
        await until(lambda: len(ticks) > begun + JOBS)
        await s.flush()
    assert not agent.heard(AgentLost, is_us=True)
    assert twice(ticks) == []


@pytest.mark.parametrize(
    ("delivery", "outcome"), [("at_most_once", Outcome.CRASHED), ("at_least_once", Outcome.SUCCEEDED)]
)
async def test_who_waits_for_a_run_on_a_node_that_dies_has_an_answer(shared_store, bury, delivery, outcome):
    """The run was cut off, or its tick was tried again by whoever has the job then."""
    begun = Counter()

    def node(name):
        s = Scheduler(store=shared_store(name), poll="50ms", crash_floor="50ms")

        async def work(job_id):
            begun[job_id] += 1
            await anyio.sleep(PATIENCE if begun[job_id] == 1 else 0)

        s.register("work", work)
        return s

    async with node("one") as one:
        for number in range(JOBS):
            one.add("work", Every("400d"), id=f"job {number}", args=(f"job {number}",), delivery=delivery)
        async with node("two") as two:
            for each in (one, two):
                await until(lambda s=each: {job.agent for job in s.jobs()} == {"one", "two"})
            id = next(job.id for job in two.jobs() if job.agent == "two")
            asked = one.get(id).run_now()
            await until(lambda: begun[id])
            bury("two")
            with anyio.fail_after(PATIENCE):
                answer = await asked
            for each in (one, two):
                each.stop(0)
    assert answer.outcome is outcome


async def test_what_is_marked_and_waits_for_room_does_not_begin_after_the_connections_broke(
    postgres_server, postgres_schema, bury
):
    """From its mark to its room: it stepped aside while the store was away, and when it has room again others may have
    buried its agent. They had, so it never begins, and its tick is a crash.
    """
    begun, events, may_end = [], [], anyio.Event()

    async def work():
        begun.append(current_run().due)

    async def take_the_room():
        await may_end.wait()

    with Proxy(postgres_server.folder / ".s.PGSQL.5432") as proxy:
        store = PostgresStore(proxy.dsn, schema=postgres_schema, shared=True, name="one")
        s = Scheduler(store=store, poll="50ms", limit=1, blocked_after=None)
        s.register("work", work)
        s.listen(events.append, AgentLost, RunEnded)
        async with s:
            job, other = s.add("work", "@every 9h", id="job"), s.add(take_the_room, "@every 9h", durable=False)
            await s.flush()
            is_held = proxy.hold(after=MARKS, answer=False)
            job.run_now()
            await until(is_held.is_set)
            other.run_now()
            proxy.refuse()
            await until(lambda: other.statistics().running)
            (run,) = job.runs
            assert not run.is_marked
            proxy.pass_on()
            await until(lambda: run.is_marked)
            proxy.refuse()
            bury("one")
            await until(lambda: not s._memory.membership.node.lease.is_sure())
            may_end.set()
            await until(lambda: [each.job_id for each in events if isinstance(each, RunEnded)] == [other.id])
            await settle()
            assert begun == []
            proxy.pass_on()
            await until(lambda: any(isinstance(each, AgentLost) and each.is_us for each in events))
            await until(lambda: job.statistics().crashes)
            s.stop(0)
    assert begun == []


async def test_an_agent_that_was_buried_joins_again_and_runs_its_jobs(shared_store, bury):
    """What stood in its tables is read again, and nothing has run twice."""
    ticks = []
    agent = Agent(shared_store("one"), ticks)
    async with agent.scheduler as s:
        await until(lambda: len(ticks) > JOBS)
        bury("one")
        await until(lambda: agent.heard(AgentLost, is_us=True))
        since = len(ticks)
        await until(lambda: len(ticks) > since + 3 * JOBS)
        assert len({name for name, _ in ticks[since:]}) == JOBS
        assert len(agent.heard(AgentJoined, agent="one", is_us=True)) == 2
        s.add("work", Every("200ms"), id="late", args=("late",))
        await s.flush()
        await until(lambda: "late" in {name for name, _ in ticks})
    assert twice(ticks) == []


async def test_no_commit_is_sent_from_when_an_agent_is_lost_until_it_joins_again(shared_store, bury):
    """A listener keeps the loop until the commit that failed last is to be sent again."""
    ticks, store, while_lost, is_lost = [], shared_store("one"), [], threading.Event()
    agent = Agent(store, ticks)
    commits, now = agent.scheduler._memory._commits, agent.scheduler._memory._core.monotonic
    commit, reopen = store.commit, store.open

    def lost(event):
        if event.is_us:
            due = now() + RETRY.after(commits._failures)
            wait_until(lambda: now() > due)
            is_lost.set()

    def noting_commit(batch):
        if is_lost.is_set():
            while_lost.append(batch)
        return commit(batch)

    def open_again(*args):
        is_lost.clear()
        return reopen(*args)

    store.commit, store.open = noting_commit, open_again
    agent.scheduler.listen(lost, AgentLost)
    async with agent.scheduler as s:
        for times in (2, 3, 4):
            since = len(ticks)
            await until(lambda since=since: len(ticks) > since + JOBS)
            bury("one")
            await until(lambda times=times: len(agent.heard(AgentJoined, is_us=True)) == times)
        await s.flush()
    assert while_lost == []


async def test_what_runs_when_an_agent_is_lost_is_cancelled_and_its_end_is_not_written(shared_store, bury):
    """The tick is a crash: who took the job says so, and it stays said."""
    ticks, ends = [], []

    async def work(name):
        if name == "job 3" and not ends:
            try:
                await anyio.sleep(PATIENCE)
            finally:
                ends.append(name)

    agent = Agent(shared_store("one"), ticks, work)
    async with agent.scheduler as s:
        await until(lambda: "job 3" in {name for name, _ in ticks})
        bury("one")
        await until(lambda: ends)
        await until(lambda: agent.heard(RunEnded, job_id="job 3"))
        await until(lambda: [name for name, _ in ticks].count("job 3") > 1)
        await s.flush()
        records = await s.history("job 3")
        await until(lambda: s.get("job 3").statistics().crashes > 0)
    cut_off = agent.heard(RunEnded, job_id="job 3")[0]
    assert cut_off.outcome.value == "cancelled"
    dues = {round(each.due.timestamp() * 1e6): each.outcome and each.outcome.value for each in records}
    assert dues[round(cut_off.due.timestamp() * 1e6)] == "crashed"


async def test_what_was_asked_for_while_an_agent_was_lost_is_done_then(shared_store, bury):
    """A job that was added or removed in between is, in the end, in the store or not."""
    ticks = []
    agent = Agent(shared_store("one"), ticks)
    async with agent.scheduler as s:
        await until(lambda: len(ticks) > JOBS)
        bury("one")
        s.add("work", Every("200ms"), id="new", args=("new",))
        s.get("job 1").remove()
        await s.flush()
        await until(lambda: agent.heard(AgentLost, is_us=True))
        await until(lambda: "new" in {name for name, _ in ticks})
        await s.flush()
        assert {job.id for job in s.jobs()} == {f"job {n}" for n in range(JOBS) if n != 1} | {"new"}
    left = {f"job {number}" for number in range(JOBS) if number != 1} | {"new"}
    found = shared_store("two")
    found.open(0, lambda: None)
    assert {row.id for chunk in found.load() for row, _ in chunk} == left
    found.close()


async def test_pauses_that_were_changed_while_an_agent_was_lost_are_known_then(shared_store, bury, monkeypatch):
    """By others: one that was lifted, and one that was new. Only rows of jobs were read again."""
    agent, opened = Agent(shared_store("one"), []), []
    store = agent.scheduler._memory.store

    def open_after_a_change(self, now_us, hint):
        if self is store and opened:
            other = shared_store("two")
            other.open(0, lambda: None)
            other.commit(Batch(pauses={"*": None, "tag:new": StoredPause("tag:new", "by another", 0)}))
            other.close()
        opened.append(self)
        return open_of(self, now_us, hint)

    open_of = PostgresStore.open
    monkeypatch.setattr(PostgresStore, "open", open_after_a_change)
    async with agent.scheduler as s:
        s.pause(reason="for a while")
        await s.flush()
        bury("one")
        await until(lambda: agent.heard(AgentLost, is_us=True))
        await until(lambda: [pause.scope for pause in s.pauses()] == ["tag:new"])


@pytest.mark.slow
async def test_a_loop_that_stands_still_loses_its_jobs_to_the_others(shared_store):
    """They run there, and here only what comes back; no tick runs twice."""
    one_ticks, two_ticks, goes_on = [], [], threading.Event()
    one, others = Agent(shared_store("one"), one_ticks), []

    async def live_elsewhere():
        two = Agent(shared_store("two"), two_ticks)
        others.append(two)
        async with two.scheduler:
            await until(goes_on.is_set)

    async with one.scheduler:
        await until(lambda: len(one_ticks) > JOBS)
        thread = threading.Thread(target=anyio.run, args=[live_elsewhere])
        thread.start()
        stands = wait_until  # on the loop itself
        stands(lambda: len({name for name, _ in two_ticks}) == JOBS)
        await until(lambda: one.heard(AgentLost, is_us=True))
        since = len(one_ticks)
        await until(lambda: len(one_ticks) > since + JOBS)
        goes_on.set()
        await until(lambda: not thread.is_alive())
    assert [event.agent for event in others[0].heard(AgentLost)] == ["one"]
    assert twice(one_ticks + two_ticks) == []
