"""`flush` and `history` on the event loop of another thread: a web server has its own."""

import threading

import anyio
import pytest
from anyio.to_thread import run_sync

from kit import PATIENCE, nothing
from scheduler import LifecycleError, Scheduler
from scheduler.stores import StoreError
from scheduler.stores.memory import MemoryStore


@pytest.fixture(params=["memory", "sqlite", None])
def store(request, tmp_path):
    """Each kind of store that lies in one process, and none."""
    return {"memory": MemoryStore(), "sqlite": f"sqlite:///{tmp_path}/jobs.db", None: None}[request.param]


async def elsewhere(work):
    """Await it on an event loop of asyncio in another thread."""

    async def within():
        with anyio.fail_after(PATIENCE):
            return await work()

    return await run_sync(anyio.run, within)


async def test_a_change_from_there_is_durable_when_flush_returns(store):
    """Whoever answers a request has been told the truth."""
    async with Scheduler(store=store) as s:
        s.register("nothing", nothing)

        async def add_and_pause():
            s.add("nothing", "@every 1h", id="a")
            await s.flush()
            s.get("a").pause("by hand")
            await s.flush()
            return s.get("a").error

        assert await elsewhere(add_and_pause) == "by hand"
        if store is not None:
            assert s.statistics().store.unsaved == 0


async def test_history_is_read_there(store):
    """A page shows what ran, wherever it is served."""
    async with Scheduler(store=store) as s:
        s.register("nothing", nothing)

        async def run_and_read():
            await s.add("nothing", "@every 1h", id="a").run_now()
            await s.flush()
            return await s.history("a")

        assert [record.job_id for record in await elsewhere(run_and_read)] == (["a"] if store is not None else [])


async def test_a_flush_from_there_ends_with_the_scheduler(store):
    """A server that outlives its scheduler does not wait for ever."""
    s = Scheduler(store=store)
    has_stopped = threading.Event()

    async def flush_on():
        while True:
            try:
                await s.flush()
            except (LifecycleError, StoreError) as exc:
                return exc
            if has_stopped.is_set():
                return None

    async with anyio.create_task_group() as group:
        async with s:
            group.start_soon(elsewhere, flush_on)
        has_stopped.set()
