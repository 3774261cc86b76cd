"""A scheduler whose next starts stand in a queue: they come out, are taken with their jobs, run, and go again."""

from contextlib import asynccontextmanager
from datetime import UTC, datetime
from threading import Event

import anyio
import pytest

from kit import PATIENCE, nothing, settle, until
from scheduler import Overlap, Retry, Scheduler
from scheduler._fleet.queue.claims import Claim, Claims
from scheduler._fleet.queue.long_claims import LongClaims
from scheduler.queues import Kind, Tick
from scheduler.queues.local import LocalQueue
from scheduler.stores import DONE, PENDING, SCHEDULED, SUPERSEDED
from scheduler.stores.memory import MemoryStore
from scheduler.stores.sqlite import SQLiteStore


class Agents:
    """Schedulers one after another, with one store, each with a queue of its own that ends with it."""

    def __init__(self, clock, events):
        self.clock = clock
        self.events = events
        self.store = MemoryStore()
        self.begun = []
        self.takes = 0

    @asynccontextmanager
    async def one(self, *, dies=False, **options):
        self.queue = LocalQueue()
        s = Scheduler(store=self.store, queue=self.queue, clock=self.clock, **options)
        s.listen(self.events)
        s.register("work", self.work)
        async with s:
            yield s
            if dies:
                self.store = self.store.another()
                self.store.open(0, lambda: None)
            s.stop(grace=0)

    async def work(self):
        self.begun.append(round(self.clock.wall() % 1_000_000, 3))
        if self.takes:
            await self.clock.sleep(self.takes)

    def executions(self, job_id="job"):
        return [(row.status, row.instance) for row in self.store.executions.of_job(job_id)]

    def live(self, job_id="job"):
        return [row for row in self.store.executions.of_job(job_id) if row.status in {PENDING, SCHEDULED}]


@pytest.fixture
def agents(clock, events):
    return Agents(clock, events)


async def test_a_job_runs_on_time_out_of_a_queue(agents, clock):
    """Each start is where it would be without one, and exactly one execution stands in the queue between two."""
    async with agents.one() as s:
        job = s.add("work", "@every 10s", id="job")
        await s.flush()
        await settle()
        first = job.next_start
        await clock.travel(35)
        assert len(agents.begun) in {3, 4}
        gaps = {round(b - a, 3) for a, b in zip(agents.begun, agents.begun[1:], strict=False)}
        assert gaps == {10.0}
        assert agents.begun[0] == round(first.timestamp() % 1_000_000, 3)
        assert [status for status, _ in agents.executions()] == [SCHEDULED, DONE]
        assert agents.queue.census(Kind.RUN).total == 1
        assert s.statistics().queue.held == 0


async def test_a_queue_needs_a_store_that_keeps_executions(tmp_path):
    """What comes out of a queue is asked of its row: without one a tick could run twice."""
    with pytest.raises(TypeError, match="store"):
        Scheduler(queue=LocalQueue())
    with pytest.raises(TypeError, match="PostgresStore"):
        Scheduler(store=SQLiteStore(tmp_path / "jobs.sqlite"), queue=LocalQueue())


async def test_a_job_that_is_started_at_once_is_in_the_queue_after_that(agents, clock):
    """Its first run needs no queue: it has not been anywhere else yet."""
    async with agents.one() as s:
        s.add("work", "@every 10s", id="job", start="now")
        await s.flush()
        await settle()
        assert len(agents.begun) == 1
        await clock.travel(25)
        assert len(agents.begun) in {3, 4}
        assert len(agents.live()) == 1


async def test_a_job_that_is_counted_from_its_end_is_planned_then(agents, clock):
    """While it runs it has no next start, so nothing stands in the queue."""
    agents.takes = 7
    async with agents.one() as s:
        s.add("work", "@after 5s", id="job", start="now")
        await clock.travel(3)
        assert agents.live() == []
        await clock.travel(6)
        assert len(agents.live()) == 1
        await clock.travel(20)
        assert [round(b - a, 3) for a, b in zip(agents.begun, agents.begun[1:], strict=False)] == [12.0, 12.0]


async def test_a_run_that_takes_longer_than_the_interval_is_not_run_twice(agents, clock, events):
    """The next execution comes out while the job is at work: the agent that has it decides, by the rule of overlap."""
    agents.takes = 15
    async with agents.one() as s:
        s.add("work", "@every 10s", id="job", overlap=Overlap.SKIP)
        await clock.travel(100)
        gaps = [round(b - a, 3) for a, b in zip(agents.begun, agents.begun[1:], strict=False)]
        assert set(gaps) == {20.0}
        assert s.statistics().queue.dropped["running"] > 0
        assert sum(count for count, _ in events.missed("job")) in {4, 5}
        assert len(agents.live()) == 1


async def test_the_next_start_stands_in_the_queue_while_the_run_goes_on(agents, clock):
    """From its beginning on, and once. Should its agent die under the run, another begins it in time."""
    agents.takes = 0.4
    async with agents.one() as s:
        s.add("work", "@every 10s", id="job")
        for number in (1, 2, 3):
            while len(agents.begun) < number:
                await clock.travel(0.05)
            await clock.travel(0.1)
            assert s.statistics().queue.held == 1
            (row,) = agents.live()
            assert (row.status, row.due_us > clock.wall() * 1e6) == (SCHEDULED, True)
            assert agents.queue.statistics().placed == number + 1
        assert s.statistics().queue.dropped == {}


async def test_what_is_due_again_before_a_short_run_has_ended_is_put_once(agents, clock):
    """Its agent decides about the ticks that come meanwhile. What would give way is never planned, put or asked for."""
    agents.takes = 0.3
    async with agents.one() as s:
        s.add("work", "@every 200ms", id="job")
        await s.flush()
        await clock.travel(30)
        assert len(agents.begun) > 50
        placed = agents.queue.statistics().placed
        assert placed <= len(agents.begun) + 1
        assert s.statistics().queue.dropped == {}


async def test_a_long_stay_soon_after_a_short_one_is_seen(agents, clock):
    """Its next execution is planned after a second: should its agent die under it, the next tick begins elsewhere."""
    async with agents.one() as s:
        s.add("work", "@every 1h", id="job")
        await s.flush()
        held = Claims(None)
        long_claims = LongClaims(held, s._core, agents.queue)
        for pause in (0.2, 0.6, 0.9):
            held.by_id["job"] = Claim()
            long_claims.see("job", held.by_id["job"])
            await clock.travel(pause)
            held.by_id["job"] = second = Claim()
            long_claims.see("job", second)
            await clock.travel(2)
            assert second.is_long


async def test_what_comes_out_during_a_long_run_is_not_asked_of_the_store(agents, clock, monkeypatch):
    """The job is here: there is nothing to ask. It comes out again the less often, the later it is."""
    agents.takes = 100
    async with agents.one() as s:
        s.add("work", "@every 10s", id="job")
        await clock.travel(11)
        asked, executions = [], type(s._memory.membership.dispatch.executions)
        take = executions.take
        monkeypatch.setattr(executions, "take", lambda self, ticks: asked.append(ticks) or take(self, ticks))
        await clock.travel(80)
        assert len(agents.begun) == 1
        assert asked == []
        assert 0 < s.statistics().queue.dropped["running"] < 50


async def test_a_job_that_fails_is_tried_again_where_it_failed(agents, clock):
    """A retry is part of the same tick: it waits with the agent, and then the job goes on in the queue."""
    failures = iter([ValueError("x"), ValueError("y")])

    async def fail():
        agents.begun.append(clock.wall())
        for error in failures:
            raise error

    async with agents.one() as s:
        s.register("fail", fail)
        s.add("fail", "@every 1m", id="job", retry=Retry.constant("2s", max_retries=3))
        await clock.travel(150)
        gaps = [round(b - a) for a, b in zip(agents.begun, agents.begun[1:], strict=False)]
        assert gaps[:3] == [2, 2, 56]
        assert s.statistics().queue.held == 0


async def test_an_edit_replaces_the_execution(agents, clock):
    """Exactly one stands in the queue afterwards, and it is the new one."""
    async with agents.one() as s:
        job = s.add("work", "@every 1h", id="job")
        await s.flush()
        await clock.travel(1)
        (before,) = agents.live()
        job.update(schedule="@every 10s")
        await s.flush()
        await clock.travel(1)
        (after,) = agents.live()
        assert before.due_us != after.due_us
        assert (before.job_id, before.due_us, "superseded") in [
            (row.job_id, row.due_us, row.status) for row in agents.store.executions.of_job("job")
        ]
        assert agents.queue.census(Kind.RUN).total == 1
        await clock.travel(25)
        assert len(agents.begun) in {2, 3}


class SlowQueue(LocalQueue):
    """A queue that takes a put only when it is let."""

    is_immediate = False

    def __init__(self):
        super().__init__()
        self.lets = Event()

    def put(self, ticks):
        assert self.lets.wait(PATIENCE)
        return super().put(ticks)


async def test_an_execution_that_gives_way_on_its_way_to_the_queue_does_not_stay_there(clock):
    """Nobody knows yet where it will stand: it is taken out as soon as that is known."""
    queue, store = SlowQueue(), MemoryStore()
    s = Scheduler(store=store, queue=queue, clock=clock)
    s.register("work", nothing)
    async with s:
        job = s.add("work", "@every 1h", id="job")
        await s.flush()
        await settle()
        job.update(schedule="@every 2h")
        await s.flush()
        await settle()
        queue.lets.set()

        def is_settled():
            return [row.status for row in store.executions.of_job("job")] == [SCHEDULED, SUPERSEDED]

        with anyio.fail_after(PATIENCE):
            while not is_settled():
                await anyio.sleep(0.001)
                await clock.travel(0.01)
        await until(lambda: queue.census(Kind.RUN).total == 1)
        s.stop(grace=0)


async def test_a_paused_job_has_no_execution_and_has_one_again_later(agents, clock):
    """Whoever looks at the queue sees what will run."""
    async with agents.one() as s:
        job = s.add("work", "@every 10s", id="job")
        await clock.travel(1)
        job.pause("for now")
        await s.flush()
        await clock.travel(30)
        assert (agents.live(), agents.begun, agents.queue.census(Kind.RUN).total) == ([], [], 0)
        job.resume()
        await s.flush()
        await clock.travel(30)
        assert len(agents.begun) == 3
        assert len(agents.live()) == 1


async def test_a_removed_job_has_no_execution(agents, clock):
    """Neither in the store nor in the queue."""
    async with agents.one() as s:
        job = s.add("work", "@every 10s", id="job")
        await clock.travel(1)
        job.remove()
        await s.flush()
        await clock.travel(30)
        assert (agents.live(), agents.begun, agents.queue.census(Kind.RUN).total) == ([], [], 0)


async def test_a_job_that_is_removed_while_it_runs_leaves_nothing(agents, clock):
    """The execution that it was taken for is over with it."""
    agents.takes = 5
    async with agents.one() as s:
        job = s.add("work", "@every 10s", id="job")
        while not agents.begun:
            await clock.travel(1)
        job.remove()
        await s.flush()
        await clock.travel(30)
        assert len(agents.begun) == 1
        assert (agents.live(), agents.queue.census(Kind.RUN).total, s.statistics().queue.held) == ([], 0, 0)


async def test_what_an_agent_leaves_goes_on_with_the_next(agents, clock):
    """Its queue ended with it: the next one's first audit puts everything into its own."""
    async with agents.one() as s:
        for number in range(20):
            s.add("work", "@every 10s", id=f"job-{number}")
        await clock.travel(12)
    ran = len(agents.begun)
    assert ran >= 20
    async with agents.one() as s:
        await clock.travel(40)
        assert len(agents.begun) - ran in range(60, 101)
        assert [len(agents.live(f"job-{number}")) for number in range(20)] == [1] * 20
        assert s.statistics().queue.missing >= 20


async def test_what_a_stop_cuts_off_is_tried_again_by_the_next_agent(agents, clock):
    """It is owed, and does not wait for the next start of its job."""
    agents.takes = 1_000
    async with agents.one() as s:
        soon = datetime.fromtimestamp(clock.wall() + 5, UTC)
        s.add("work", "@every 1d", id="job", delivery="at_least_once", start=soon)
        await clock.travel(10)
        assert len(agents.begun) == 1
    agents.takes = 0
    async with agents.one():
        await clock.travel(60)
        assert len(agents.begun) == 2
        assert len(agents.live()) == 1
        assert agents.live()[0].due_us > (clock.wall() + 3_600) * 1_000_000


async def test_a_death_during_a_run_is_a_crash_like_any_other(agents, clock, events):
    """The job that was with it comes to the next agent with the record that says that it ran."""
    agents.takes = 1_000
    async with agents.one(dies=True) as s:
        s.add("work", "@every 10s", id="job")
        while not agents.begun:
            await clock.travel(1)
        await clock.travel(2)
    agents.takes = 0
    del events[:]
    async with agents.one(crash_floor="1m") as s:
        await clock.travel(30)
        assert len(agents.begun) == 1, "it rests after a crash"
        await clock.travel(70)
        assert len(agents.begun) > 1
    assert [tick.outcome for tick in agents.store.history("job")].count("crashed") == 1


async def test_an_execution_that_comes_out_twice_runs_once(agents, clock):
    """A queue gives at least once. The second finds that the first has been run, and is dropped."""
    async with agents.one() as s:
        s.add("work", "@every 10s", id="job")
        await clock.travel(1)
        (live,) = agents.live()
        agents.queue.put([Tick("job", live.due_us)] * 3)
        await clock.travel(9.5)
        assert len(agents.begun) == 1
        await clock.travel(5)
        assert len(agents.begun) == 1
        assert sum(s.statistics().queue.dropped.values()) >= 3


async def test_what_is_no_execution_of_anything_is_dropped(agents, clock):
    """A job that is gone, an instant that nobody has planned."""
    async with agents.one() as s:
        s.add("work", "@every 10s", id="job")
        await clock.travel(1)
        agents.queue.put([Tick("nobody", 0), Tick("job", 1)])
        await clock.travel(1)
        assert agents.begun == []
        assert s.statistics().queue.dropped["unknown"] == 2


async def test_an_audit_puts_what_the_queue_has_lost(agents, clock):
    """Nothing told us of the loss. Within five minutes each job has its execution in the queue again."""
    async with agents.one() as s:
        for number in range(50):
            s.add("work", "@every 1h", id=f"job-{number}")
        await clock.travel(1)
        agents.queue._entries.clear()
        assert agents.queue.census(Kind.RUN).total == 0
        await clock.travel(301)
        waiting = agents.queue.census(Kind.RUN).total
        assert waiting == 50
        assert s.statistics().queue.missing in range(40, 51)  # some may have been due meanwhile


async def test_a_job_of_a_task_that_nobody_has_registered_waits_for_somebody(agents, clock):
    """Its execution goes back, and its state is not touched."""
    async with agents.one() as s:
        s.register("other", agents.work)
        s.add("other", "@every 10s", id="job")
        await clock.travel(1)
    async with agents.one() as s:
        await clock.travel(30)
        assert agents.begun == []
        assert s.statistics().queue.without_task > 0
        s.register("other", agents.work)
        await clock.travel(12)
        assert agents.begun


async def test_a_new_job_that_is_at_work_stands_in_no_queue_yet(agents, clock):
    """Nobody else knows that it is here: an execution of it would be taken beside its first run."""
    agents.takes = 25
    async with agents.one() as s:
        s.add("work", "@every 10s", id="job", start="now")
        await clock.travel(1)
        assert (len(agents.begun), agents.live()) == (1, [])
        await s._memory.membership.audit.audit()  # which finds a job without one
        await clock.travel(120)
        gaps = {round(b - a) for a, b in zip(agents.begun, agents.begun[1:], strict=False)}
        assert min(gaps) > 25, "two at once"
        assert s.get("job").error is None
