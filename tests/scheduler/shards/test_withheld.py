"""Ticks of jobs that are about to go to another agent are left due for a moment."""

from contextlib import asynccontextmanager

from kit import settle
from schedule import Every
from scheduler import Scheduler, current_run
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
        s._core.trust.withhold([s._core.jobs.find("one")])
        clock.advance(1)
        await settle()
        yield s


async def test_what_was_withheld_begins_when_it_is_let_go(clock):
    """It is the tick that was due, and nothing was recorded meanwhile."""
    begun = []
    async with one_withheld(clock, begun) as s:
        assert begun == [("other", 1.0)]
        assert await s.history("one") == []
        s._core.trust.withhold(())
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
        assert s._core.trust.has_left(job)
        assert not (await s.audit()).mended
        await settle()
        assert begun == [("other", 1.0)]
        s._core.trust.withhold(())
        assert not s._core.trust.has_left(job)
