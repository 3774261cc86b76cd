"""The start of a scheduler whose store holds much: what starts soonest runs while the rest is read."""

import threading
from datetime import UTC, datetime, timedelta

import anyio.lowlevel
import pytest

from kit import until
from schedule import Every
from scheduler import DuplicateJob, Scheduler
from scheduler.stores.memory import MemoryStore

TOMORROW = datetime.now(UTC) + timedelta(days=1)


class SlowStore(MemoryStore):
    """It gives what starts soonest, and the others once `goes_on` is set, as a server does that has many rows."""

    is_immediate = False

    def __init__(self, data):
        super().__init__()
        self._data = data
        self.goes_on = threading.Event()
        self.asked = 0

    def load(self):
        (rows,) = list(super().load())
        yield rows[:1]
        while not self.goes_on.is_set():
            self.asked += 1
            yield []
        yield rows[1:]


@pytest.fixture
async def store():
    """Two jobs are stored, of which one has a start that has come by now."""
    first = MemoryStore()
    s, _ = scheduler(first)
    s.add("work", Every("1h"), id="soon", args=("soon",), start=TOMORROW)
    s.add("work", Every("1h"), id="later", args=("later",), start=TOMORROW)
    async with s:
        await s.flush()
    state = first._data.states["soon"]
    first._data.states["soon"] = state._replace(next_us=state.next_us - 2 * 86_400 * 10**6)
    return SlowStore(first._data)


def scheduler(store):
    s, ran = Scheduler(store=store), []

    @s.task("work")
    async def work(name):
        ran.append(name)

    return s, ran


async def test_what_is_due_runs_before_all_is_read_though_jobs_were_added_early(store):
    """These begin when all is read, which a flush waits for. Nothing ran before, as long as any had been added."""
    s, ran = scheduler(store)
    s.add("work", Every("1h"), id="later", args=("again",), on_conflict="update", start=TOMORROW)
    s.add("work", Every("1h"), id="new", args=("new",), on_conflict="keep", start="now")
    async with anyio.create_task_group() as group:
        group.start_soon(s.run)
        await until(lambda: "soon" in ran)
        flushed = []

        async def flush():
            await s.flush()
            flushed.append(sorted(store._data.jobs))

        group.start_soon(flush)
        await anyio.lowlevel.checkpoint()
        assert (ran, flushed) == (["soon"], [])
        store.goes_on.set()
        await until(lambda: "new" in ran and flushed)
        assert flushed == [["later", "new", "soon"]]
        assert '"again"' in store._data.jobs["later"].args
        s.stop()


async def test_an_early_job_that_may_be_a_mistake_holds_the_start_up(store):
    """The scheduler ends with an error if the store turns out to hold it, and nothing has run then."""
    s, ran = scheduler(store)
    s.add("work", Every("1h"), id="later", args=("again",))

    async def run():
        with pytest.raises(DuplicateJob):
            await s.run()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await until(lambda: store.asked > 20)
        store.goes_on.set()
    assert ran == []
