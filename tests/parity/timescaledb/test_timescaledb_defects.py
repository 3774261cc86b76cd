"""What goes wrong with jobs in TimescaleDB (by its issues, or as follows from its code) and does not with ours.

| there | here |
|---|---|
| the crash floor restarts at every refresh or restart | test_timescaledb_crash_floor.py |
| pausing a running job that needs force leaves a crash | test_defect_pausing_..., test_defect_an_orderly_stop_... |
| any alter_job without a zone erases the zone | test_defect_a_change_of_something_else_... |
| a changed interval on a never-run job drops its future start | test_defect_a_new_interval_... |
| a re-enabled job still holds its failure count | test_defect_a_job_that_is_enabled_again_... |
| SIGTERM ignored: the slot is held for ever | test_defect_a_task_that_ignores_its_end_... |
| timeouts retry for ever | test_defect_timeouts_use_up_retries |
| launch failures fill the log, feed back-off and max_retries | test_defect_a_run_that_cannot_begin_... |
| crash rows dated 2000-01-01, deleted by age, left open | test_timescaledb_crash_floor.py |
| a backward clock silences jobs | test_defect_a_clock_that_is_set_back_... |
| a blocking stop delays all jobs | test_defect_removing_a_job_... |
| the scheduler dies and stays dead | test_defect_nothing_that_fails_ends_the_scheduler |
| jitter above the cap | test_defect_no_jitter_goes_over_the_cap |
| an in-place sort killed other jobs | test_defect_changing_jobs_... |
| a restored database starts everything at once | test_defect_restored_jobs_... |
| the slot rule of section 4 | tests/parity/timescaledb/test_timescaledb_slots.py, tests/schedule/test_calendar.py |
"""

import logging
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from hypothesis import given, strategies as st

from kit import nothing
from schedule import After, Calendar, Cron, Every, duration
from scheduler import JobState, Outcome, Retry, StoreDown, StoreUp
from scheduler.stores import StoredJob, StoreUnavailable, StoreUnusable
from scheduler.stores.memory import MemoryStore
from scheduler.testing import FlakyStore, simulate
from timerqueue.testing import START

HOUR = 3_600
DAY = 24 * HOUR


# -- pausing and stopping ----------------------------------------------------------------------------------------------


class Deaf:
    """A task that ignores its cancellation, until it is let go."""

    def __init__(self):
        self.is_let_go = anyio.Event()

    async def task(self):
        """Sleep on, whoever wants it to end."""
        with anyio.CancelScope(shield=True):
            await self.is_let_go.wait()


async def test_defect_pausing_a_running_job_leaves_no_crash_and_no_floor(lives, clock):
    """Not even if the scheduler has to give its run up; when it is let go it starts at its next slot."""
    deaf = Deaf()
    lives.tasks["work"] = deaf.task
    async with lives.life(kill_after=5) as s:
        job = s.add("work", Every(10, anchor=START), id="a", start="now")
        await clock.travel(1)
        job.pause("by hand")
        s.stop(grace=0)
        await clock.travel(6)
        counts = job.statistics()
        assert (counts.runs, counts.crashes, counts.cancellations) == (1, 0, 1)
        deaf.is_let_go.set()
    lives.tasks["work"] = nothing
    lives.events.clear()
    async with lives.life() as s:
        await clock.travel(16)
        assert s.get("a").state is JobState.DISABLED
        s.get("a").resume()
        await clock.travel(8)
        assert s.get("a").statistics().crashes == 0
        assert lives.starts() == [30]


async def test_defect_an_orderly_stop_is_no_crash(lives, clock):
    """Of a scheduler in the middle of a run: no crash, no failure in a row, no floor."""
    async with lives.life() as s:
        s.add("sleep", Every(10, anchor=START), id="a", start="now", args=(5,))
        await clock.travel(1)
    async with lives.life() as s:
        await clock.travel(9)
        counts = s.get("a").statistics()
        assert lives.starts() == [0, 10]
        assert (counts.consecutive_crashes, counts.consecutive_failures) == (0, 0)
        assert (counts.runs, counts.running, counts.crashes, counts.cancellations) == (2, 1, 0, 1)
        await clock.travel(5)
        assert s.get("a").statistics().crashes == 0


async def test_defect_a_task_that_ignores_its_end_gives_its_place_back(lives, clock):
    """There is one place; after its timeout and the time to notice it, the next job has it."""
    deaf = Deaf()
    lives.tasks["deaf"] = deaf.task
    async with lives.life(limit=1, kill_after=5) as s:
        s.add("deaf", After(HOUR), id="deaf", timeout=10)
        s.add("nothing", After(HOUR), id="next")
        await clock.travel(14)
        assert lives.starts("next") == []
        await clock.travel(1)
        assert lives.starts("next") == [15]
        assert s.get("deaf").statistics().timeouts == 1
        assert lives.store.running() == []
        deaf.is_let_go.set()


async def test_defect_removing_a_job_that_does_not_end_delays_no_other(lives, clock):
    """All starts of the others are on time."""
    deaf = Deaf()
    lives.tasks["deaf"] = deaf.task
    async with lives.life(kill_after=5) as s:
        s.add("deaf", After(HOUR), id="deaf")
        s.add("nothing", Every(1, anchor=START), id="other")
        await clock.travel(2.5)
        s.get("deaf").remove()
        await clock.travel(10)
        assert lives.starts("other") == list(range(1, 13))
        deaf.is_let_go.set()


async def test_defect_changing_jobs_ends_no_run_of_another(lives, clock, events):
    """Their order in the queue is turned round while they run, some come and some go."""
    async with lives.life() as s:
        for number in range(50):
            s.add("sleep", Every(100, anchor=START), id=f"{number}", start="now", args=(10,))
        await clock.travel(5)
        for number in range(50):
            s.get(f"{number}").set_next_start(START + timedelta(seconds=100 - number))
            s.add("nothing", Every(7), id=f"new {number}")
        for number in range(50):
            s.get(f"new {number}").remove()
        await clock.travel(5)
        assert events.outcomes() == [Outcome.SUCCEEDED] * 50


# -- changes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", [
    Calendar("1 day", origin=START, tz="Europe/Athens"),
    Cron("0 9 * * *", tz="Europe/Athens"),
])  # fmt: skip
async def test_defect_a_change_of_something_else_keeps_the_zone(lives, clock, schedule):
    """By its handle, by its row, and over a restart."""
    async with lives.life() as s:
        job = s.add("nothing", schedule, id="a")
        before = job.next_start
        job.update(priority=7, timeout=5)
        await s.flush()
        row = next(row for rows in lives.store.load() for row, _ in rows)
        lives.store.edit(row._replace(name="other"))
        await clock.travel(1)
        assert (job.schedule, job.next_start, job.name) == (schedule, before, "other")
    async with lives.life() as s:
        assert (s.get("a").schedule, s.get("a").next_start) == (schedule, before)


@pytest.mark.parametrize("by", ["its handle", "its row", "the next life"])
async def test_defect_a_new_interval_keeps_the_first_start_that_is_to_come(lives, clock, by):
    """The job has never run, and was to begin in an hour: it does."""
    first = START + timedelta(hours=1)
    async with lives.life() as s:
        job = s.add("nothing", Every("10m"), id="a", start=first)
        await clock.travel(1)
        if by == "its handle":
            job.update(schedule=Every("5m"))
        elif by == "its row":
            row = next(row for rows in lives.store.load() for row, _ in rows)
            lives.store.edit(row._replace(schedule="@every 5m"))
        await clock.travel(1)
    async with lives.life() as s:
        if by == "the next life":
            s.add("nothing", Every("5m"), id="a", start=first, on_conflict="update")
            await clock.travel(0)
        assert s.get("a").schedule.interval == timedelta(minutes=5)
        assert s.get("a").next_start >= first


async def test_defect_a_job_that_is_enabled_again_has_no_failures_in_a_row(lives, clock):
    """It has as many retries as ever, and its earlier failures are still counted."""
    async with lives.life() as s:
        job = s.add("fail", Every(10, anchor=START), id="a", start="now", retry=Retry.constant(1, max_retries=2))
        await clock.travel(5)
        assert (job.state, job.statistics().consecutive_failures) == (JobState.DISABLED, 3)
    async with lives.life() as s:
        job = s.get("a")
        job.resume()
        assert (job.statistics().consecutive_failures, job.statistics().failures) == (0, 3)
        await clock.travel(6)
        assert (job.state, job.statistics().consecutive_failures) == (JobState.SCHEDULED, 2)


# -- failures ----------------------------------------------------------------------------------------------------------


async def test_defect_timeouts_use_up_retries(lives, clock):
    """Two of them: then the job is paused like any other that fails."""
    async with lives.life() as s:
        retry = Retry.timescaledb(1, max_retries=2)
        job = s.add("sleep", Every(HOUR), id="a", start="now", args=(100,), timeout=5, retry=retry)
        await clock.travel(60)
        assert len(lives.starts()) == 3
        assert job.statistics().timeouts == 3
        assert job.state is JobState.DISABLED


async def test_defect_a_run_that_cannot_begin_is_no_failure_and_fills_no_log(lives, clock, events, caplog):
    """Ten minutes without a store: no run, no failure, no retry used up; one event and one line. Then it goes on."""
    caplog.set_level(logging.INFO, "scheduler")
    flaky = FlakyStore(lives.store)
    async with lives.life(store=flaky) as s:
        job = s.add("nothing", Every(10, anchor=START), id="a", retry=Retry.constant(1, max_retries=1))
        await clock.travel(15)
        caplog.clear()
        flaky.fail_on = range(10_000)
        await clock.travel(600)
        counts = job.statistics()
        assert lives.starts() == [10]
        assert (counts.failures, counts.consecutive_failures) == (0, 0)
        flaky.fail_on = ()
        await clock.travel(10)
        assert len(lives.starts()) >= 2
        assert lives.starts()[1] <= 620
        await clock.travel(10)
        assert job.statistics().failures == 0
        assert len(events.of(StoreDown)) == len(events.of(StoreUp)) == 1
        assert len([line for line in caplog.records if line.levelno >= logging.WARNING]) == 1


@pytest.mark.parametrize(
    "error",
    [StoreUnavailable("it is restarting"), StoreUnusable("it is another one"), RuntimeError("it has a bug")],
    ids=lambda error: type(error).__name__,
)
async def test_defect_nothing_that_fails_ends_the_scheduler(lives, clock, events, error):
    """Neither its store nor a job or its row nor a listener: when that is over, all jobs run as before."""
    flaky = FlakyStore(lives.store, error=error)

    def listener(_event):
        msg = "a listener has a bug too"
        raise RuntimeError(msg)

    async with lives.life(store=flaky) as s:
        s.listen(listener)
        s.add("nothing", Every(10, anchor=START), id="good")
        s.add("fail", Every(10, anchor=START), id="bad")
        lives.store.edit(StoredJob("malformed", "nothing", "@every blue moon"))
        await clock.travel(15)
        flaky.fail_on = range(flaky.counted + 1, flaky.counted + 4)
        await clock.travel(30)
        assert flaky.counted > 4
        await clock.travel(30)
        assert lives.starts("good")[-2:] == [60, 70]
        assert len(events.outcomes("bad")) >= 4


ANY_RETRY = st.sampled_from([Retry.exponential, Retry.linear])


@given(ANY_RETRY, st.floats(0.001, 1e4), st.floats(0.001, 1e4), st.floats(0, 1), st.integers(1, 100), st.floats(0, 1))
def test_defect_no_jitter_goes_over_the_cap(make, base, cap, jitter, failures, lot):
    """It only ever shortens. Retry.timescaledb alone has theirs, an eighth both ways, which is its point."""
    retry = make(base, cap=cap, jitter=jitter)
    assert 0 <= retry.delay(failures, min(lot, 1 - 2**-53)) <= duration(cap).total_seconds()


# -- clocks and restarts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("back", [365 * DAY, 30 * 60, HOUR + 7, 10], ids=["a year", "half an hour", "an hour", "10 s"])
@pytest.mark.parametrize("schedule", [Every("1m"), After("1m"), Cron("* * * * *")], ids=str)
def test_defect_a_clock_that_is_set_back_silences_no_job_of_a_store(schedule, back):
    """Whatever ran before at the same time by the clock: of each two minutes after that, one has a run at least."""
    store = MemoryStore()

    def build(s, clock):
        async def work():
            ran.append(clock.monotonic())

        s.register("work", work)
        s.add("work", schedule, id="a")

    ran = []
    simulate(build, 4 * HOUR, steps=[(2 * HOUR, -back)], store=store)
    after = [at - 1_000 - 2 * HOUR for at in ran if at > 1_000 + 2 * HOUR]
    assert max(later - earlier for earlier, later in zip([0, *after], [*after, 2 * HOUR], strict=True)) <= 180


async def test_defect_restored_jobs_do_not_start_all_at_once(lives, clock):
    """Of six hundred rows without a past, each of which starts every ten minutes, about one starts each second."""
    for number in range(600):
        lives.store.edit(StoredJob(f"{number}", "nothing", "@every 10m"))
    async with lives.life():
        await clock.travel(0)
        assert len(lives.starts()) <= 1
        await clock.travel(600)
        starts = lives.starts()
    assert len(starts) == 600
    assert max(len([at for at in starts if second <= at < second + 10]) for second in range(600)) <= 30


async def test_defect_restored_jobs_keep_a_first_start_that_is_to_come(lives, clock):
    """And those of a calendar wait for it; the fourth of January is not now."""
    origin = datetime(2026, 1, 4, 3, tzinfo=UTC)
    lives.store.edit(StoredJob("a", "nothing", str(Calendar("1 day", origin=origin))))
    async with lives.life() as s:
        await clock.travel(0)
        assert s.get("a").next_start == origin
        assert lives.starts() == []


async def test_defect_after_downtime_there_is_one_run_of_each_job_and_no_more_than_there_is_room(lives, clock, events):
    """Twenty jobs that missed a day's worth of minutes, and room for four at a time."""
    async with lives.life() as s:
        for number in range(20):
            s.add("sleep", Every(60), id=f"{number}", args=(1,))
        await clock.travel(1)
    clock.advance(DAY)
    events.clear()
    async with lives.life(limit=4) as s:
        await clock.travel(0)
        assert s.statistics().active_tasks == 4
        await clock.travel(5)
        assert len(events.outcomes()) == 20
        assert set(events.outcomes()) == {Outcome.SUCCEEDED}
