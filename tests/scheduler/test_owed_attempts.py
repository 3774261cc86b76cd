"""Attempts that are owed, because delivery is at least once: no regular start takes their place or goes before them."""

from datetime import timedelta

from scheduler import Delivery, Outcome, Scheduler
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import ManualClock


async def lose_a_run(store, clock, schedule):
    """Leave a run of job "a" without an end, as a process does that dies."""
    s = Scheduler(store=store, clock=clock)

    async def hang():
        await clock.sleep(1_000_000)

    s.register("work", hang)
    async with s:
        job = s.add("work", schedule, id="a", start=clock.now() + timedelta(seconds=1), delivery=Delivery.AT_LEAST_ONCE)
        await clock.travel(1.5)
        assert job.statistics().runs == 1
        await s.flush()
        survivor = store.another()
        survivor.open(int(clock.wall() * 1e6), lambda: None)  # from here on nothing of this life reaches the store
        s.stop(0)
    return survivor


async def test_an_owed_attempt_goes_before_the_regular_starts_that_have_passed_with_it():
    """Both are found due at once, long after the floor."""
    clock = ManualClock()
    store = await lose_a_run(MemoryStore(), clock, "@every 10s")
    seen = []
    s = Scheduler(store=store, clock=clock, crash_floor="5s")

    async def work():
        pass

    s.register("work", work)
    async with s:  # finds the crash
        await s.flush()
    clock.advance(100)
    s = Scheduler(store=store, clock=clock, crash_floor="5s")
    s.register("work", work)
    s.listen(lambda event: seen.append((event.attempt, event.outcome)) if hasattr(event, "outcome") else None)
    async with s:
        await clock.travel(0)
        await clock.travel(0.5)
        await s.flush()
        assert seen[0] == (2, Outcome.SUCCEEDED)
        records = await s.history("a")
    assert [record.outcome for record in records if record.attempt == 2] == [Outcome.SUCCEEDED]


async def test_schedulers_that_stop_as_soon_as_they_have_started_lose_no_attempt_that_is_owed():
    """One of them makes it, and only one."""
    clock = ManualClock()
    store = await lose_a_run(MemoryStore(), clock, "@every 1h")
    attempts = []

    async def work():
        attempts.append(clock.now())

    for seconds in (1, 10, 10):
        s = Scheduler(store=store, clock=clock, crash_floor="5s")
        s.register("work", work)
        async with s:
            s.stop(0)
        clock.advance(seconds)
    s = Scheduler(store=store, clock=clock, crash_floor="5s")
    s.register("work", work)
    async with s:
        await clock.travel(0.5)
        await s.flush()
        (record,) = await s.history("a")
    assert len(attempts) == 1
    assert (record.attempt, record.outcome) == (2, Outcome.SUCCEEDED)
