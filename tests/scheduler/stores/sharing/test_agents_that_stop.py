"""An agent that shares a store stops in order: what it has not begun, others begin, at once and each tick once."""

import threading
from collections import Counter

import pytest
from anyio import create_task_group
from anyio.to_thread import run_sync

from kit import PATIENCE, until
from schedule import Every
from scheduler import Delivery, Overlap, Scheduler, current_run
from scheduler._fleet.lease import lease
from scheduler.stores import shard_of

DAILY = Every("1d")


class HeldUp:
    """A shared store whose commits with marks wait until they may go on."""

    def __init__(self, store):
        self._store = store
        self.has_come, self.may_go = threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, batch):
        if batch.marks:
            self.has_come.set()
            self.may_go.wait()
        return self._store.commit(batch)


class Log:
    """What the tasks themselves have noted: who began which tick of which job."""

    def __init__(self):
        self.begun = []

    def scheduler(self, store, name, **options):
        s = Scheduler(store=store, poll="50ms", **options)

        async def work():
            self.begun.append((name, current_run().job_id, current_run().due))

        s.register("work", work)
        return s

    def twice(self):
        return [tick for tick, count in Counter((job, due) for _, job, due in self.begun).items() if count > 1]


class Deaf:
    """A sharing in which nobody looks for a long time whether a neighbour is still to be waited for."""

    def __init__(self, sharing):
        self._sharing = sharing
        self.waits, self.may_go = threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self._sharing, name)

    def hear(self, epoch, is_over):
        self.waits.set()
        self.may_go.wait()
        return False


class DeafStore:
    """A shared store with such a sharing."""

    def __init__(self, store):
        self._store = store
        self.sharing = Deaf(store.sharing)

    def __getattr__(self, name):
        return getattr(self._store, name)


async def history_of(s, id):
    return [(record.outcome.value, record.attempt) for record in await s.history(id)]


@pytest.mark.parametrize("delivery", Delivery)
@pytest.mark.parametrize("is_by_hand", [False, True], ids=["by its schedule", "by hand"])
async def test_a_tick_whose_mark_is_on_its_way_at_the_stop_begins_elsewhere(shared_store, delivery, is_by_hand):
    """It was recorded as missed and began nowhere, unless its job's delivery was at least once."""
    log, store = Log(), HeldUp(shared_store("one"))
    async with log.scheduler(store, "one") as one:
        start = "phase" if is_by_hand else "now"
        job = one.add("work", DAILY, id="a", start=start, delivery=delivery)
        if is_by_hand:
            job.run_now()
        await run_sync(store.has_come.wait)
        one.stop("5s")
        store.may_go.set()
    assert log.begun == []
    async with log.scheduler(shared_store("two"), "two") as two:
        await until(lambda: log.begun)
        await two.flush()
        assert [name for name, _, _ in log.begun] == ["two"]
        await until(lambda: two.get("a").statistics().successes)
        await two.flush()
        assert await history_of(two, "a") == [("succeeded", 1)]
        statistics = two.get("a").statistics()
        assert (statistics.runs, statistics.missed, statistics.consecutive_crashes) == (1, 0, 0)


async def test_ticks_beside_the_grid_that_wait_at_the_stop_begin_elsewhere(shared_store):
    """No state can say of them that they are still to come: they were recorded as missed."""
    log = Log()
    async with log.scheduler(shared_store("one"), "one", limit=1) as one:
        gate = threading.Event()
        one.register("long", gate.wait)
        one.add("long", DAILY, id="long", start="now")
        await until(lambda: one.get("long").statistics().runs)
        waits, queues = (one.add("work", DAILY, id=id, overlap=Overlap.QUEUE) for id in ("waits", "queues"))
        for job in (waits, queues, queues):
            job.run_now()
        await one.flush()
        one.stop("30s")
        gate.set()
    assert log.begun == []
    async with log.scheduler(shared_store("two"), "two"):
        await until(lambda: len(log.begun) > 2)
    assert sorted(job for _, job, _ in log.begun) == ["queues", "queues", "waits"]
    assert log.twice() == []


async def test_what_waits_for_a_run_that_ends_just_before_the_stop_begins_elsewhere(shared_store):
    """`stop` lets nothing begin any more, and looks a moment later at what goes on: by then nothing of the job did."""
    log, store = Log(), HeldUp(shared_store("one"))
    async with log.scheduler(store, "one", limit=1) as one:
        one.add("work", DAILY, id="first", start="now")
        await run_sync(store.has_come.wait)
        queues = one.add("work", DAILY, id="queues", overlap=Overlap.QUEUE)
        queues.run_now()
        queues.run_now()
        await until(lambda: one._core.jobs.find("queues").backlog)
        one._core.runs.stop_starting()
        store.may_go.set()
        await until(lambda: not one._core.jobs.find("queues").runs)
        one.stop("30s")
    async with log.scheduler(shared_store("two"), "two"):
        await until(lambda: len(log.begun) > 2)
    assert sorted(job for _, job, _ in log.begun) == ["first", "queues", "queues"]
    assert log.twice() == []


async def test_a_change_of_the_job_does_not_forget_a_tick_that_never_began(shared_store):
    """Its delivery is at most once, and so it is still to begin once."""
    log, store = Log(), HeldUp(shared_store("one"))
    async with log.scheduler(store, "one") as one:
        one.add("work", DAILY, id="a", start="now")
        await run_sync(store.has_come.wait)
        one.stop()
        store.may_go.set()
    async with log.scheduler(shared_store("two"), "two") as two:
        two.add("work", DAILY, id="a", priority=3, on_conflict="update")
        await until(lambda: log.begun)
    assert len(log.begun) == 1


async def test_who_stops_gives_its_jobs_away_before_it_waits_for_anything(shared_store, monkeypatch):
    """It waited for its own threads first, one of which looks ten times a second whether it is to end."""
    monkeypatch.setattr(lease, "LAST_TURN", PATIENCE)
    log, store = Log(), DeafStore(shared_store("one"))
    async with log.scheduler(shared_store("two"), "two") as two, create_task_group() as group:
        for number in range(20):
            two.add("work", DAILY, id=f"job {number}")
        one = log.scheduler(store, "one")
        group.start_soon(one.run)
        await until(lambda: {job.agent for job in two.jobs()} == {"one", "two"})
        await run_sync(store.sharing.waits.wait)
        one.stop()
        await until(lambda: {job.agent for job in two.jobs()} == {"two"})
        assert not one._life._has_ended
        assert not shared_store("none").fleet().hand_overs[0].is_dead
        store.sharing.may_go.set()


async def test_what_does_not_run_goes_to_others_at_once_when_the_stop_takes_long(shared_store):
    """It stood still until the last run had ended. Jobs that run go when they have, the others of their shards too."""
    log = Log()
    async with log.scheduler(shared_store("two"), "two") as two, create_task_group() as group:
        gate, began, one = threading.Event(), threading.Event(), log.scheduler(shared_store("one"), "one")
        for s in (one, two):
            s.register("long", lambda: began.set() or gate.wait())
        for number in range(40):
            two.add("work", Every("200ms"), id=f"job {number}", on_conflict="keep")
            two.add("long", DAILY, id=f"long {number}", overlap=Overlap.QUEUE, on_conflict="keep")
        group.start_soon(one.run)
        await until(lambda: {job.agent for job in two.jobs()} == {"one", "two"})
        await until(lambda: {name for name, _, _ in log.begun} == {"one", "two"})
        long = next(job for job in one.jobs() if job.agent == "one" and job.id.startswith("long"))
        one.get(long.id).run_now()
        await until(began.is_set)
        one.stop("1h")
        others = [job.id for job in two.jobs() if shard_of(job.id) != shard_of(long.id)]
        await until(lambda: {two.get(id).agent for id in others} == {"two"})
        since = len(log.begun)
        await until(lambda: {job for _, job, _ in log.begun[since:]} >= {id for id in others if id.startswith("job")})
        assert (two.get(long.id).agent, one._life._has_ended) == ("one", False)
        gate.set()
        await until(lambda: two.get(long.id).agent == "two")
    assert log.twice() == []
    assert [tick.outcome for tick in shared_store("none").history(long.id)] == ["succeeded"]
