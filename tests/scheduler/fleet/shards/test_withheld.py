"""Ticks of jobs that are about to go to another agent are left due for a moment."""

from contextlib import asynccontextmanager

import anyio
import pytest

from kit import settle
from schedule import Every
from scheduler import MissedReason, Scheduler, current_run
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START


@asynccontextmanager
async def one_withheld(clock, begun):
    """Two jobs start each second, and the first tick of "one" has been withheld."""
    s = Scheduler(store=MemoryStore(), clock=clock)

    @s.task("work")
    async def work():
        begun.append((current_run().job_id, (current_run().due - START).total_seconds()))

    for id in ("one", "other"):
        s.add("work", Every("1s", anchor=START), id=id)
    async with s:
        await settle()
        s._core.clock_guard.withhold([s._core.jobs.find("one")])
        clock.advance(1)
        await settle()
        yield s


async def test_what_was_withheld_begins_when_it_is_let_go(clock):
    """It is the tick that was due, and nothing was recorded meanwhile."""
    begun = []
    async with one_withheld(clock, begun) as s:
        assert begun == [("other", 1.0)]
        assert await s.history("one") == []
        s._core.clock_guard.withhold(())
        await settle()
        assert begun == [("other", 1.0), ("one", 1.0)]
        clock.advance(1)
        await settle()
        assert sorted(begun[2:]) == [("one", 2.0), ("other", 2.0)]
        assert s.statistics().missed == 0


async def test_an_audit_leaves_what_is_withheld(clock):
    """It mends any other job that has no start in the queue."""
    begun = []
    async with one_withheld(clock, begun) as s:
        job = s._core.jobs.find("one")
        assert s._core.clock_guard.has_left(job)
        assert not (await s.audit()).mended
        await settle()
        assert begun == [("other", 1.0)]
        s._core.clock_guard.withhold(())
        assert not s._core.clock_guard.has_left(job)


@asynccontextmanager
async def one_waits(clock, events, begun):
    """There is room for one run, and "long" has it. "one" waits in the line before "other", and is to stay there."""
    s = Scheduler(1, store=MemoryStore(), clock=clock)
    s.listen(events)
    may_end = anyio.Event()

    @s.task("work")
    async def work():
        begun.append((current_run().job_id, (current_run().due - START).total_seconds()))
        if current_run().job_id == "long":
            await may_end.wait()

    for number, id in enumerate(("long", "one", "other")):
        s.add("work", Every("1h", anchor=START), id=id, start=START.replace(second=number + 1))
    async with s:
        await settle()
        await clock.travel(3)
        s._core.runs.marks.let_stay(lambda job: job.id == "one")
        yield s, may_end


async def test_what_waits_for_room_gets_none_while_its_ticks_are_withheld(clock, events):
    """It would run again and again where the line is long, and its shard could never go. Others have the room."""
    begun = []
    async with one_waits(clock, events, begun) as (s, may_end):
        may_end.set()
        await settle()
        assert begun == [("long", 1.0), ("other", 3.0)]
        assert s._core.journal.is_durable(s._core.jobs.find("one"))
        s._core.runs.marks.let_stay(lambda job: False)
        await settle()
        assert begun[2:] == [("one", 2.0)]
    assert events.missed() == []


async def test_what_stays_for_a_moment_that_is_over_begins(clock, events):
    """It had room and was about to hand it back."""
    begun = []
    async with one_waits(clock, events, begun) as (s, may_end):
        marks = s._core.runs.marks
        hand_back = marks._hand_back
        marks._hand_back = lambda runs: (marks.let_stay(lambda job: False), hand_back(runs))
        may_end.set()
        await settle()
        assert begun == [("long", 1.0), ("other", 3.0), ("one", 2.0)]


@pytest.mark.parametrize("ends", ["removed", "stopped"])
async def test_what_stays_ends_with_its_job_or_the_scheduler(clock, events, ends):
    """Its tick is not begun by then."""
    begun = []
    async with one_waits(clock, events, begun) as (s, may_end):
        may_end.set()
        await settle()
        if ends == "removed":
            s.get("one").remove()
            await settle()
            s._core.runs.marks.let_stay(lambda job: False)
            await settle()
    s._core.runs.marks.let_stay(lambda job: False)  # the scheduler has ended
    assert begun == [("long", 1.0), ("other", 3.0)]
    assert events.missed(job_id="one") == ([] if ends == "stopped" else [(1, MissedReason.REMOVED)])
