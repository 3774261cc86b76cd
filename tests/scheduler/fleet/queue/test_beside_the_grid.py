"""Executions that lie beside the grid of who takes them: another clock, version or schedule has planned them."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from kit import nothing, settle
from scheduler import Scheduler
from scheduler.queues import Kind
from scheduler.queues.local import LocalQueue
from scheduler.stores import Batch, Planned, StoredJob, StoredState
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import ManualClock

INTERVAL = 10_000_000
HALF = INTERVAL // 2
SCHEDULES = st.sampled_from(["@every 10s", "*/10 * * * * *", "@after 10s"])
WAYS = st.sampled_from(["known", "edited", "without a state"])
EASED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


class World:
    """A store in which others have planned, and a scheduler that takes what they have planned."""

    def __init__(self):
        self.clock = ManualClock()
        self.store = MemoryStore()
        self.queue = LocalQueue()

    def plan(self, schedule, due_us, way):
        """Leave a job as another agent does whose grid is another one."""
        state = StoredState("job", next_us=due_us, next_of="@every 7s" if way == "edited" else schedule)
        batch = Batch(
            jobs={"job": StoredJob("job", "nothing", schedule)},
            states={} if way == "without a state" else {"job": state},
            planned={"job": Planned("job", due_us, schedule, 0)},
        )
        self.store.open(0, lambda: None)
        self.store.commit(batch)

    async def run(self, seconds):
        """Run a scheduler for so long, and return when ticks were due: those that ran, and spans that were missed."""
        s = Scheduler(store=self.store, queue=self.queue, clock=self.clock)
        s.register("nothing", nothing)
        async with s:
            await self.clock.travel(seconds)
            await settle()
            assert self.queue.census(Kind.RUN).total == 1
            s.stop(grace=0)
        self.store.open(0, lambda: None)
        return sorted((tick.due_us, tick.last_due_us or tick.due_us) for tick in self.store.history("job", limit=100))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@EASED
@given(schedule=SCHEDULES, way=WAYS, ahead_us=st.integers(-3 * INTERVAL, 3 * INTERVAL))
async def test_no_execution_is_lost_in_silence(schedule, way, ahead_us):
    """It has a run or a record, and the next starts come by the schedule: in intervals, none close behind it."""
    world = World()
    now_us = int(world.clock.wall() * 1e6)
    due_us = now_us + ahead_us
    world.plan(schedule, due_us, way)
    ticks = await world.run(60)
    if schedule == "@after 10s" and way == "without a state":
        due_us = max(due_us, now_us)  # it has never run, and starts at once
    assert any(first - HALF <= due_us <= last + HALF for first, last in ticks), (due_us, ticks)
    dues = [first for first, _ in ticks]
    least = HALF if schedule.startswith("@") else 1
    assert all(later - due >= least for due, later in pairwise(dues)), dues
    assert len(dues) >= 2
