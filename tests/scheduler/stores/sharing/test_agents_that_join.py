"""An agent joins others whose jobs never rest: it gets its part, and no tick runs twice or is left out."""

import threading
from collections import Counter, defaultdict
from itertools import pairwise

import anyio
import pytest

from kit import until
from proxy import Proxy
from schedule import After, Every, Missed
from scheduler import Outcome, Overlap, Scheduler, current_run
from scheduler.stores.postgres import PostgresStore

JOBS = 120
SKIPS = {"overlap": Overlap.SKIP}
MAKES_UP = {"overlap": Overlap.QUEUE, "missed": Missed.ALL, "catch_up": 1_000}


class Log:
    """What the tasks themselves have noted: the due instants of each job, and by whom."""

    def __init__(self):
        self.begun = defaultdict(list)
        self.by = Counter()

    def scheduler(self, store, name, schedule, *, takes=0.0, policy=SKIPS, **options):
        s = Scheduler(store=store, poll="50ms", **options)

        async def work():
            run = current_run()
            self.begun[run.job_id].append((run.due.timestamp(), run.attempt))
            self.by[name] += 1
            await anyio.sleep(takes)

        s.register("work", work)
        for number in range(JOBS):
            s.add("work", schedule, id=f"job {number}", on_conflict="keep", **policy)
        return s

    def check(self):
        """See that no tick has begun twice, and that each job's came one after another."""
        for ticks in self.begun.values():
            assert all(one < other for one, other in pairwise(ticks)), ticks


class SlowStore:
    """A shared store that gives the jobs of other agents when it is told to, as one does that has very many."""

    class Slow:
        def __init__(self, sharing):
            self._sharing = sharing
            self.goes_on = threading.Event()

        def __getattr__(self, name):
            return getattr(self._sharing, name)

        def load_others(self, shards):
            yield []
            self.goes_on.wait()
            yield from self._sharing.load_others(shards)

    def __init__(self, store):
        self._store = store
        self.sharing = self.Slow(store.sharing)

    def __getattr__(self, name):
        return getattr(self._store, name)


def jobs_of(s, name):
    """Count the jobs of that agent."""
    return sum(job.agent == name for job in s.jobs())


async def test_jobs_that_start_again_at_once_go_to_who_joins(shared_store):
    """Each ran, or waited for what it had noted, whenever it was looked at: the new one got nothing at all."""
    log, again = Log(), After("1ms")
    async with log.scheduler(shared_store("one"), "one", again) as one:
        await until(lambda: len(log.begun) == JOBS)
        async with log.scheduler(shared_store("two"), "two", again) as two:
            await until(lambda: jobs_of(two, "two") > JOBS // 4)
            by = Counter(log.by)
            await until(lambda: all(log.by[name] > by[name] + JOBS for name in ("one", "two")))
            assert one.statistics().missed == two.statistics().missed == 0
    log.check()


@pytest.mark.parametrize("policy", [SKIPS, MAKES_UP], ids=["one tick each", "ever more ticks"])
async def test_jobs_that_wait_in_a_line_go_to_who_joins(shared_store, policy):
    """With a limit that always has waiting work nearly every job has a run that waits, or several ticks that do."""
    log, every = Log(), Every("200ms")
    options = {"limit": 2, "takes": 0.1, "policy": policy}
    async with log.scheduler(shared_store("one"), "one", every, **options) as one:
        await until(lambda: log.by["one"] > 10)
        async with log.scheduler(shared_store("two"), "two", every, **options) as two:
            await until(lambda: jobs_of(two, "two") > JOBS // 4)
            by = Counter(log.by)
            await until(lambda: all(log.by[name] > by[name] + 10 for name in ("one", "two")))
            await two.flush()
        await one.flush()
        for number in range(0, JOBS, 10):
            await check_every_slot(one, f"job {number}", 200_000)
    log.check()


async def test_jobs_of_an_agent_far_from_the_server_go_to_who_joins(postgres_server, postgres_schema, shared_store):
    """A commit takes half a second there, and its ticks were withheld for as long: the new one got nothing, ever."""
    log, every = Log(), Every("500ms")
    with Proxy(postgres_server.folder / ".s.PGSQL.5432") as proxy:
        far = PostgresStore(proxy.dsn, schema=postgres_schema, shared=True, name="one")
        async with log.scheduler(far, "one", every) as one:
            await until(lambda: len(log.begun) == JOBS)
            proxy.delay(0.1)
            async with log.scheduler(shared_store("two"), "two", every) as two:
                await until(lambda: jobs_of(two, "two") > JOBS // 4)
                by = Counter(log.by)
                await until(lambda: all(log.by[name] > by[name] + 10 for name in ("one", "two")))
            proxy.pass_on()
            await one.flush()
    log.check()


async def test_who_joins_gets_nothing_before_it_has_read_the_store(shared_store):
    """What it was given before that stood still until then: for seconds, with many jobs."""
    log, store, daily = Log(), SlowStore(shared_store("two")), Every("1d")
    async with log.scheduler(shared_store("one"), "one", daily) as one, anyio.create_task_group() as group:
        await one.flush()
        two = log.scheduler(store, "two", daily)
        group.start_soon(two.run)
        await until(lambda: len(one.statistics().fleet.agents) > 1)
        looks = one._memory.membership.node.lease.turns
        await until(lambda: one._memory.membership.node.turn > looks + 5)
        assert jobs_of(one, "one") == JOBS
        store.sharing.goes_on.set()
        await until(lambda: jobs_of(one, "two") > JOBS // 4)
        two.stop()


async def check_every_slot(s, id, interval_us):
    """See that each slot of the job has one record, or is one of those that one says were missed."""
    ticks = await s._memory.history(id, 10_000, None)
    cut_off = Outcome.CANCELLED.value  # by the orderly stop of an agent, whose runs end within a second or not at all
    assert {tick.outcome for tick in ticks} <= {Outcome.SUCCEEDED.value, cut_off, "missed", "running"}
    slots = [due for tick in ticks for due in range(tick.due_us, (tick.last_due_us or tick.due_us) + 1, interval_us)]
    slots.sort()
    assert [later - before for before, later in pairwise(slots)] == [interval_us] * (len(slots) - 1)
