"""A run that is asked for beside a tick that is about to begin: who asks has an answer that is so."""

import threading

import anyio
import pytest

from kit import PATIENCE, nothing, relative, until
from schedule import Every
from scheduler import MissedReason, Outcome, RunEnded, RunMissed, RunStarted, Scheduler
from scheduler.stores.memory import MemoryStore
from scheduler.stores.sqlite import SQLiteStore
from timerqueue.testing import START

EVERY = Every(10, anchor=START)


async def test_a_run_that_waits_for_room_as_a_tick_comes_is_answered_by_that_one(clock, events):
    """It was told that there is no room, and the tick ran as soon as there was."""

    async def long():
        await clock.sleep(25)

    async with Scheduler(1, clock=clock) as s:
        s.listen(events)
        s.add(long, "@every 10000s", id="other", start="now")
        job = s.add(nothing, EVERY, id="job")
        await clock.travel(5)
        asked = job.run_now()
        await clock.travel(19)
        assert not asked.is_done
        await clock.travel(3)
        end = await asked
    assert isinstance(end, RunEnded)
    assert (end.outcome, relative([end.due])) == (Outcome.SUCCEEDED, [20])
    assert events.missed("job") == [(1, MissedReason.NO_ROOM)]  # the slot before that: the limit was full
    assert len(events.starts("job")) == 1


async def test_a_run_that_is_asked_for_as_a_tick_waits_goes_along_with_it(clock, events):
    """The tick lost its place to it, and was missed."""

    async def long():
        await clock.sleep(15)

    async with Scheduler(1, clock=clock) as s:
        s.listen(events)
        s.add(long, "@every 10000s", id="other", start="now")
        job = s.add(nothing, EVERY, id="job")
        await clock.travel(12)
        asked = [job.run_now() for _ in range(3)]
        await clock.travel(5)
        assert {(await each).due for each in asked} == {events.of(RunStarted, job_id="job")[0].due}
    assert events.missed("job") == []


async def test_while_a_run_goes_on_the_overlap_rule_is_the_reason(clock):
    """That one has begun, and stands for nothing else."""

    async def work():
        await clock.sleep(5)

    async with Scheduler(clock=clock) as s:
        job = s.add(work, EVERY)
        await clock.travel(12)
        answer = await job.run_now()
        assert isinstance(answer, RunMissed)
        assert answer.reason is MissedReason.OVERLAP


class SlowStore(MemoryStore):
    """A store whose commits wait until `gate` is set."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.waits = False

    @property
    def is_immediate(self):
        return False

    def commit(self, batch):
        self.waits = not self.gate.is_set()
        self.gate.wait()
        return super().commit(batch)


async def test_a_run_that_is_asked_for_as_a_mark_is_on_its_way_goes_along_with_it(clock):
    """It was told that the store had not recorded it yet."""
    store = SlowStore()
    async with Scheduler(store=store, clock=clock) as s:
        s.register("work", nothing)
        job = s.add("work", EVERY, id="job")
        await s.flush()
        store.gate.clear()
        await clock.travel(11)
        await until(lambda: store.waits)
        asked = job.run_now()
        await clock.travel(1)
        store.gate.set()
        end = await asked
        assert (end.outcome, relative([end.due])) == (Outcome.SUCCEEDED, [10])
        assert job.statistics().missed == 0


async def test_of_a_hundred_runs_that_are_asked_for_none_is_missed(tmp_path):
    """Of 300 it were 4 to 8, of a job that ticks all the time, with SQLite."""
    async with Scheduler(store=SQLiteStore(tmp_path / "jobs.db")) as s:
        s.register("work", nothing)
        job = s.add("work", "@every 5ms", id="job")
        with anyio.fail_after(PATIENCE):
            answers = [await job.run_now() for _ in range(100)]
    assert {(answer.outcome, answer.error) for answer in answers} == {(Outcome.SUCCEEDED, None)}


@pytest.mark.parametrize("ends", ["pause", "remove"])
async def test_who_goes_along_hears_of_what_befalls_that_tick(clock, ends):
    """It is its own answer from then on."""

    async def long():
        await clock.sleep(100)

    async with Scheduler(1, clock=clock) as s:
        s.add(long, "@every 10000s", id="other", start="now")
        job = s.add(nothing, EVERY, id="job")
        await clock.travel(12)
        asked = job.run_now()
        getattr(job, ends)()
        await clock.travel(1)
        answer = await asked
        assert answer.reason.name.lower() == f"{ends}d"


async def test_a_run_that_is_asked_for_before_several_slots_pass_at_once_goes_along_with_the_newest(clock):
    """What waited was older, and was missed."""
    async with Scheduler(1, store=MemoryStore(), clock=clock) as s:
        s.register("long", clock.sleep)
        s.register("work", nothing)
        s.add("long", "@every 10000s", id="other", args=(12,), start="now")
        job = s.add("work", EVERY, id="job")
        await clock.travel(5)
        asked = job.run_now()
        await clock.travel(0)
        clock.advance(30)
        await clock.travel(5)
        with anyio.fail_after(PATIENCE):
            end = await asked
    assert (end.outcome, relative([end.due])) == (Outcome.SUCCEEDED, [30])
