"""What runs now and what waits, since when, and for which limit."""

from collections import Counter

import anyio
import anyio.lowlevel

from scheduler import Overlap, Scheduler, Subtask, to_json
from timerqueue.testing import ManualClock


async def test_the_full_limit_is_named():
    """And what holds its units stands before what waits."""
    clock = ManualClock()
    done = anyio.Event()
    async with Scheduler(limits={"db": 1, "web": 5}, clock=clock) as s:
        for id in ("a", "b"):
            s.add(done.wait, "@every 1h", id=id, needs=["db", "web"], start="now")
        await anyio.wait_all_tasks_blocked()
        first, second = s.runs()
        assert (first.state, first.needs, first.waits_for, first.tasks) == ("running", {"db": 1, "web": 1}, None, 1)
        assert (second.state, second.waits_for) == ("waiting", "db")
        assert second.reason == "limit 'db' has no room for it"
        assert (second.since, second.attempt) == (clock.now(), 1)
        assert to_json(second)["since"].endswith("Z")
        done.set()
        await anyio.wait_all_tasks_blocked()
        assert s.runs() == []


async def test_the_scheduler_itself_may_be_full():
    """Its limit has no name."""
    done = anyio.Event()
    async with Scheduler(limit=1, clock=ManualClock()) as s:
        for id in ("a", "b"):
            s.add(done.wait, "@every 1h", id=id, start="now")
        await anyio.wait_all_tasks_blocked()
        waiting = s.runs()[1]
        assert (waiting.waits_for, waiting.reason) == (None, "all 1 places of the scheduler are taken")
        done.set()


async def test_a_tick_may_wait_for_an_earlier_run_of_its_job():
    """Overlap.QUEUE keeps one."""
    clock = ManualClock()
    done = anyio.Event()
    async with Scheduler(clock=clock) as s:
        s.add(done.wait, "@every 1m", id="a", overlap=Overlap.QUEUE, start="now")
        await anyio.wait_all_tasks_blocked()
        clock.advance(150)
        await anyio.wait_all_tasks_blocked()
        running, waiting = s.runs()
        assert (running.state, waiting.state) == ("running", "waiting")
        assert waiting.reason == "an earlier run of its job has not ended"
        assert waiting.due > running.due
        done.set()


async def test_subtasks_count_as_tasks_of_the_run():
    """A run goes on until the last has ended."""
    done = anyio.Event()
    async with Scheduler(clock=ManualClock()) as s:
        s.add(lambda: [Subtask(done.wait) for _ in range(3)], "@every 1m", id="a", inline=True, start="now")
        await anyio.wait_all_tasks_blocked()
        assert [info.tasks for info in s.runs()] == [3]
        done.set()


async def test_a_run_may_wait_for_the_store(tmp_path):
    """Its code begins once the store has recorded its start."""
    seen = Counter()
    async with Scheduler(store=f"sqlite:///{tmp_path}/jobs.db") as s:
        s.register("probe", lambda: None)
        s.add("probe", "@every 1h", id="a", start="now")
        while not s.get("a").statistics().successes:
            seen.update(info.reason for info in s.runs())
            await anyio.lowlevel.checkpoint()
    assert "the store has not recorded its start yet" in seen
