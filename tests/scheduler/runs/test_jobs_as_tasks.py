"""A job that waits is a task of its own: what it sees, what others see, and how it is cancelled."""

import asyncio
import contextlib
import gc
import weakref

import anyio
import pytest
import trio
from anyio.lowlevel import checkpoint

from kit import settle
from scheduler import Outcome, Scheduler, Subtask

asyncio_only = pytest.mark.parametrize("anyio_backend", ["asyncio"])

RUNS = 12


@asyncio_only
async def test_its_task_is_named_after_the_job(clock):
    """The run's and those of its subtasks."""
    names = []

    async def child():
        await checkpoint()
        names.append(asyncio.current_task().get_name())

    async def parent():
        await child()
        return Subtask(child)

    async with Scheduler(clock=clock) as s:
        s.add(parent, "@every 1h", id="shop", start="now")
        await clock.travel(1)
    assert names == ["job shop", "job shop"]


@asyncio_only
async def test_its_coroutine_is_what_its_task_shows(clock):
    """To `all_tasks`, in its stack, and by name."""
    go = anyio.Event()

    async def visible():
        await go.wait()

    async with Scheduler(clock=clock) as s:
        s.add(visible, "@every 1h", id="a", start="now")
        await clock.travel(1)
        (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "job a"]
        assert "visible" in repr(task)
        assert [frame.f_code.co_name for frame in task.get_stack()] == ["visible"]
        assert task.get_coro().cr_frame.f_code is visible.__code__
        go.set()
        await settle()
        assert task.done()


@asyncio_only
async def test_a_task_cancelled_after_its_run_hits_no_other_job(clock):
    """One job's late `current_task().cancel()` once cancelled whichever job ran there by then."""
    cancels, go = [], anyio.Event()

    async def careless():
        cancels.append(asyncio.current_task().cancel)
        await checkpoint()

    async def innocent():
        await go.wait()

    async with Scheduler(clock=clock) as s:
        for number in range(RUNS):
            s.add(careless, "@every 1h", id=f"careless {number}", start="now")
        await clock.travel(1)
        jobs = [s.add(innocent, "@every 1h", id=f"innocent {number}", start="now") for number in range(RUNS)]
        await clock.travel(1)
        for cancel in cancels:
            cancel()
        await settle()
        go.set()
        await settle()
        assert len(cancels) == RUNS
        assert [job.statistics().last_outcome for job in jobs] == [Outcome.SUCCEEDED] * RUNS


@asyncio_only
async def test_what_is_hung_on_its_task_goes_with_its_run(clock):
    """Done callbacks are called after each run, and what is kept by the task is freed."""
    called, kept = [], weakref.WeakKeyDictionary()

    async def hang_on():
        task = asyncio.current_task()
        kept.setdefault(task, []).append(object())
        task.add_done_callback(lambda _: called.append(1))
        await checkpoint()

    async with Scheduler(clock=clock) as s:
        job = s.add(hang_on, "@every 1s", id="a")
        for _ in range(RUNS):
            await clock.travel(1)
        await settle()
        gc.collect()
        assert len(called) == job.statistics().runs >= RUNS - 1
        assert len(kept) == 0


@asyncio_only
@pytest.mark.parametrize("how", ["timeout", "remove", "stop"])
async def test_cleaning_up_may_wait_whoever_has_cancelled(clock, how):
    """In `finally` and in `__aexit__`, as after `task.cancel()`."""
    cleaned = []

    @contextlib.asynccontextmanager
    async def connection():
        try:
            yield
        finally:
            await settle()
            cleaned.append("released")

    async def work():
        async with connection():
            try:
                await anyio.sleep_forever()
            finally:
                await settle()
                cleaned.append("rolled back")

    async with Scheduler(clock=clock) as s:
        job = s.add(work, "@every 1h", id="a", start="now", timeout=5 if how == "timeout" else None)
        await clock.travel(1)
        if how == "remove":
            job.remove()
        elif how == "stop":
            s.stop(grace=0)
        await clock.travel(4)
        await settle()
        assert cleaned == ["rolled back", "released"]
        assert job.statistics().last_outcome is (Outcome.TIMED_OUT if how == "timeout" else Outcome.CANCELLED)


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_task_group_that_a_job_leaves_open_ends_no_other(clock):
    """It ended the scheduler."""
    left = []

    async def leave_open():
        left.append(trio.open_nursery())
        (await left[-1].__aenter__()).start_soon(trio.sleep_forever)

    async def decent():
        await checkpoint()

    async with Scheduler(clock=clock) as s:
        s.add(leave_open, "@every 1s", id="open")
        job = s.add(decent, "@every 1s", id="decent")
        for _ in range(RUNS):
            await clock.travel(1)
        assert job.statistics().successes >= RUNS - 1
