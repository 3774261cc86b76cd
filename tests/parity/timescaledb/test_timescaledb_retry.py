"""The delays of TimescaleDB: linear, capped by the job's own interval, and then jittered both ways."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from kit import T0, at
from schedule import After, At, Calendar, Cron, Every
from scheduler import JobState, Outcome, Retry, RunEnded, Scheduler
from scheduler._plan.after_run import GO_ON, Decision, after_run
from scheduler._plan.planner import planner_for
from scheduler._values.policy import Policy
from timerqueue import seeded_random
from timerqueue.testing import START

SHORTEST, LONGEST = 1 - 15 / 128, 1 + 16 / 128

periods = st.floats(0.001, 1e6)
counts = st.integers(1, 10_000)
lots = st.floats(0, 1, exclude_max=True)
intervals = st.none() | st.floats(0.001, 1e8)


def before_jitter(period, failures, interval):
    """Say the formula once more, in other words."""
    delay = timedelta(seconds=period).total_seconds() * min(failures, 20)
    return delay if interval is None or delay < 5 * interval else 5 * interval


@given(periods, counts, lots, intervals)
def test_a_delay_lies_within_its_bounds(period, failures, lot, interval):
    """Fifteen below to sixteen above in 128; the jitter may carry it over the cap."""
    delay = Retry.timescaledb(period).delay(failures, lot, interval)
    base = before_jitter(period, failures, interval)
    assert base * SHORTEST * (1 - 1e-12) <= delay <= base * LONGEST * (1 + 1e-12)


@given(periods, counts, counts, lots, intervals)
def test_delays_grow_with_the_failures_up_to_the_cap(period, few, many, lot, interval):
    """With the same jitter a later failure never waits for less; from the twentieth on it is the same."""
    retry = Retry.timescaledb(period)
    few, many = sorted((few, many))
    assert retry.delay(few, lot, interval) <= retry.delay(many, lot, interval)
    assert retry.delay(20, lot, interval) == retry.delay(20 + many, lot, interval)


@given(st.integers(0, 2**32), periods, intervals)
def test_the_same_seed_gives_the_same_delays(seed, period, interval):
    """A replay waits as the first time."""
    retry, dice, again = Retry.timescaledb(period), seeded_random(seed), seeded_random(seed)
    assert [retry.delay(n, dice(), interval) for n in range(1, 30)] == [
        retry.delay(n, again(), interval) for n in range(1, 30)
    ]


def test_the_jitter_has_thirty_two_steps():
    """From 16/128 longer down to 15/128 shorter, each as likely as the others."""
    delays = [Retry.timescaledb(128).delay(1, (k + 0.5) / 32) for k in range(32)]
    assert delays == [128 + 16 - k for k in range(32)]


@pytest.mark.parametrize(
    ("schedule", "days"),
    [
        (Every("2d"), 2),
        (After("3d"), 3),
        (Every("2d", jitter="1h"), 2),
        (Calendar("2 weeks", origin=START), 14),
        (Calendar("1 month", origin=START), 30),
        (Calendar("2 years", origin=START), 720),
        (Cron("0 0 * * *"), None),
        (At(datetime(2030, 1, 1, tzinfo=UTC)), None),
    ],
    ids=str,
)
def test_a_month_counts_as_thirty_days(schedule, days):
    """That is what the cap is compared with; what names no interval has no such cap."""
    assert planner_for(schedule).interval == (None if days is None else days * 86_400 * 1_000_000)


@pytest.mark.parametrize(
    ("outcome", "failures", "verdict"),
    [
        (Outcome.FAILED, 1, Decision(retry_in=112.5)),
        (Outcome.TIMED_OUT, 1, Decision(retry_in=112.5)),
        (Outcome.TIMED_OUT, 3, Decision(disable="failed 3 times in a row, with 2 retries allowed")),
        (Outcome.CANCELLED, 3, GO_ON),
    ],
)
def test_timeouts_use_up_retries_and_cancellations_do_not(outcome, failures, verdict):
    """Unlike there, where a job that times out is tried for ever."""
    policy = Policy(retry=Retry.timescaledb(100, max_retries=2))
    assert after_run(outcome, failures, policy, 1_000.0, 0.0, interval=1_000.0) == verdict


def test_the_next_regular_start_takes_the_place_of_a_later_retry():
    """Jitter included."""
    policy = Policy(retry=Retry.timescaledb(100))
    assert after_run(Outcome.FAILED, 1, policy, 112.4, 0.0) == GO_ON
    assert after_run(Outcome.FAILED, 1, policy, 112.6, 0.0).retry_in == 112.5


async def test_timescaledb_s6_s7_a_failing_drifting_job(clock, events):
    """I = R = 100; starts within their ranges; four retries, and the fifth failure disables."""

    async def fail():
        raise ValueError

    async with Scheduler(clock=clock, random=seeded_random(11)) as s:
        s.listen(events)
        job = s.add(fail, After(100), retry=Retry.timescaledb(100, max_retries=4))
        await clock.travel(1_325)
        starts = [at - T0 for at in events.starts()]
        ranges = [(0, 0), (88.3, 112.5), (264.8, 337.5), (529.7, 675), (882.8, 1125)]
        assert all(low - 0.1 <= at <= high for at, (low, high) in zip(starts, ranges, strict=True))
        assert job.statistics().consecutive_failures == 5
        assert job.state is JobState.DISABLED


async def test_timescaledb_f3_a_failing_job_on_a_grid(clock, events):
    """I 800, R 200: the third retry would be later than the slot at 800, which comes instead; it is disabled there."""

    async def fail():
        raise ValueError

    async with Scheduler(clock=clock, random=seeded_random(11)) as s:
        s.listen(events)
        job = s.add(fail, Every(800, anchor=START), start="now", retry=Retry.timescaledb(200, max_retries=4))
        await clock.travel(2_125)
        starts = [at - T0 for at in events.starts()]
        ranges = [(0, 0), (176.5, 225), (529.6, 675), (800, 800), (1506, 1600)]
        assert all(low <= at <= high for at, (low, high) in zip(starts, ranges, strict=True))
        assert job.state is JobState.DISABLED


async def test_the_cap_follows_the_interval_of_the_job(clock, events):
    """Five intervals of ten seconds, however long the retry period."""

    async def fail():
        raise ValueError

    async with Scheduler(clock=clock, random=lambda: 0.5) as s:
        s.listen(events)
        s.add(fail, After("10s"), retry=Retry.timescaledb("1h"))
        await clock.travel(170)
        assert [at - T0 for at in events.starts()] == [0, 50, 100, 150]
        assert events.of(RunEnded)[0].retry_at == at(50)


@pytest.mark.parametrize(
    "options", [{"cap_intervals": 0}, {"cap_intervals": -1}, {"jitter_steps": 1}, {"jitter_steps": 2.5}]
)
def test_senseless_caps_and_steps_are_refused_by_name(options):
    """A cap of nothing would be a busy loop, and one step no jitter."""
    plain = Retry.constant(1)
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        Retry(growth=plain.growth, base=1, **options)
