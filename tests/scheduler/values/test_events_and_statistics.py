"""What listeners are told and what is counted."""

import gc
from datetime import timedelta

import attrs
import pytest

from kit import T0, at, nothing
from schedule import At, Every
from scheduler import (
    JobAdded,
    JobFinished,
    JobRemoved,
    Outcome,
    Retry,
    RunEnded,
    RunMissed,
    RunStarted,
    Scheduler,
    SchedulerStarted,
    SchedulerStopped,
    Subtask,
)
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START

EVERY_SECOND = Every("1s", anchor=START)


async def test_the_events_of_a_run_tell_all_about_it(clock, events):
    """Instants are aware, in UTC; lateness from due to start, duration from start to end."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def task():
            await clock.sleep(2)
            return "ok"

        s.add(task, "@every 1h", id="a", start=START + timedelta(seconds=10))
        clock.advance(10.5)
        await clock.travel(3)
        started, ended = events.of(RunStarted, RunEnded)
        assert started == RunStarted("a", at(10), at(10.5), 1, 0.5)
        assert (ended.job_id, ended.due, ended.started, ended.attempt) == ("a", at(10), at(10.5), 1)
        assert (ended.ended, ended.lateness) == (at(12.5), pytest.approx(0.5))
        assert (ended.outcome, ended.error, ended.traceback, ended.retry_at) == (Outcome.SUCCEEDED, None, None, None)
        assert ended.results == ("ok",)
        assert ended.duration == pytest.approx(2)
        assert ended.result == "ok"


async def test_an_event_and_the_record_of_the_same_ticks_name_the_same_instants(clock, events):
    """To the microsecond, whatever fractions the clock shows: a program finds the one by the other."""
    s = Scheduler(store=MemoryStore(), clock=clock)
    s.listen(events)

    @s.task("work")
    async def work():
        await clock.sleep(0.333_333_3)

    async with s:
        s.add("work", Every("0.1s", anchor=START), id="a")
        await clock.travel(7.123_456_7)
        records = {record.due: record for record in await s.history()}
        ended, missed = events.of(RunEnded), events.of(RunMissed)
        assert len(ended) > 10
        assert len(missed) > 10
        for each in ended:
            record = records[each.due]
            assert (each.started, each.ended) == (record.started, record.ended)
        for each in missed:
            assert each.last_due == records[each.first_due].last_due


async def test_a_failure_keeps_its_traceback(clock, events):
    """From the line that raised."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def task():
            raise ValueError("boom")  # the very line

        s.add(task, EVERY_SECOND)
        await clock.travel(1)
        (ended,) = events.of(RunEnded)
        assert ended.error == "ValueError: boom"
        assert "# the very line" in ended.traceback


async def test_events_come_in_the_order_of_what_they_tell(clock, events):
    """A job is added before it runs, and is finished after it ran."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, At(START + timedelta(seconds=1)), id="a")
        s.add(nothing, EVERY_SECOND, id="b").remove()
        await clock.travel(2)
    kinds = [type(event) for event in events if getattr(event, "job_id", "a") == "a"]
    assert kinds == [JobAdded, RunStarted, RunEnded, JobFinished, SchedulerStopped]
    assert events.of(JobAdded, JobRemoved, job_id="b") == [JobAdded("b"), JobRemoved("b")]


async def test_every_event_is_frozen(clock, events):
    """A listener cannot change what the next one is told."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, EVERY_SECOND)
        await clock.travel(1)
    for event in events:
        field = attrs.fields(type(event))[0].name
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(event, field, None)


async def test_a_listener_hears_until_it_is_ended(clock, events):
    """Ending twice is harmless; a second listener hears on."""
    other = []
    async with Scheduler(clock=clock) as s:
        end = s.listen(events)
        s.listen(other.append)
        s.add(nothing, EVERY_SECOND)
        await clock.travel(1)
        heard = len(events)
        end()
        end()
        await clock.travel(5)
    assert len(events) == heard
    assert len(other) > heard


async def test_the_same_listener_twice_is_ended_once_at_a_time(clock):
    """Each `listen` has its own end."""
    heard = []
    s = Scheduler(clock=clock)
    first = s.listen(heard.append)
    s.listen(heard.append)
    s.add(nothing, EVERY_SECOND)
    assert len(heard) == 2
    first()
    s.add(nothing, EVERY_SECOND)
    assert len(heard) == 3


async def test_the_scheduler_says_when_it_starts_and_stops(clock, events):
    """First and last of all."""
    s = Scheduler(clock=clock)
    s.listen(events)
    async with s:
        await clock.travel(5)
    assert events == [SchedulerStarted(START), SchedulerStopped(at(5), ())]


async def test_runs_are_successes_failures_and_what_runs_at_every_event(clock):
    """A run that goes on is no crash: it counted as one, which is what it is if nobody lives to end it."""
    wrong, checked = [], []
    running = {RunStarted: {1}, RunEnded: {0}}

    def listener(event):
        for job in s.jobs():
            counts = job.statistics()
            is_of_this = getattr(event, "job_id", None) == job.id
            checked.append(
                counts.runs == counts.successes + counts.failures + counts.running
                and counts.crashes == 0
                and counts.timeouts + counts.cancellations <= counts.failures
                and counts.running in (running.get(type(event), {0, 1}) if is_of_this else {0, 1})
            )
            if not checked[-1]:
                wrong.append((event, counts))

    async with Scheduler(limit=2, clock=clock) as s:
        s.listen(listener)

        async def task(number):
            await clock.sleep(number * 0.3)
            if number % 2:
                raise ValueError
            return [Subtask(clock.sleep, 0.1)] * 2

        for number in range(6):
            s.add(task, EVERY_SECOND, id=f"{number}", args=(number,), timeout="1s", retry=Retry.constant("100ms"))
        await clock.travel(20)
        for job in s.jobs():
            job.remove()
    assert wrong == []
    assert len(checked) > 100


async def test_a_job_is_counted_in_timescaledb_s_columns(clock):
    """Durations of successes and failures apart, the last of each instant, lateness as sum and maximum."""
    plan = iter([(1, None), (2, ValueError("a")), (3, None), (9, None)])
    async with Scheduler(clock=clock) as s:

        async def task():
            seconds, error = next(plan)
            await clock.sleep(seconds)
            if error:
                raise error

        job = s.add(task, Every("10s", anchor=START), timeout="5s")
        clock.advance(10.25)
        await clock.travel(45 - 10.25 + 1)
        counts = job.statistics()
    assert (counts.runs, counts.successes, counts.failures, counts.crashes) == (4, 2, 2, 0)
    assert (counts.timeouts, counts.cancellations, counts.consecutive_failures) == (1, 0, 1)
    assert counts.total_duration == pytest.approx(4)
    assert counts.total_duration_failures == pytest.approx(7)
    assert counts.last_start == pytest.approx(T0 + 40)
    assert counts.last_finish == pytest.approx(T0 + 45)
    assert counts.last_successful_finish == pytest.approx(T0 + 33)
    assert counts.last_outcome is Outcome.TIMED_OUT
    assert "timeout" in counts.last_error
    assert (counts.lateness_sum, counts.lateness_max) == pytest.approx((0.25, 0.25))


async def test_a_job_that_never_ran_has_empty_counts(clock):
    """None where there is no instant."""
    async with Scheduler(clock=clock) as s:
        counts = s.add(nothing, EVERY_SECOND).statistics()
    assert (counts.runs, counts.last_start, counts.last_finish, counts.last_outcome) == (0, None, None, None)


async def test_a_cancellation_is_no_failure_in_a_row(clock):
    """Somebody's wish says nothing about the job's health."""
    async with Scheduler(clock=clock) as s:
        job = s.add(clock.sleep, EVERY_SECOND, args=(3600,))
        await clock.travel(1)
        job.remove()
        await clock.travel(0)
        counts = job.statistics()
        assert (counts.failures, counts.cancellations, counts.consecutive_failures) == (1, 1, 0)


async def test_on_time_runs_are_never_late(clock, events):
    """Heartbeat counted each run of a job of one second or less as missed."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        for number in range(20):
            s.add(nothing, Every("500ms"), id=f"{number}")
        await clock.travel(10)
        assert len(events.of(RunEnded)) == 400
        assert s.statistics().missed == 0
        assert events.of(RunMissed) == []
        assert s.statistics().lateness["default"].quantile(1) <= 2e-6


async def test_statistics_are_of_their_moment(clock):
    """A record that was taken does not change later."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, EVERY_SECOND)
        before, counts = s.statistics(), job.statistics()
        await clock.travel(5)
        assert (before.runs, counts.runs) == (0, 0)
        assert (s.statistics().runs, job.statistics().runs) == (5, 5)
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            before.runs = 3


async def test_the_lateness_of_a_retry_counts_from_when_the_retry_was_due(clock, events):
    """Waiting for it was meant, and is not late."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def fail():
            raise ValueError

        s.add(fail, "@every 1h", id="a", start="now", retry=Retry.constant("10s", max_retries=2))
        await clock.travel(60)
        assert [event.lateness for event in events.of(RunStarted)] == pytest.approx([0, 0, 0])
        assert events.of(RunEnded)[0].due == START


def test_a_finalizer_may_end_a_listener_while_another_is_added():
    """Garbage is collected in the middle of anything."""

    class Listens:
        def __init__(self, s):
            self.itself = self
            self.end = s.listen(lambda _event: None)

        def __del__(self):
            self.end()

    s = Scheduler()
    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(2_000):
            Listens(s)
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert not s._listeners.anybody
