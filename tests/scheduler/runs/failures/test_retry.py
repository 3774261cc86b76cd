"""What follows a failure."""

from datetime import timedelta

import pytest

from kit import T0, at, since_start
from schedule import After, At, Every, ScheduleError
from scheduler import JobChanged, JobState, Outcome, Retry, RunEnded, RunStarted, Scheduler
from timerqueue import seeded_random
from timerqueue.testing import START

PERIOD = Every("10m", anchor=START)


def relative(instants):
    """Give instants in seconds after the first full period."""
    return [round(since_start(each) - 600, 6) for each in instants]


class Flaky:
    """Fails the first so many times, and then succeeds."""

    def __init__(self, failures):
        self.failures = failures

    async def __call__(self):
        """Fail or succeed."""
        self.failures -= 1
        if self.failures >= 0:
            raise ConnectionError("no route")


@pytest.mark.parametrize(
    ("retry", "starts"),
    [
        pytest.param(Retry.constant("10s"), [0, 10, 20, 30, 40, 50], id="constant"),
        pytest.param(Retry.linear("10s"), [0, 10, 30, 60, 100, 150], id="linear"),
        pytest.param(Retry.linear("10s", cap="25s"), [0, 10, 30, 55, 80, 105], id="linear with a cap"),
        pytest.param(Retry.exponential("1s", jitter=0), [0, 1, 3, 7, 15, 31], id="exponential"),
        pytest.param(Retry.exponential("1s", cap="3s", jitter=0), [0, 1, 3, 6, 9, 12], id="exponential with a cap"),
    ],
)
async def test_delays_grow_as_they_are_called(clock, events, retry, starts):
    """Counted from the end of the failure; the fifth retry succeeds and ends the row."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(Flaky(5), PERIOD, retry=retry)
        await clock.travel(600 + 300)
        assert relative(events.starts()) == starts
        assert events.outcomes() == [Outcome.FAILED] * 5 + [Outcome.SUCCEEDED]
        assert [event.attempt for event in events.of(RunStarted)] == [1, 2, 3, 4, 5, 6]
        assert {event.due for event in events.of(RunEnded)} == {at(600)}
        assert relative(e.retry_at for e in events.of(RunEnded) if e.retry_at is not None) == starts[1:]
        assert job.statistics().consecutive_failures == 0


@pytest.mark.parametrize(
    ("max_retries", "runs"),
    [pytest.param(0, 1, id="none"), pytest.param(1, 2, id="one"), pytest.param(3, 4, id="three")],
)
async def test_max_retries_is_the_number_of_retries_and_then_the_job_is_disabled(
    clock, events, max_retries, runs, caplog
):
    """Nought means none, unlike in TimescaleDB; the event says why it was disabled, and so does a warning."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(Flaky(99), PERIOD, id="a", retry=Retry.constant("1s", max_retries=max_retries))
        await clock.travel(3 * 600)
        assert job.state is JobState.DISABLED
        assert job.next_start is None
        assert len(events.starts()) == runs
        (changed,) = events.of(JobChanged)
        assert changed.state is JobState.DISABLED
        assert f"failed {runs} times in a row" in changed.reason
        assert job in s.jobs()
    (warning,) = [record.getMessage() for record in caplog.records if "does not start until" in record.getMessage()]
    assert changed.reason in warning


async def test_without_a_maximum_it_is_tried_for_ever(clock, events):
    """None means without end."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(Flaky(10**9), At(START + timedelta(minutes=10)), retry=Retry.constant("1s"))
        await clock.travel(600 + 100)
        assert len(events.starts()) == 101
        assert job.state is JobState.SCHEDULED


async def test_a_job_without_retry_waits_for_its_next_start(clock, events):
    """Failures are counted and change nothing else."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(Flaky(3), PERIOD)
        await clock.travel(4 * 600)
        assert relative(events.starts()) == [0, 600, 1200, 1800]
        assert job.statistics().failures == 3
        assert events.of(RunEnded)[0].retry_at is None


async def test_a_retry_is_never_later_than_the_next_regular_start(clock, events):
    """That takes its place, as a first attempt at its own tick."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(Flaky(1), Every("10s", anchor=START), retry=Retry.constant("15s"))
        await clock.travel(45)
        assert [at - T0 for at in events.starts()] == [10, 20, 30, 40]
        assert {event.attempt for event in events.of(RunStarted)} == {1}
        assert {event.retry_at for event in events.of(RunEnded)} == {None}


async def test_a_retry_may_go_past_the_next_start_if_told_so(clock, events):
    """Then regular starts do not replace it."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(Flaky(1), Every("10s", anchor=START), retry=Retry.constant("15s", past_next_start=True))
        await clock.travel(45)
        assert [(at - T0, e.attempt) for at, e in zip(events.starts(), events.of(RunStarted), strict=True)] == [
            (10, 1), (20, 1), (25, 2), (30, 1), (40, 1),
        ]  # fmt: skip


async def test_failures_in_a_row_are_counted_over_ticks(clock, events):
    """A job that fails at each of its regular starts runs out of retries too."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(Flaky(99), Every("10s", anchor=START), retry=Retry.constant("1h", max_retries=2))
        await clock.travel(60)
        assert len(events.starts()) == 3
        assert job.state is JobState.DISABLED


async def test_a_success_starts_the_count_anew(clock):
    """Otherwise a job that fails now and then would die in the end."""
    outcomes = iter([1, 1, 0] * 10)

    async def task():
        if next(outcomes):
            raise ValueError

    async with Scheduler(clock=clock) as s:
        job = s.add(task, PERIOD, retry=Retry.constant("1s", max_retries=2))
        await clock.travel(10 * 600 + 10)
        assert job.state is JobState.SCHEDULED
        assert (job.statistics().successes, job.statistics().failures) == (10, 20)


async def test_resuming_a_disabled_job_gives_it_all_its_retries_again(clock, events):
    """The row of failures is forgotten."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(Flaky(99), PERIOD, retry=Retry.constant("1s", max_retries=2))
        await clock.travel(700)
        job.resume()
        assert job.state is JobState.SCHEDULED
        await clock.travel(600)
        assert relative(events.starts()) == [0, 1, 2, 600, 601, 602]
        assert job.state is JobState.DISABLED


async def test_a_fixed_delay_counts_from_the_last_attempt(clock, events):
    """The next start comes `interval` after the retry that ended the tick."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(Flaky(2), After("100s"), retry=Retry.constant("5s"))
        await clock.travel(115)
        assert [at - T0 for at in events.starts()] == [0, 5, 10, 110]


async def test_a_fixed_delay_retries_with_a_longer_delay_than_its_own(clock, events):
    """Its next start hangs on the end of the row, so the retry comes first however long it waits."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(Flaky(1), After("10s"), retry=Retry.constant("25s"))
        await clock.travel(40)
        assert [at - T0 for at in events.starts()] == [0, 25, 35]


async def test_a_one_shot_with_retries_stays_until_it_is_through(clock, events):
    """It leaves `jobs()` after its last attempt, not its first."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(Flaky(2), At(START + timedelta(minutes=10)), retry=Retry.constant("10s", max_retries=5))
        await clock.travel(605)
        assert s.jobs() == [job]
        assert relative([job.next_start.timestamp()]) == [10]
        await clock.travel(20)
        assert s.jobs() == []
        assert events.outcomes()[-1] is Outcome.SUCCEEDED


async def test_a_waiting_retry_holds_no_room(clock):
    """It is an entry in the heap."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.add(Flaky(1), PERIOD, retry=Retry.constant("2m"))
        await clock.travel(700)
        assert s.statistics().active_tasks == s.statistics().active_jobs == 0


async def test_pause_and_remove_end_a_waiting_retry(clock, events):
    """What was stopped by hand does not come back by itself."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        paused = s.add(Flaky(1), PERIOD, id="paused", retry=Retry.constant("2m"))
        removed = s.add(Flaky(1), PERIOD, id="removed", retry=Retry.constant("2m"))
        await clock.travel(700)
        paused.pause()
        removed.remove()
        await clock.travel(300)
        assert len(events.starts()) == 2


async def test_a_timeout_is_retried_and_a_cancellation_is_not(clock, events):
    """The one is a failure of the run, the other somebody's wish."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, PERIOD, args=(99,), timeout="5s", retry=Retry.constant("10s", max_retries=1))
        await clock.travel(700)
        assert relative(events.starts()) == [0, 15]
        assert events.outcomes() == [Outcome.TIMED_OUT] * 2


async def test_jitter_comes_from_the_scheduler_s_source(clock, events):
    """At most the share that was asked for is taken off, and the same numbers give the same delays."""
    dice = seeded_random(7)
    expected = [1 - 0.5 * dice(), 2 * (1 - 0.5 * dice()), 4 * (1 - 0.5 * dice())]
    async with Scheduler(clock=clock, random=seeded_random(7)) as s:
        s.listen(events)
        s.add(Flaky(3), PERIOD, retry=Retry.exponential("1s"))
        await clock.travel(700)
        waits = [(e.retry_at - e.ended).total_seconds() for e in events.of(RunEnded) if e.retry_at is not None]
        assert waits == pytest.approx(expected)


@pytest.mark.parametrize("factory", [Retry.constant, Retry.linear, Retry.exponential])
@pytest.mark.parametrize("options", [{"max_retries": -1}, {"max_retries": 1.5}, {"jitter": 1.1}, {"jitter": -0.1}])
def test_a_senseless_retry_is_refused_by_name(factory, options):
    """The error names the argument."""
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        factory("1s", **options)


@pytest.mark.parametrize("base", [-1, "soon", float("nan"), float("inf"), 0])
def test_a_senseless_delay_is_refused(base):
    """A delay of nothing would be a busy loop."""
    with pytest.raises(ScheduleError):
        Retry.constant(base)


def test_delays_never_overflow():
    """The thousandth failure in a row waits for the cap, or for a very long time."""
    assert Retry.exponential("1s", jitter=0).delay(1_000, 0) == 300
    assert Retry.exponential("1s", cap=None, jitter=0).delay(1_000, 0) < 1e30
