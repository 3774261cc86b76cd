"""TimescaleDB's scenarios that stop or lose a scheduler and go on with another, its clock and its store continuing.

Milliseconds there are seconds here, except where the five minutes after a crash count.
"""

import pytest

from kit import T0, relative
from schedule import After, Every
from scheduler import Delivery, JobState, Outcome, Retry
from scheduler.stores import RUNNING, Batch, StoredJob, StoredState, StoredTick
from scheduler.testing import simulate
from timerqueue.testing import START
from timescaledb_lives import fail, seconds

T0_US = int(T0) * 1_000_000

EACH_KIND = pytest.mark.parametrize(
    "schedule", [pytest.param(After(100), id="drifting"), pytest.param(Every(100, anchor=START), id="fixed")]
)

DRIFTING = (After(100), 100, (25, 150, 375, 800, 1325), [0, (88.3, 112.5), (264.8, 337.5), (529.7, 675), (882.8, 1125)])
FIXED = (
    Every(800, anchor=START),
    200,
    (25, 250, 675, 1300, 2125),
    [0, (176.6, 225), (529.7, 675), 800, (1506.2, 1600)],
)
EACH_FAILING = pytest.mark.parametrize(
    ("schedule", "period", "ends", "ranges"), [pytest.param(*DRIFTING, id="s6"), pytest.param(*FIXED, id="f3")]
)


async def takes_no_time(_seconds):
    """Stand in for a sleep, once whatever killed has been mended."""


def lie_within(starts, ranges):
    """Whether each start, to a tenth of a second as the ranges are given, lies within its own range."""
    bounds = [limits if isinstance(limits, tuple) else (limits, limits) for limits in ranges]
    pairs = zip(starts, bounds, strict=True)
    return all(low <= round(at, 1) <= high for at, (low, high) in pairs)


@EACH_KIND
async def test_timescaledb_s4_s5_f2_each_scheduler_goes_on_where_the_last_one_stopped(lives, clock, schedule):
    """Windows of 25, 25, 100 and 120: runs at 0, 100 and 200, and the next at 300."""
    async with lives.life() as s:
        s.add("nothing", schedule, id="a", start="now")
        await clock.travel(25)
        assert s.get("a").statistics().runs == 1
    ends = [(await lives.live(window))["a"] for window in (25, 100, 120)]
    assert [counts.runs for _, counts in ends] == [1, 2, 3]
    assert [counts.successes for _, counts in ends] == [1, 2, 3]
    assert lives.starts() == [0, 100, 200]
    assert lives.state().next_us == T0_US + 300 * 1_000_000


@EACH_FAILING
@pytest.mark.parametrize("seed", range(3))
async def test_timescaledb_s6_s7_f3_a_failing_job_is_tried_again_by_the_next_scheduler(
    lives, clock, schedule, period, ends, ranges, seed
):
    """One failure in each of five windows, each window a scheduler of its own; the fifth failure pauses."""
    begin = clock.monotonic()
    for number, end in enumerate(ends):
        async with lives.life(seed=100 * seed + number) as s:
            retry = Retry.timescaledb(period, max_retries=4)
            s.add("fail", schedule, id="a", start="now" if not number else None, retry=retry, on_conflict="update")
            await clock.travel(begin + end - clock.monotonic())
            assert s.get("a").statistics().consecutive_failures == number + 1
    assert lie_within(lives.starts(), ranges)
    after = (await lives.live(2_000))["a"]
    assert len(lives.starts()) == 5
    assert after[0].state is JobState.DISABLED
    assert after[1].crashes == 0


@EACH_FAILING
def test_timescaledb_s6_f3_every_jitter_keeps_within_the_windows(schedule, period, ends, ranges):
    """Over a hundred seeds, without a restart; and they are not all the same."""
    seen = set()
    for seed in range(100):
        simulation = simulate(
            lambda s, _: (
                s.add(fail, schedule, id="a", start="now", retry=Retry.timescaledb(period, max_retries=4)) and None
            ),
            ends[-1],
            seed=seed,
        )
        starts = relative(run.started for run in simulation.runs("a"))
        assert lie_within(starts, ranges)
        for end, count in zip(ends, range(1, 6), strict=True):
            assert len([at for at in starts if at <= end]) == count
        seen.add(tuple(starts))
    assert len(seen) > 50


@EACH_FAILING
async def test_timescaledb_s8_f4_a_job_that_is_enabled_again_fails_again(lives, clock, schedule, period, ends, ranges):
    """It has been forgiven, unlike there: it begins to count anew, over restarts too, and the fifth pauses it again."""
    async with lives.life() as s:
        retry = Retry.timescaledb(period, max_retries=4)
        s.add("fail", schedule, id="a", start="now", retry=retry)
        await clock.travel(ends[-1])
        assert s.get("a").state is JobState.DISABLED
    async with lives.life(seed=1) as s:
        s.get("a").resume()
        await clock.travel(s.get("a").next_start.timestamp() - clock.wall())
        assert s.get("a").statistics().consecutive_failures == 1
    assert (await lives.live(1.3 * ends[-1]))["a"][0].state is JobState.DISABLED
    assert lives.state().consecutive_failures == 5
    assert lives.state().failures == 10


@EACH_KIND
async def test_timescaledb_s13_f5_a_scheduler_that_dies_in_a_run_leaves_a_crash(lives, clock, schedule):
    """Its state in the store counts it as a crash at once; here it runs, until it is found as one in a row."""
    async with lives.life(killed=True) as s:
        s.add("sleep", schedule, id="a", args=(500,), start="now")
        await clock.travel(50)
        counts = s.get("a").statistics()
        assert (counts.runs, counts.successes, counts.failures, counts.running) == (1, 0, 0, 1)
        assert counts.last_finish is None
    state = lives.state()
    assert (state.runs, state.successes, state.failures, state.last_finish_us) == (1, 0, 0, None)
    _, found = (await lives.live(0.5))["a"]
    assert (found.runs, found.successes, found.failures, found.crashes, found.consecutive_crashes) == (1, 0, 0, 1, 1)


@pytest.mark.parametrize(
    ("schedule", "delivery", "start", "following"),
    [
        pytest.param(After("5s"), Delivery.AT_MOST_ONCE, 300.5, 305.5, id="drifting"),
        pytest.param(After("5s"), Delivery.AT_LEAST_ONCE, 300.5, 305.5, id="drifting, the same tick"),
        pytest.param(Every("5s", anchor=START), Delivery.AT_LEAST_ONCE, 300.5, 305, id="fixed, off its grid"),
        pytest.param(Every("5s", anchor=START), Delivery.AT_MOST_ONCE, 305, 310, id="fixed, on its grid"),
    ],
)
async def test_timescaledb_s14_s15_f5_after_a_crash_five_minutes_pass(
    lives, clock, schedule, delivery, start, following
):
    """Found half a second after the start: nothing runs for 300 s, whatever the retry period; then all is well."""
    async with lives.life(killed=True) as s:
        s.add("sleep", schedule, id="a", args=(10,), start="now", retry=Retry.timescaledb("10ms"), delivery=delivery)
        await clock.travel(0.1)
    clock.advance(0.4)
    lives.events.clear()
    lives.tasks["sleep"] = takes_no_time
    async with lives.life() as s:
        await clock.travel(start - 0.6)
        assert lives.starts() == []
        await clock.travel(0.2)
        assert lives.starts() == [start]
        job = s.get("a")
        assert seconds(job.next_start) == following
        counts = job.statistics()
        assert (counts.runs, counts.successes, counts.crashes, counts.consecutive_crashes) == (2, 1, 1, 0)


async def test_timescaledb_s23_a_job_without_times_whose_last_run_crashed_comes_back(lives, clock):
    """Its row knows neither a next start nor a finish, only one crash: within 400 s it has succeeded."""
    lives.store.open(0, lambda: None)
    row = StoredJob("a", "nothing", "@after 5s")
    state = StoredState("a", runs=1, consecutive_crashes=1)
    mark = StoredTick("a", T0_US, 1, 1, RUNNING, started_us=T0_US)
    lives.store.commit(Batch(jobs={"a": row}, states={"a": state}, marks=[mark]))
    lives.store.close()
    job, counts = (await lives.live(400))["a"]
    assert counts.last_outcome is Outcome.SUCCEEDED
    assert counts.consecutive_crashes == 0
    assert counts.crashes == 1
    assert lives.starts()[0] == 300
    assert lives.state().next_us is not None
    assert job.state is JobState.SCHEDULED


async def test_timescaledb_s22_a_job_that_was_paused_for_good_stays_so(lives, clock):
    """One failure without retries, and no restart brings it back."""
    async with lives.life() as s:
        s.add("fail", After(100), id="a", start="now", retry=Retry.timescaledb(10, max_retries=0))
        await clock.travel(50)
    for _ in range(3):
        assert (await lives.live(300))["a"][0].state is JobState.DISABLED
    assert lives.starts() == [0]


async def test_timescaledb_c5_a_first_start_that_passed_while_nothing_ran_stays_the_next_one(lives, clock):
    """Nothing has run until a scheduler runs again; then it does at once."""
    async with lives.life() as s:
        s.add("nothing", Every(1_000), id="a", start=START.replace(second=30))
        await clock.travel(5)
    clock.advance(100)
    assert lives.state().next_us == T0_US + 30 * 1_000_000
    assert lives.state().runs == 0
    job, counts = (await lives.live(1))["a"]
    assert counts.runs == 1
    assert lives.starts() == [105]
    assert lives.state().next_us == T0_US + 1_030 * 1_000_000
    assert job.schedule == Every(1_000, anchor=START.replace(second=30))


async def test_timescaledb_h8_a_record_that_was_left_open_is_closed_as_a_crash(lives, clock):
    """By the scheduler that finds it, of a job that is gone too, with the time at which it was found."""
    async with lives.life(killed=True) as s:
        for id in ("a", "b"):
            s.add("sleep", After(100), id=id, args=(500,), start="now")
        await clock.travel(1)
    lives.store.delete("b")
    clock.advance(9)
    async with lives.life() as s:
        await s.flush()
        records = await s.history()
    assert {record.job_id for record in records} == {"a", "b"}
    for record in records:
        assert record.outcome is Outcome.CRASHED
        assert "died" in record.error
        assert seconds(record.ended) == 10
        assert seconds(record.started) == 0


async def test_timescaledb_t1_a_run_that_was_killed_has_one_record(lives, clock):
    """However often a scheduler starts before the job does: one crash, counted once."""
    async with lives.life(killed=True) as s:
        s.add("sleep", After(100), id="a", args=(500,), start="now")
        await clock.travel(1)
    for _ in range(3):
        _, counts = (await lives.live(10))["a"]
        assert (counts.runs, counts.crashes, counts.consecutive_crashes) == (1, 1, 1)
    async with lives.life() as s:
        records = await s.history("a")
        assert [record.outcome for record in records] == [Outcome.CRASHED]


async def test_timescaledb_o7_of_two_schedulers_on_one_store_the_later_has_it(lives, clock):
    """The first starts nothing any more whose mark the store would have to take; the second goes on with all of it."""
    async with lives.life() as first:
        first.add("nothing", After(10), id="a", start="now")
        await clock.travel(5)
        lives.store = lives.store.another()
        async with lives.life():
            await clock.travel(50)
            assert lives.starts("a") == [0, 10, 20, 30, 40, 50]
