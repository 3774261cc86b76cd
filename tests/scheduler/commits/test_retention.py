"""History is kept within its bounds while it grows, and what has just been recorded is not old."""

from datetime import timedelta

import pytest

from scheduler import MissedReason, Retention, Scheduler
from scheduler.stores import StoredJob, size_of
from scheduler.stores.memory import MemoryStore
from scheduler.testing.flaky import FlakyStore
from timerqueue.testing import ManualClock


def scheduler(store, clock, work=lambda: None, **retention):
    s = Scheduler(store=store, clock=clock, retention=Retention(**retention))
    s.register("work", work, inline=True)
    return s


async def test_history_is_pruned_after_each_thousand_records(clock):
    """It was after each ten thousand, and 50 records that may be kept grew to 9,999."""
    async with scheduler(MemoryStore(), clock, per_job=50) as s:
        s.add("work", "@every 1s", id="job")
        for _ in range(3):
            await clock.travel(1_000)
            assert len(await s.history("job", limit=100_000)) < 50 + 1_000


async def test_history_is_pruned_by_bytes_before_a_thousand_records_are_full(clock):
    """However long the errors are: at any time there is at most a share more than the bound says."""
    most = 512 * 1024
    store = MemoryStore()

    def fail():
        raise ValueError("x" * 6_000)

    async with scheduler(store, clock, fail, total_bytes=most) as s:
        s.add("work", "@every 1s", id="job")
        sizes = []
        for _ in range(300):
            await clock.travel(1)
            sizes.append(sum(map(size_of, store.history(limit=100_000))))
    assert sum(sizes[:100]) < sum(sizes[-100:])  # it grew
    assert max(sizes) < most * 9 / 8


async def test_a_long_gap_is_remembered_from_when_it_was_recorded():
    """Not from its first tick: a gap longer than the age of history was forgotten as it was recorded."""
    store = MemoryStore()
    clock = ManualClock()
    async with scheduler(store, clock) as s:
        s.add("work", "@every 1h", id="job")
        await clock.travel(7_200)
    clock = ManualClock(clock.now() + timedelta(days=40))
    async with scheduler(store, clock, age=30 * 86_400.0) as s:
        await clock.travel(10)
        await s.flush()
        assert [record.count for record in await s.history() if record.reason is MissedReason.LATE] == [40 * 24 - 1]
        await clock.travel(1)
        await s.flush()
        gap = next(record for record in await s.history() if record.reason is MissedReason.LATE)
        assert gap.ended is not None
        assert gap.ended - clock.now() < timedelta(minutes=1)
        s.get("job").set_next_start(clock.now() + timedelta(days=31))
        await clock.travel(32 * 86_400)
        await s.flush()
        assert [record.due for record in await s.history(limit=10_000) if record.due == gap.due] == []


async def test_a_store_is_pruned_where_jobs_come_and_go_unrun(clock):
    """Timers that are taken back in time leave no record, and two rows each in PostgreSQL's log of changes."""
    store = FlakyStore(MemoryStore())
    async with scheduler(store, clock) as s:
        s.add("work", "@every 1h", id="job")
        await s.flush()
        before = store.calls["prune"]
        for number in range(2_000):
            s.add("work", "@every 1h", id=f"timer {number}")
            if not number % 10:
                await s.flush()
                s.remove(f"timer {number}")
        await s.flush()
        assert store.calls["prune"] - before >= 2


async def test_a_store_is_pruned_where_others_change_its_rows(clock):
    """By hand, while nothing runs."""
    memory = MemoryStore()
    store = FlakyStore(memory)
    async with scheduler(store, clock) as s:
        s.add("work", "@every 1h", id="job")
        await s.flush()
        before = store.calls["prune"]
        for number in range(3_000):
            memory.edit(StoredJob(f"job {number}", "work", "@every 1h"))
        await clock.travel(1)
        assert store.calls["prune"] > before


@pytest.mark.parametrize("wrong", ["30d", 1_000, Retention])
def test_what_is_no_retention_is_refused(wrong):
    """It was taken, and then each batch that was written ended in an error in the log."""
    with pytest.raises(TypeError, match="retention must be a Retention, such as Retention"):
        Scheduler(store="memory://", retention=wrong)
