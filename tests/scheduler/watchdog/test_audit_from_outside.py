"""An audit from outside, on real servers: it finds what the rows, agents and the queue show, mends it, and says so."""

from contextlib import asynccontextmanager

import pytest
from anyio.to_thread import run_sync
from greenstalk import Client
from psycopg import connect

from kit import nothing, until
from schedule import Every
from scheduler import Became, Outcome, Scheduler, StoreUnusable, audit_store
from scheduler.queues import Kind
from scheduler.queues.beanstalkd import BeanstalkdQueue
from scheduler.stores import Doubt, rightful_owners
from scheduler.stores.postgres import PostgresStore
from timerqueue import SystemClock

FAR = Every("400d")
LONG_AGO = 1_000_000
IDS = [f"job-{number}" for number in range(40)]


@pytest.fixture(scope="module")
def anyio_backend():
    """An audit from outside is a thread of its own, and asks through the tables."""
    return "asyncio"


class Place:
    """A store in a schema of its own: its agents, a hand in its tables, and audits of it."""

    def __init__(self, dsn, schema):
        self.dsn = dsn
        self.schema = schema

    def store(self, name="agent", shared=True):
        return PostgresStore(self.dsn, schema=self.schema, shared=shared, name=name)

    @asynccontextmanager
    async def agent(self, name="agent", **options):
        s = Scheduler(store=self.store(name), poll="50ms", **options)
        s.register("nothing", nothing)
        async with s:
            yield s
            s.stop(grace=0)

    @asynccontextmanager
    async def left_by_death(self, name="dead"):
        """Hold the store of an agent whose lease ended long ago, and that has said no good-bye."""
        store = self.store(name)
        store.open(0, lambda: None)
        store.sharing.claim(range(1_024))
        self.execute("UPDATE lease SET until = now() - interval '1h' WHERE epoch = %s", store.epoch)
        yield store
        store.close()

    def execute(self, statement, *asked):
        with connect(self.dsn, autocommit=True) as hand:
            hand.execute(f"SET search_path TO {self.schema}")
            return hand.execute(statement, asked or None)

    def is_long_ago(self, *ids):
        """Say in the rows of these jobs that they were to start long ago."""
        self.execute("UPDATE job_state SET next_us = %s WHERE job_id = ANY (%s)", LONG_AGO, list(ids))

    def says_it_runs(self, id, due_us, fence):
        """Write a record. The fence holds the epoch of the agent that marked the tick, and 0 has never been one."""
        self.execute(
            "INSERT INTO tick (job_id, due_us, attempt, fence, outcome) VALUES (%s, %s, 1, %s, 'running')",
            *(id, due_us, fence),
        )

    def open_requests(self):
        return self.execute("SELECT count(*) FROM request WHERE done_at IS NULL").fetchone()[0]

    def scheduled(self):
        return self.execute("SELECT count(*) FROM execution WHERE status = 'scheduled'").fetchone()[0]

    async def audit(self, queue=None, wait=60.0):
        return await run_sync(lambda: audit_store(self.store("visitor"), queue, wait=wait))


@pytest.fixture
def place(postgres_server, postgres_schema):
    return Place(postgres_server.dsn, postgres_schema)


def is_settled(*agents):
    """Whether each of them has what is to be its own while these are there, in its heap, and knows of the others."""
    if any(len(s.jobs()) < len(IDS) for s in agents) or sum(j.is_waiting for s in agents for j in s.jobs()) != len(IDS):
        return False
    views = [s._core.jobs.ownership.view for s in agents]
    epochs = [s._memory.store.epoch for s in agents]
    return all(view and list(view.owners) == rightful_owners(epochs) for view in views)


async def add(s, *ids):
    for id in ids:
        s.add("nothing", FAR, id=id)
    await s.flush()


async def test_where_all_is_well_nothing_is_touched(place):
    """It takes nothing over: the agent goes on, and each job is stamped."""
    async with place.agent() as s:
        await add(s, *IDS)
        found = await place.audit()
        assert (found.jobs, found.agents, found.busy, found.mended, found.left) == (40, 1, 0, 0, 0)
        assert place.execute("SELECT count(*) FROM audit").fetchone()[0] == 40
        assert [peer.name for peer in place.store().fleet().agents] == ["agent"]


async def test_what_a_heap_has_lost_its_agent_puts_back(place):
    """Of two agents the one that has it; who waits in its heap is well. Then the rows say so, too."""
    async with place.agent("one") as one, place.agent("two") as two:
        await add(one, *IDS)
        await until(lambda: is_settled(one, two))
        lost = [next(s.get(id) for id in IDS if s.get(id).agent == name) for name, s in (("one", one), ("two", two))]
        for s, job in zip((one, two), lost, strict=True):
            s._core.queue.disarm(job)
            await s.flush()
        well = next(id for id in IDS if id not in {job.id for job in lost})
        place.is_long_ago(well, *(job.id for job in lost))
        found = await place.audit()
        became = {each.job_id: (each.doubt, each.became, each.reason) for each in found.findings}
        assert became == {well: (Doubt.LATE, Became.WELL, None)} | {
            job.id: (Doubt.LATE, Became.MENDED, "not in heap") for job in lost
        }
        assert (found.mended, found.left) == (2, 0)
        assert all(job.is_waiting for job in lost)
        assert (await place.audit()).findings == ()


async def test_a_record_that_nobody_runs_is_closed(place):
    """By the agent that has the job: its agent of then is gone."""
    async with place.agent() as s:
        await add(s, "a", "b")
        due_us = int(SystemClock().wall() - 60) * 1_000_000
        place.says_it_runs("a", due_us, fence=5)
        found = await place.audit()
        [finding] = found.findings
        assert (finding.job_id, finding.doubt, finding.became) == ("a", Doubt.NOBODY_RUNS, Became.MENDED)
        await s.flush()
        assert [record.outcome for record in await s.history("a")] == [Outcome.CRASHED]


async def test_where_no_agent_is_it_says_what_waits_for_one(place):
    """What a dead one had is nobody's then, and a next start finds it."""
    async with place.agent() as s:
        await add(s, "a", "b")
    async with place.left_by_death("dead"):
        place.is_long_ago("b")
        found = await place.audit()
        assert (found.agents, found.buried) == (0, ("dead",))
        assert [(each.job_id, each.became) for each in found.findings] == [("b", Became.WITH_NOBODY)]
        assert (found.mended, found.left) == (1, 1)


async def test_an_agent_that_renews_its_lease_is_not_removed(place):
    """By the server's clock, which was set just now, its lease ended long ago."""
    async with place.agent() as s:
        await add(s, *IDS)
        while place.execute("UPDATE lease SET until = now() - interval '1h' RETURNING 1").fetchone():
            with place.store("visitor").visit() as visit:
                if visit.ended():
                    break
        found = await place.audit()
        assert (found.buried, found.agents, found.mended) == ((), 1, 0)


async def test_a_lease_that_is_renewed_between_two_looks_counts(place):
    """Beside one that is not."""
    async with place.left_by_death("dead") as dead, place.left_by_death("alive") as alive:
        with place.store("visitor").visit() as visit:
            ended = visit.ended()
            assert ended.keys() == {dead.epoch, alive.epoch}
            place.execute("UPDATE lease SET until = now() - interval '59m' WHERE epoch = %s", alive.epoch)
            assert visit.bury(ended) == ["dead"]
            assert visit.ended().keys() == {alive.epoch}


async def test_a_paused_job_and_one_that_runs_are_not_doubted(place):
    """Nor is one under the pause of a tag."""
    async with place.agent() as s:
        await add(s, "paused", "runs")
        s.add("nothing", FAR, id="tagged", tags=["slow"])
        s.get("paused").pause()
        s.pause("slow")
        await s.flush()
        due_us = int(SystemClock().wall()) * 1_000_000
        place.says_it_runs("runs", due_us, fence=s._memory.store.epoch << 32)
        place.is_long_ago("paused", "runs", "tagged")
        assert (await place.audit()).findings == ()


async def test_who_does_not_answer_is_not_waited_for(place):
    """And nothing stays asked."""
    async with place.agent() as s:
        await add(s, "a")
    store = place.store("silent")
    store.open(0, lambda: None)
    store.sharing.claim(range(1_024))
    place.execute("UPDATE lease SET until = now() + interval '1h'")
    place.is_long_ago("a")
    found = await place.audit(wait=0.0)
    assert [each.became for each in found.findings] == [Became.NOT_ANSWERED]
    assert place.open_requests() == 0
    store.close()


async def test_a_part_that_another_audit_is_at_is_left_out(place):
    """It does not wait."""
    async with place.agent() as s:
        await add(s, *IDS)
        with connect(place.dsn) as other:
            other.execute("SELECT pg_advisory_xact_lock(hashtext(%s), 3)", [s._memory.store.executions._name])
            found = await place.audit()
        assert found.busy == 1
        assert 0 < found.jobs < 40


async def test_a_store_without_tables_is_refused(place):
    """It makes none."""
    with pytest.raises(StoreUnusable, match="holds no tables of timerqueue"):
        await place.audit()
    assert place.execute("SELECT to_regclass('job')").fetchone() == (None,)


def a_queue(broker, **options):
    return BeanstalkdQueue(broker.address, ttr=10, **options)


@pytest.mark.parametrize("is_beside", [False, True])
async def test_what_a_queue_has_lost_stands_in_it_again(place, broker, is_beside):
    """Each job has exactly one start there afterwards: beside an agent, and where none is any more."""
    async with place.agent(queue=a_queue(broker)) as s:
        await add(s, *IDS)
        queue = s._memory.membership.dispatch.queue
        await until(lambda: queue.census(Kind.RUN).total == 40)
        place.execute("UPDATE execution SET made_us = 0")
        with pytest.raises(ValueError, match="jobs of this store stand in a queue"):
            await place.audit()
        if is_beside:
            await until(lambda: place.scheduled() == 40)
            await s._memory.membership.audit.audit()  # so that the one at its beginning is over
            await check_lost(place, broker)
    if not is_beside:
        await check_lost(place, broker)


async def check_lost(place, broker):
    place.execute("DELETE FROM execution WHERE job_id = 'job-0'")
    broker.restart(log=False)
    found = await place.audit(a_queue(broker, reservers=0))
    assert (found.jobs, found.planned, found.requeued, found.left) == (40, 1, 39, 0)
    queue = a_queue(broker, reservers=0)
    queue.open(SystemClock(), lambda *_: None, lambda _: None)
    assert queue.census(Kind.RUN).total == 40
    queue.close()
    assert (await place.audit(a_queue(broker, reservers=0))).mended == 0


@pytest.mark.parametrize("by_an_agent", [False, True])
async def test_what_others_have_buried_stands_in_the_queue_again(place, broker, by_an_agent):
    """A program that reads our tube by mistake puts aside what it cannot read. What it has put and buried stays."""
    async with place.agent(queue=a_queue(broker, reservers=0)) as s:
        await add(s, *IDS)
        await until(lambda: place.scheduled() == 40)
        await s._memory.membership.audit.audit()  # so that the one at its beginning is over
        with Client(str(broker.path), use="timerqueue") as other:
            numbers = [number for (number,) in place.execute("SELECT number FROM execution").fetchall()]
            for number in (*numbers, other.put("theirs")):
                other.bury(other.reserve_job(number))
            assert other.stats_tube("timerqueue")["current-jobs-buried"] == 41
            if by_an_agent:
                assert await s._memory.membership.audit.audit() == 40
            else:
                found = await place.audit(a_queue(broker, reservers=0))
                assert (found.requeued, found.mended, found.left) == (40, 40, 0)
            await until(lambda: other.stats_tube("timerqueue")["current-jobs-delayed"] == 40)
            assert other.stats_tube("timerqueue")["current-jobs-buried"] == 1


async def test_what_a_dead_agent_had_taken_stands_in_the_queue_again(place, broker):
    """Nobody had buried it, for nobody was there."""
    async with place.agent(queue=a_queue(broker)) as s:
        await add(s, "a")
        await until(lambda: place.scheduled() == 1)
    async with place.left_by_death("dead") as dead:
        place.execute("UPDATE execution SET status = 'taken', epoch = %s, made_us = 0", dead.epoch)
        found = await place.audit(a_queue(broker, reservers=0))
        assert (found.buried, found.requeued) == (("dead",), 1)
