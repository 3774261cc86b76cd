"""The longest of what a job and a scheduler may be told is held; what is longer is refused, and nothing overflows."""

import math
from datetime import datetime, timedelta, timezone

import pytest

from kit import nothing
from schedule import After, Calendar, Every, ScheduleError
from schedule._common.instant import LAST_INSTANT, LONGEST_DURATION
from scheduler import InvalidJob, Outcome, Retry, RunEnded, Scheduler, current_run
from scheduler._plan.timeline import LAST_US
from scheduler._values.retry import MAX_DELAY_S
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START

MICROSECOND = timedelta(microseconds=1)
TOO_LONG = ["400000000d", LONGEST_DURATION + MICROSECOND, timedelta.max, 1e15, 10**400, 10**5000]
LATE = datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))


async def failing():
    """Fail."""
    raise ValueError("as always")


@pytest.fixture(params=["memory", "store"])
def scheduler(request, clock):
    """Make a scheduler, without a store or with one that all of them share."""
    store = None if request.param == "memory" else MemoryStore()

    def make():
        s = Scheduler(clock=clock, store=store, random=lambda: 0.0)
        s.register("nothing", nothing)
        s.register("failing", failing)
        return s

    return make


@pytest.mark.parametrize("long", TOO_LONG, ids=lambda long: type(long).__name__)
@pytest.mark.parametrize(
    "make",
    [
        lambda s, long: s.add("nothing", "@every 1h", id="a", timeout=long),
        lambda s, long: s.add("nothing", "@every 1h", id="a", grace=long),
        lambda s, long: s.add("nothing", Every(long), id="a"),
        lambda s, long: s.add("nothing", After(long), id="a"),
        lambda _, long: Retry.constant(long),
        lambda _, long: Retry.linear(long),
        lambda _, long: Retry.exponential("1s", cap=long),
        lambda _, long: Scheduler(kill_after=long),
        lambda _, long: Scheduler(blocked_after=long),
        lambda _, long: Scheduler(store=MemoryStore(), poll=long),
        lambda _, long: Scheduler(store=MemoryStore(), crash_floor=long),
        lambda s, long: s.stop(grace=long),
    ],
    ids=(
        "timeout grace Every After Retry Retry.linear Retry.cap kill_after blocked_after poll crash_floor stop".split()
    ),
)
def test_what_is_too_long_is_refused_with_the_bound(scheduler, make, long):
    """It had been taken by most of them, and raised OverflowError from some."""
    s = scheduler()
    with pytest.raises((ScheduleError, InvalidJob), match=r"is too long: at most 3652058 days"):
        make(s, long)
    assert s.jobs() == []


@pytest.mark.parametrize("text", ["@every 400000000d", "@after 200000000d", "@every 200000000d | @hourly"])
def test_the_text_of_a_schedule_has_the_same_bounds(scheduler, text):
    """One such job had stopped the store for all others."""
    with pytest.raises(ScheduleError, match="too long"):
        scheduler().add("nothing", text, id="a")


@pytest.mark.parametrize(
    "ask",
    [
        lambda s, job: s.add("nothing", "@every 1h", id="b", start=LATE),
        lambda s, job: job.pause(until=LATE),
        lambda s, job: s.pause(until=LATE),
        lambda s, job: job.set_next_start(LATE),
        lambda s, job: job.update(schedule="@every 1h", start=LATE),
    ],
    ids="add pause pause_all set_next_start update".split(),
)
async def test_an_instant_that_its_offset_puts_outside_of_the_calendar_is_refused(scheduler, ask):
    """In words, and nothing has changed."""
    async with scheduler() as s:
        job = s.add("nothing", "@every 1h", id="a")
        before = job.next_start
        with pytest.raises((InvalidJob, ScheduleError), match="outside the years 1 to 9999 in UTC"):
            ask(s, job)
        assert (s.jobs(), job.next_start, s.pauses()) == ([job], before, [])


@pytest.mark.parametrize(
    "schedule",
    [
        Every(LONGEST_DURATION),
        Every("3000000d"),
        After(LONGEST_DURATION),
        After("3000000d"),
        Calendar("999999 years", origin=START - timedelta(days=1)),
        Every("3000000d") | Calendar("9000 years", origin=START),
        Every("3000000d", anchor=START, jitter="2000000d"),
    ],
    ids=str,
)
async def test_a_job_with_the_longest_interval_runs_and_rests(scheduler, clock, schedule):
    """Its next start is an instant that there is, or none. Neither another job notices, nor the next process."""
    async with scheduler() as s:
        rare = s.add("nothing", schedule, id="rare", start="now")
        s.add("nothing", "@every 1m", id="often")
        await clock.travel(3_600)
        assert rare.statistics().successes == 1
        assert rare.next_start is None or START < rare.next_start <= LAST_INSTANT
        assert all(start <= LAST_INSTANT for start in rare.next_starts(3))
        await s.flush()
    async with scheduler() as s:
        for job in s.jobs():
            assert job.error is None
        if not s.jobs():
            return
        await clock.travel(3_600)
        assert s.get("often").statistics().successes == 120
        if rare.id in {job.id for job in s.jobs()}:
            assert s.get("rare").next_start is None or s.get("rare").next_start <= LAST_INSTANT


async def test_the_longest_timeout_ends_no_run_and_is_no_deadline(clock):
    """What would end it after the last instant never does."""
    seen = []

    async def work():
        seen.append(current_run().deadline)

    async with Scheduler(clock=clock) as s:
        s.add(work, "@every 1h", start="now", timeout=LONGEST_DURATION)
        s.add(work, "@every 1h", start="now", timeout="1h")
        await clock.travel(1)
    assert seen == [None, START + timedelta(hours=1)]


@pytest.mark.parametrize(
    "retry",
    [
        Retry.exponential("1h", cap=None, past_next_start=True),
        Retry.exponential(LONGEST_DURATION, cap=None, past_next_start=True),
        Retry.constant(LONGEST_DURATION, past_next_start=True),
        Retry.linear("300000d", past_next_start=True),
    ],
    ids=["exponential", "exponential from the longest", "constant", "linear"],
)
async def test_a_retry_that_grows_without_a_cap_is_bounded(scheduler, clock, retry):
    """It had grown beyond what the timer queue takes: such a run had no end, no record and no retry."""
    async with scheduler() as s:
        ended = []
        s.listen(lambda event: ended.append(event) if isinstance(event, RunEnded) else None)
        job = s.add("failing", "@every 1m", id="a", retry=retry)
        await clock.travel(3 * 3_600)
        assert len(ended) == job.statistics().runs == job.statistics().failures == 180
        assert all(event.outcome is Outcome.FAILED for event in ended)
        delays = [event.retry_at - event.ended for event in ended if event.retry_at is not None]
        assert {delay.total_seconds() <= MAX_DELAY_S for delay in delays} == {True}
        assert job.next_start is not None


@pytest.mark.parametrize("failures", [1, 2, 19, 20, 61, 62, 63, 1_000, 10**9])
@pytest.mark.parametrize("jitter", [0.0, 1.0])
def test_no_delay_is_longer_than_a_century(failures, jitter):
    """Jitter that goes both ways included."""
    for base in ("1us", "1s", LONGEST_DURATION):
        for retry in (
            Retry.exponential(base, cap=None, jitter=jitter),
            Retry.linear(base, jitter=jitter),
            Retry.timescaledb(base),
        ):
            assert all(0 <= retry.delay(failures, random, 1e12) <= MAX_DELAY_S for random in (0.0, 0.5, 0.999))


async def test_a_start_at_the_end_of_the_calendar_is_one_like_any_other(scheduler, clock):
    """Nothing follows it."""
    async with scheduler() as s:
        job = s.add("nothing", "@every 1h", id="a", start=LAST_INSTANT)
        assert job.next_start == LAST_INSTANT
        assert job.next_starts(3) == [LAST_INSTANT]
        job.pause(until=LAST_INSTANT)
        await clock.travel(1)
        job.resume()
        job.set_next_start(LAST_INSTANT)
        assert abs(job.next_start - LAST_INSTANT) < timedelta(milliseconds=1)


@pytest.mark.parametrize("priority", [10**400, -(10**5000), math.inf], ids=["400 digits", "5000 digits", "inf"])
def test_a_number_that_no_text_can_show_is_refused_all_the_same(clock, priority):
    """Its digits are left out."""
    with pytest.raises(InvalidJob, match="priority must be a finite number"):
        Scheduler(clock=clock).add(nothing, "@every 1h", priority=priority)


@pytest.mark.parametrize("schedule", ["@every 1h", "@after 1h", "0 * * * *"])
async def test_the_longest_crash_floor_ends_before_the_last_instant(processes, clock, schedule):
    """It is stored as an instant, and whoever starts next reads it."""
    async with processes.one(100_000, dies=True) as s:
        s.add("work", schedule, id="job", start=START + timedelta(seconds=1))
        await clock.travel(3_700)
        await s.flush()
    assert len(processes.begun) == 1
    for floor in (LONGEST_DURATION, "5m"):
        async with processes.one(crash_floor=floor) as s:
            await clock.travel(1)
            await s.flush()
            assert s.get("job").error is None
            assert s.statistics().store.trouble is None
            assert START < s.get("job").next_start <= START + timedelta(days=101 * 365)
            assert processes.state().not_before_us <= LAST_US
