"""Runs by outcome, durations and missed ticks by reason: what is counted is what listeners were told."""

import sys
import threading
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from kit import PATIENCE, nothing, until
from schedule import Every
from scheduler import MissedReason, Outcome, RunEnded, RunMissed, Scheduler
from scheduler._values import KindCounts, LatenessStatistics
from timerqueue import LimitStatistics
from timerqueue.testing import START

EVERY_TEN_SECONDS = Every("10s", anchor=START)
lengths = st.lists(st.floats(0, 1e6) | st.floats(0, 1), max_size=50)


@given(lengths, st.lists(st.floats(1e-3, 1e5), min_size=1, max_size=10, unique=True).map(sorted))
def test_the_runs_within_a_bound_are_right_to_seven_percent(values, bounds):
    """A run at the bound counts; one far above it does not."""
    counts = KindCounts()
    for value in values:
        counts.add(value)
    for bound, within in zip(bounds, counts.snapshot().cumulative(bounds), strict=True):
        assert sum(value <= bound for value in values) <= within
        assert within <= sum(value <= bound * 1.07 + 4e-6 for value in values)


@given(lengths)
def test_the_sum_of_seconds_is_right_to_three_percent(values):
    """Prometheus divides it by the count."""
    counts = KindCounts()
    for value in values:
        counts.end(Outcome.SUCCEEDED, value)
    found = counts.durations_now()
    total = found[Outcome.SUCCEEDED].seconds if values else 0.0
    assert total == pytest.approx(sum(values), rel=0.035, abs=5e-6 * len(values))


def test_durations_take_memory_only_as_far_as_they_reach():
    """There are kinds of job by the thousand, and most take milliseconds."""
    counts = KindCounts()
    assert sys.getsizeof(counts.durations) < 100
    counts.end(Outcome.SUCCEEDED, 0.001)
    assert sys.getsizeof(counts.durations) < 1_500
    counts.end(Outcome.SUCCEEDED, 1e9)
    assert counts.durations_now()[Outcome.SUCCEEDED].total == 2


def test_a_histogram_without_runs_has_nothing_within_any_bound():
    """It is shown from the first scrape on."""
    assert LatenessStatistics(()).cumulative((0.1, 1)) == (0, 0)


@pytest.mark.parametrize("is_heard", [True, False])
async def test_outcomes_are_those_that_listeners_hear(clock, events, is_heard, quiet):
    """With a listener and without, where plain jobs go a shorter way."""
    async with Scheduler(clock=clock, limits={"db": 5}) as s:
        if is_heard:
            s.listen(events)

        async def work(seconds):
            await clock.sleep(seconds)
            if seconds == 3:
                raise ValueError

        s.add(work, EVERY_TEN_SECONDS, args=[1], id="good", needs="db")
        s.add(nothing, EVERY_TEN_SECONDS, id="quick")
        s.add(work, EVERY_TEN_SECONDS, args=[3], id="bad")
        s.add(work, EVERY_TEN_SECONDS, args=[5], id="slow", timeout=4)
        s.add(work, EVERY_TEN_SECONDS, args=[9], id="cut off")
        await clock.travel(44.5)
        s.get("cut off").remove()
        await clock.travel(1)
        counts = s.statistics()
        assert counts.outcomes == {
            "db": {Outcome.SUCCEEDED: 4},
            "default": {
                Outcome.SUCCEEDED: 7,
                Outcome.FAILED: 4,
                Outcome.TIMED_OUT: 4,
                Outcome.CANCELLED: 1,
            },
        }
        durations = counts.durations
        assert durations["db"][Outcome.SUCCEEDED].quantile(1) == pytest.approx(1, rel=0.03)
        assert durations["default"][Outcome.FAILED].quantile(1) == pytest.approx(3, rel=0.03)
        if is_heard:
            heard = Counter(each.outcome for each in events.of(RunEnded))
            counted = Counter()
            for each in counts.outcomes.values():
                counted.update(each)
            assert heard == counted


async def test_missed_ticks_are_counted_by_reason(clock, events):
    """Their sum is `missed`."""
    async with Scheduler(clock=clock) as s:
        s.listen(events, RunMissed)

        async def work():
            await clock.sleep(25)

        s.add(work, "@every 10s", id="overlaps", start="now")
        s.add(nothing, "@every 10s", id="paused", start="now").pause()
        s.add(nothing, "@every 1h", id="skipped").skip()
        await clock.travel(3700)
        s.get("paused").resume()
        await clock.travel(1)
        counts = s.statistics()
        heard = Counter()
        for each in events.of(RunMissed):
            heard[each.reason] += each.count
        assert counts.missed_by_reason == heard
        assert set(heard) >= {MissedReason.OVERLAP, MissedReason.PAUSED, MissedReason.SKIPPED}
        assert counts.missed == sum(heard.values())


async def test_a_crash_counts_where_it_is_found(processes):
    """The process that died could not count it."""
    async with processes.one(100, dies=True) as s:
        s.add("work", "@every 1h", id="job", start="now", needs=())
        await processes.clock.travel(1)
        await s.flush()
    async with processes.one() as s:
        await processes.clock.travel(1)
        assert s.statistics().outcomes == {"default": {Outcome.CRASHED: 1}}


async def test_a_removed_job_takes_no_counts_with_it(clock):
    """A counter that falls looks like a restart, and a rate over it is far too high."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, "@every 1s", id="job")
        await clock.travel(10)
        before = s.statistics()
        job.remove()
        await clock.travel(10)
        assert s.statistics().outcomes == before.outcomes != {}


async def test_members_of_a_family_say_to_which_they_belong(clock):
    """Figures of thousands of servers can be put together."""
    async with Scheduler(clock=clock, limits={"server:*": 2, "server:big": 9}) as s:

        async def work():
            await clock.sleep(5)

        for name in ("server:a", "server:big"):
            s.add(work, "@every 1h", id=name, needs=name, start="now")
        await clock.travel(1)
        assert s.statistics().limits == {
            "server:big": LimitStatistics(9, 1, 0),
            "server:a": LimitStatistics(2, 1, 0, "server:*"),
        }


async def test_counts_read_in_another_thread_never_fall(quiet):
    """A run that ends while they are read is counted once, before or after."""
    seen, is_over = [], threading.Event()

    def read(s):
        while not is_over.is_set():
            counts = s.statistics()
            lateness = counts.lateness.get("default", LatenessStatistics(()))
            seen.append((lateness.total, sum(map(sum, (each.values() for each in counts.outcomes.values())))))

    most = 3_000
    async with Scheduler() as s:
        reader = threading.Thread(target=read, args=(s,))
        s.add_many(nothing, [(f"job-{number}", "@every 10ms") for number in range(50)])
        reader.start()
        await until(lambda: s.statistics().runs >= most)
    is_over.set()
    reader.join(PATIENCE)
    assert seen[-1][0] > most // 2
    for before, after in pairwise(seen):
        assert before[0] <= after[0]
        assert before[1] <= after[1]
