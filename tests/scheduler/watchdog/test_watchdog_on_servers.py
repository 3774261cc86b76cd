"""The watchdog of a queue while agents, PostgreSQL and beanstalkd are in trouble. All of them are real.

Whatever happens: each enabled job has exactly one next start afterwards, and that stands in the server; no tick has run
twice; and the next audit comes.
"""

from collections import Counter
from contextlib import ExitStack, asynccontextmanager, suppress

import anyio
import pytest
from anyio.lowlevel import checkpoint
from psycopg import connect
from psycopg.conninfo import make_conninfo

from debian_servers import PgBouncer
from kit import until
from proxy import Proxy
from queued_fleets import QueuedFleet
from scheduler import AuditEnded, StoreUnavailable
from scheduler.queues import Kind, QueueUnavailable
from scheduler.stores import PARTS, SCHEDULED

IDS = [f"job-{number}" for number in range(60)]


@pytest.fixture(scope="module")
def anyio_backend():
    """What the queue and the store do, they do in threads."""
    return "asyncio"


class World(QueuedFleet):
    """Agents that note their audits, and a hand in the tables."""

    @asynccontextmanager
    async def agent(self, name="agent", **options):
        gate = anyio.Event()

        async def hold():
            self.note(name)
            await gate.wait()

        async with super().agent(name, hold=hold, **options) as s:
            yield s
            gate.set()

    def prepare(self, s):
        s.audits = []
        s.listen(lambda event: s.audits.append(event.audit), AuditEnded)

    def schedules(self):
        return dict(self.ask("SELECT job_id, schedule FROM execution WHERE status = 'scheduled'"))

    async def add(self, s, schedule="@every 1h"):
        for id in IDS:
            s.add("work", schedule, id=id)
        await s.flush()
        await until(lambda: self.is_whole(s))
        await s._memory.membership.audit.audit()  # the one at the beginning is over

    def is_whole(self, s):
        """Whether each job has its start, in the store and in the server, apart from what is with an agent just now."""
        there = set(IDS) & {row.job_id for row in self.live() if row.status == SCHEDULED}
        return len(IDS) - 1 <= min(len(there), s._memory.membership.dispatch.queue.census(Kind.RUN).total)

    def check(self):
        super().check()
        assert set(Counter(row.job_id for row in self.live()).values()) <= {1}, "a job has more than one start"


@pytest.fixture
def world(postgres_server, postgres_schema, broker):
    world = World(postgres_server.dsn, postgres_schema, broker, ttr=3)
    yield world
    world.close()


def often(monkeypatch):
    """Have agents audit by their own clocks all the time."""
    monkeypatch.setattr("scheduler._fleet.queue.audit.AUDIT_S", 0.2)


def standing(s):
    """Count what stands in the server; nothing while that cannot be reached."""
    with suppress(QueueUnavailable):
        return s._memory.membership.dispatch.queue.census(Kind.RUN).total
    return 0


async def test_workers_that_are_saturated_are_no_obstacle(world, broker, monkeypatch):
    """The only place is taken, and others wait for it. The server loses all, and the agent sees to it by itself."""
    often(monkeypatch)
    async with world.agent(limit=1) as s:
        s.add("hold", "@every 1h", id="holder", start="now")
        await until(lambda: len(world.runs) == 1)
        await world.add(s)
        for id in IDS[:20]:
            s.get(id).update(schedule="@every 1s")
        await until(lambda: s.statistics().waiting_tasks > 0)
        broker.restart(log=False)
        await until(lambda: standing(s) >= 40)
        assert s.statistics().active_tasks == 1
        world.check()


@pytest.fixture
def few(postgres_server, postgres_schema):
    """A role whose connections can be refused, with `limit`."""
    with connect(postgres_server.dsn, autocommit=True) as hand:
        name = f"few_{postgres_schema}"
        hand.execute(f"CREATE ROLE {name} LOGIN")
        hand.execute(f"GRANT CREATE ON DATABASE postgres TO {name}")

        def limit(connections):
            hand.execute(f"ALTER ROLE {name} CONNECTION LIMIT {connections}")
            hand.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [name])

        limit.dsn = make_conninfo(postgres_server.dsn, user=name)
        yield limit


async def test_where_no_connection_is_free_the_next_audit_comes(world, few, monkeypatch):
    """PostgreSQL refuses us: an audit says so. When there is room again, the next one finds what was lost meanwhile."""
    often(monkeypatch)
    async with world.agent(dsn=few.dsn) as s:
        await world.add(s)
        few(0)
        world.ask("DELETE FROM execution RETURNING job_id")
        await until(lambda: any("too many connections" in (audit.trouble or "") for audit in s.audits))
        assert not world.live()
        few(-1)
        await until(lambda: world.is_whole(s))
        world.check()


@pytest.mark.slow
async def test_a_pooler_without_a_free_connection_holds_up_one_audit(world, postgres_server, monkeypatch):
    """Others have all that it has. Nothing waits for ever, and the next audit comes."""
    often(monkeypatch)
    pooler = PgBouncer(postgres_server, connections=4)
    try:
        async with world.agent(dsn=pooler.dsn) as s:
            await world.add(s)
            with ExitStack() as others:
                for _ in range(4):
                    others.enter_context(connect(pooler.dsn)).execute("SELECT 1")
                world.ask("DELETE FROM execution RETURNING job_id")
                await until(lambda: any("has not answered" in (audit.trouble or "") for audit in s.audits))
            await until(lambda: world.is_whole(s))
            world.check()
    finally:
        pooler.close()


async def test_two_watchdogs_at_once_give_each_job_one_start(world, broker):
    """They share the parts of all jobs, and neither waits for the other."""
    async with world.agent("one") as one, world.agent("two") as two:
        await world.add(one)
        await until(lambda: len(two.jobs()) == len(IDS))
        await two._memory.membership.audit.audit()
        world.ask("DELETE FROM execution RETURNING job_id")
        broker.restart(log=False)
        async with anyio.create_task_group() as group:
            group.start_soon(one._memory.membership.audit.audit)
            group.start_soon(two._memory.membership.audit.audit)
        planned = [s.audits[-1].planned for s in (one, two)]
        assert sum(planned) == len(IDS)
        await until(lambda: world.is_whole(one))
        assert one._memory.membership.dispatch.queue.census(Kind.RUN).total == len(IDS)
        world.check()


@pytest.mark.slow
async def test_a_pass_that_takes_longer_than_ttr_and_lease_is_one_pass(world, postgres_server):
    """It comes to its end: its agent keeps lease and jobs, and another one's audits go on beside it."""
    with Proxy(postgres_server.folder / ".s.PGSQL.5432") as proxy:
        async with world.agent("slow", dsn=proxy.dsn) as slow, world.agent("quick") as quick:
            await world.add(slow)
            for id in IDS[:5]:
                slow.get(id).update(schedule="@every 1s")
            epoch, before = slow._memory.store.epoch, len(world.runs)
            proxy.delay(0.025)
            async with anyio.create_task_group() as group:
                group.start_soon(slow._memory.membership.audit.audit)
                await checkpoint()  # it has begun
                await quick._memory.membership.audit.audit()
            proxy.pass_on()
            await until(lambda: len(world.runs) > before + 5)
            long, short = slow.audits[-1], quick.audits[-1]
            assert long.seconds > 3.0  # that is the lease and the ttr
            assert long.at <= short.at <= long.at + long.seconds
            assert short.has_lock, "it was not kept from all parts"
            assert slow._memory.store.epoch == epoch
            world.check()


class At:
    """Something that happens just before an audit comes to one of its parts, once."""

    def __init__(self, monkeypatch, s, part, act):
        kind = type(s._memory.membership.dispatch.executions)
        audit = kind.audit

        def troubled(executions, number, **asked):
            if number == part and not self.has_happened:
                self.has_happened = True
                act()
            return audit(executions, number, **asked)

        self.has_happened = False
        monkeypatch.setattr(kind, "audit", troubled)


@pytest.mark.parametrize("how", [pytest.param("fast", marks=pytest.mark.slow), "immediate"])
async def test_postgres_is_restarted_in_the_middle_of_a_pass(world, postgres_server, monkeypatch, how):
    """What the pass had done is done; it says that it was cut off, and the next one does the rest."""
    async with world.agent() as s:
        await world.add(s)
        world.ask("DELETE FROM execution RETURNING job_id")
        At(monkeypatch, s, PARTS // 2, lambda: postgres_server.restart(how))
        with pytest.raises(StoreUnavailable):
            await s._memory.membership.audit.audit()
        assert s.audits[-1].trouble
        assert 0 < len(world.live()) < len(IDS)
        await until_audited(s)
        await until(lambda: world.is_whole(s))
        world.check()


async def until_audited(s):
    """Audit until it works: the first connection after a restart finds out that there was one."""
    while True:
        try:
            return await s._memory.membership.audit.audit()
        except (StoreUnavailable, QueueUnavailable):
            await anyio.sleep(0.05)


@pytest.mark.parametrize("log", [True, False], ids=["with its log", "without"])
async def test_beanstalkd_is_restarted_in_the_middle_of_a_pass(world, broker, monkeypatch, log):
    """The instance is another one then, of which the pass does not know: it looks at each place in the end."""
    async with world.agent() as s:
        await world.add(s)
        At(monkeypatch, s, PARTS // 2, lambda: broker.restart(log=log))
        for _ in range(2):
            with suppress(QueueUnavailable):
                await s._memory.membership.audit.audit()
        await until(lambda: world.is_whole(s))
        assert s._memory.membership.dispatch.queue.census(Kind.RUN).total <= len(IDS)
        world.check()


EDITED = dict.fromkeys(IDS[3:], "@every 1h") | {IDS[1]: "@every 2h", "new": "@every 3h"}


def edit(s):
    """Pause one job, change the schedule of another, take out a third, and add one."""
    s.get(IDS[0]).pause()
    s.get(IDS[1]).update(schedule="@every 2h")
    s.get(IDS[2]).remove()
    s.add("work", "@every 3h", id="new")


async def check_edited(world, s, kept=0):
    """Each start follows from what the rows say by now, and stands in the server. `kept`: others that may be there."""
    await until(lambda: world.schedules() == EDITED)
    await s._memory.membership.audit.audit()
    await until(lambda: 0 <= s._memory.membership.dispatch.queue.census(Kind.RUN).total - len(EDITED) <= kept)
    world.check()


async def test_edits_while_postgres_is_away_hold_when_it_is_back(world, postgres_server):
    """They are durable then, and the executions follow."""
    async with world.agent() as s:
        await world.add(s)
        postgres_server.stop()
        try:
            edit(s)
        finally:
            postgres_server.start()
        await until_audited(s)
        await s.flush()
        await check_edited(world, s)


@pytest.mark.parametrize("log", [True, False], ids=["with its log", "without"])
async def test_edits_while_beanstalkd_is_away_hold_when_it_is_back(world, broker, log, monkeypatch):
    """What it kept of before is dropped when it comes out; what it lost, or never had, is put."""
    often(monkeypatch)
    async with world.agent() as s:
        await world.add(s)
        broker.kill()
        try:
            edit(s)
            await s.flush()
        finally:
            broker.restart(log=log)
        await until_audited(s)
        await check_edited(world, s, kept=3 if log else 0)
