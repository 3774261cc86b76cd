"""Attempts that are owed, because delivery is at least once: no regular start takes their place or goes before them."""

from datetime import timedelta

import pytest

from scheduler import Delivery, Outcome, Overlap, Scheduler, current_run
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


class Lives:
    """Programs that follow one another on one store: each finds what the one before it has left."""

    def __init__(self, clock):
        self.clock, self.store, self.ran, self.seconds = clock, MemoryStore(), [], 1_000_000

    def next(self, *, knows_the_task=True):
        """The scheduler of the next program. The one before it, should it still run, is dead to the store."""
        self.store = self.store.another()
        s = Scheduler(store=self.store, clock=self.clock, crash_floor="60s")
        if knows_the_task:
            s.register("work", self.work)
        return s

    async def work(self):
        run = current_run()
        self.ran.append((run.due, run.attempt))
        await self.clock.sleep(self.seconds)

    def tried_again(self):
        """How often each tick that has run has been tried once more, oldest first."""
        return [
            sum(due == each and attempt > 1 for each, attempt in self.ran) for due in sorted({d for d, _ in self.ran})
        ]


def add(s, schedule="@every 1h", **options):
    return s.add("work", schedule, id="a", delivery="at_least_once", on_conflict="update", tags=("t",), **options)


def pauses(s, scope):
    """Pause the job in one of the three ways; the answer ends it."""
    if scope == "job":
        s.get("a").pause("work at it")
        return s.get("a").resume
    tag = None if scope == "all" else "t"
    s.pause(tag, reason="work at it")
    return lambda: s.resume(tag)


@pytest.mark.parametrize("end", ["death", "stop"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("scope", ["job", "tag", "all"])
async def test_a_pause_only_holds_what_is_owed(end, when, scope):
    """Whether it comes before or after the end of the program, and however short it is."""
    clock = ManualClock()
    lives = Lives(clock)
    async with lives.next() as first:
        add(first)
        await clock.travel(3600)
        if when == "before":
            pauses(first, scope)
            await clock.travel(1)
        if end == "stop":
            first.stop(grace=0)
        lives.seconds = 1
        async with lives.next() as second:
            await clock.travel(10)
            resume = pauses(second, scope) if when == "after" and end == "death" else None
            await clock.travel(5)
            if when == "before":
                assert lives.tried_again() == [0]
                resume = (second.get("a") if scope == "job" else second).resume
                resume = resume if scope != "tag" else lambda: second.resume("t")
            if resume is not None:
                resume()
            await clock.travel(120)
            await second.flush()
            (record,) = [each for each in await second.history("a") if each.attempt == 2]
            assert lives.tried_again()[0] == 1
            assert (record.outcome, record.owed) == (Outcome.SUCCEEDED, False)


@pytest.mark.parametrize("end", ["death", "stop"])
async def test_all_ticks_that_one_end_has_cut_off_are_tried_again(end):
    """Under ALLOW there are several, and the job may be busy with its next ones: as many as may run at a time."""
    clock = ManualClock()
    lives = Lives(clock)
    options = {"overlap": Overlap.ALLOW, "max_running": 3}
    async with lives.next() as first:
        add(first, "@every 60s", **options)
        await clock.travel(181)
        if end == "stop":
            first.stop(grace=0)
        lives.seconds = 90
        async with lives.next() as second:
            await clock.travel(900)
            await second.flush()
            assert [each.owed for each in await second.history("a")].count(True) == 0
    assert lives.tried_again()[:3] == [1, 1, 1]


@pytest.mark.parametrize("between", ["another schedule", "unknown task", "run_now", "set_next_start"])
async def test_nothing_that_befalls_the_job_forgets_what_it_owes(between):
    """Nor the rest after the crash, where nobody has ended that."""
    clock = ManualClock()
    lives = Lives(clock)
    async with lives.next() as first:
        add(first)
        await clock.travel(3600)
        lives.seconds = 1
        found = clock.now()
        if between == "unknown task":
            async with lives.next(knows_the_task=False) as second:
                assert second.get("a").statistics().crashes == 1
                await clock.travel(5)
        async with lives.next() as third:
            if between == "another schedule":
                add(third, "@every 2h")
            if between == "run_now":
                await clock.travel(5)
                third.get("a").run_now()
            if between == "set_next_start":
                await clock.travel(5)
                third.get("a").set_next_start(clock.now() + timedelta(seconds=5))
            await clock.travel(300)
            await third.flush()
            records = await third.history("a")
    owed = lives.ran[0][0]
    (record,) = [each for each in records if each.due == owed]
    assert (record.attempt, record.outcome) == (2, Outcome.SUCCEEDED)
    if between != "set_next_start":  # that one ends the rest
        assert record.started >= found + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("remove", "its job has been removed"),
        ("at most once", "delivery is at most once now"),
        ("gone", "been removed"),
    ],
)
async def test_only_a_verb_gives_up_what_is_owed_and_the_record_says_so(how, why):
    """The job is removed, here or in the store, or its delivery becomes at most once."""
    clock = ManualClock()
    lives = Lives(clock)
    async with lives.next() as first:
        add(first)
        await clock.travel(3600)
        lives.seconds = 1
        if how == "gone":
            lives.store.delete("a")
        async with lives.next() as second:
            if how == "remove":
                second.get("a").remove()
            elif how == "at most once":
                second.get("a").update(delivery="at_most_once")
            await clock.travel(300)
            await second.flush()
            record = (await second.history("a"))[-1]
    assert lives.tried_again()[0] == 0
    assert (record.outcome, record.owed) == (Outcome.CRASHED, False)
    if how != "gone":
        assert why in record.error
