"""Defects of planning, clocks, verbs and listeners that a hostile review found: each stays fixed."""

import asyncio
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from anyio.lowlevel import checkpoint

from kit import nothing, settle
from schedule import Every, Missed
from scheduler import (
    ClockJumped,
    InvalidJob,
    JobNotFound,
    JobState,
    Retry,
    RunEnded,
    RunStarted,
    Scheduler,
    SchedulerState,
)
from timerqueue import LifecycleError
from timerqueue.testing import START, ManualClock

EVERY_SECOND = Every("1s", anchor=START)


async def fail():
    """Fail without waiting."""
    raise ValueError("boom")


def in_a_thread(func):
    """Call it in another thread while the loop does not move."""
    thread = threading.Thread(target=func)
    thread.start()
    thread.join()


class Background:
    """What `run_once` answers while a test moves the clock."""

    def __init__(self, s):
        self.s = s
        self.answer = None

    async def __call__(self):
        self.answer = await self.s.run_once()


# -- a batch in which somebody plans what is due ---------------------------------------------------------------------


async def test_a_clock_step_noticed_when_a_calendar_job_is_due_freezes_nothing(events):
    """The timer that notices a suspend is the due job's own: it was once in the heap twice, and all stood still."""
    clock = ManualClock(datetime(2026, 1, 1, 11, 59, 50, tzinfo=UTC))
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, "0 12 * * *", id="noon")
        other = s.add(nothing, "@every 1s", id="other")
        other.pause()
        await clock.travel(9.5)
        clock._wall_ahead += 5  # stepped, and nobody wakes the loop for it
        other.resume()
        clock.advance(2)
        await clock.travel(60)
        assert len(events.starts("noon")) == 1
        assert len(events.starts("other")) >= 59
        assert len(events.of(ClockJumped)) == 1


@pytest.mark.parametrize("schedule", ["@every 10s", "*/10 * * * * *"])
async def test_a_job_paused_and_resumed_in_the_turn_in_which_it_is_due_starts_on_time_ever_after(
    clock, events, schedule
):
    """It once started before its time, and stood in the heap twice."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, schedule, id="job")
        await clock.travel(0)
        waiting = len(s._core.queue)

        def blink():
            job.pause()
            job.resume()

        for _ in range(3):
            clock.advance(10)
            in_a_thread(blink)
            await settle(50)
        assert len(s._core.queue) == waiting
        assert all(start.due <= start.started for start in events.of(RunStarted))
        events.clear()
        await clock.travel(100)
        assert len(events.starts("job")) == 10
        assert all(start.lateness < 1e-3 for start in events.of(RunStarted))


async def test_a_job_updated_in_the_turn_in_which_it_is_due_keeps_to_its_new_schedule(clock, events):
    """The start of the old schedule must not take place by the new one's time."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY_SECOND, id="job")
        clock.advance(1)
        in_a_thread(lambda: job.update(schedule=Every("1h", anchor=START)))
        await clock.travel(0)
        events.clear()
        await clock.travel(3598)
        assert events.starts() == []
        await clock.travel(7201)
        assert len(events.starts()) == 3


# -- run_once --------------------------------------------------------------------------------------------------------


async def test_run_once_of_a_running_scheduler_is_refused_and_harms_nothing(clock, events):
    """All schedules once stopped for ever, silently."""
    refusals = []
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def mistaken():
            try:
                await s.run_once()
            except LifecycleError as exc:
                refusals.append(exc)

        s.add(nothing, EVERY_SECOND, id="good")
        s.add(mistaken, Every("1h", anchor=START), id="mistaken", start="now")
        await clock.travel(5)
        assert len(refusals) == 1
        assert len(events.starts("good")) == 5
        with pytest.raises(LifecycleError):
            await s.run_once()
        await clock.travel(5)
        assert len(events.starts("good")) == 10
        assert s.state is SchedulerState.RUNNING


async def test_run_once_ends_when_the_scheduler_is_stopped_while_a_retry_is_pending(clock):
    """The retry never comes, and neither does run_once's own timeout."""
    s = Scheduler(clock=clock)
    s.add(fail, "@every 1h", id="a", retry=Retry.constant("10m"))
    run = Background(s)
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await clock.travel(1)
        s.stop(grace=0)
    assert run.answer == {}


@pytest.mark.parametrize("when", ["on the end of the run", "later", "from a thread"])
async def test_run_once_ends_when_a_job_is_paused_while_its_retry_is_pending(clock, when):
    """What is paused has no next attempt to wait for."""
    s = Scheduler(clock=clock)
    job = s.add(fail, "@every 1h", id="a", retry=Retry.constant("10m"))
    run = Background(s)
    if when == "on the end of the run":
        s.listen(lambda event: job.pause() if isinstance(event, RunEnded) else None)
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await clock.travel(1)
        if when == "later":
            job.pause()
        elif when == "from a thread":
            in_a_thread(job.pause)
    assert s.state is SchedulerState.STOPPED


async def test_run_once_runs_every_job_however_long_it_waits_for_room(clock):
    """`grace` is about being late for a schedule, and here there is none."""
    s = Scheduler(limit=1, clock=clock)
    for number in range(6):
        s.add(clock.sleep, "@every 1h", id=f"{number}", args=(5,), missed=Missed.SKIP)
    run = Background(s)
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await clock.travel(60)
    assert sorted(run.answer) == list("012345")


# -- verbs -----------------------------------------------------------------------------------------------------------


async def test_two_updates_from_another_thread_both_hold(clock):
    """The second was once made from the job as it was before the first."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, "@every 1h")

        def update():
            job.update(timeout="1s")
            job.update(priority=5)
            job.update(tags=["x"])

        in_a_thread(update)
        await clock.travel(0)
        assert (job.policy.timeout, job.policy.priority, set(job.tags)) == (1.0, 5, {"x"})


@pytest.mark.parametrize("schedule", ["@every 1s", "* * * * * *"])
@pytest.mark.parametrize("from_a_thread", [False, True])
@pytest.mark.parametrize("order", ["remove, update", "update, remove", "remove, resume", "pause, remove, resume"])
async def test_a_removed_job_does_not_come_back(clock, events, schedule, from_a_thread, order):
    """It ticked once a second for ever, in no list."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        await clock.travel(0)
        waiting = len(s._core.queue)
        job = s.add(nothing, "0 0 1 1 *")
        verbs = {
            "remove": job.remove,
            "update": lambda: job.update(schedule=schedule),
            "pause": job.pause,
            "resume": job.resume,
        }

        def play():
            for verb in order.split(", "):
                with suppress(JobNotFound):  # what comes after its removal is refused
                    verbs[verb]()

        if from_a_thread:
            in_a_thread(play)
        else:
            play()
        await clock.travel(3)
        assert events.starts() == []
        assert s.jobs() == []
        assert len(s._core.queue) == waiting


@pytest.mark.parametrize("schedule", ["@every 1h", "0 * * * *"])
async def test_a_first_start_given_as_datetime_survives_pause_and_resume(clock, schedule):
    """It was once forgotten: the job started within the hour."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, schedule, start=clock.now() + timedelta(days=2))
        planned = job.next_start
        await clock.travel(60)
        job.pause()
        await clock.travel(60)
        job.resume()
        assert job.next_start == planned


async def test_a_yes_is_no_priority_whatever_others_have_given(clock):
    """True equals 1, and was once taken for it once somebody had given that."""
    s = Scheduler(clock=clock)
    s.add(nothing, EVERY_SECOND, priority=1)
    with pytest.raises(InvalidJob):
        s.add(nothing, EVERY_SECOND, priority=True)
    s.add(nothing, EVERY_SECOND, priority=1.0)


def test_options_of_jobs_that_have_gone_are_not_kept_for_ever(clock):
    """Who needs one limit per host comes by many hosts in a year."""
    s = Scheduler(limits={"host:*": 1}, clock=clock)
    for number in range(3_000):
        s.add(nothing, EVERY_SECOND, needs=f"host:{number}").remove()
    assert len(s._policies) <= 1_000


# -- the clock -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.4, -0.4, 0.05, -0.05])
async def test_many_small_steps_of_the_clock_do_not_add_up(clock, events, step):
    """A calendar start stays within a second of the wall clock, and what is small by itself is no jump."""
    wall = []
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def note():
            wall.append(clock.wall())

        s.add(note, "* * * * *", id="calendar")
        s.add(nothing, "@every 60s", id="interval")
        for _ in range(180):
            await clock.travel(10)
            clock.step(step)
        dues = [event.due.timestamp() for event in events.of(RunStarted, job_id="calendar")]
        assert dues == [dues[0] + 60 * number for number in range(len(dues))]
        assert len(dues) >= 26
        assert all(-1e-3 <= now - due < 1 for now, due in zip(wall, dues, strict=True))
        newest = events.of(RunStarted, job_id="interval")[-1]
        assert newest.started - newest.due < timedelta(seconds=1)
        assert events.of(ClockJumped) == []


# -- being cancelled, and listeners ----------------------------------------------------------------------------------


async def test_being_cancelled_while_it_is_entered_leaves_the_caller_in_order(clock):
    """The event loop's stack of scopes was once corrupt afterwards; trio died of it."""
    s = Scheduler(clock=clock)
    entered = False
    with anyio.move_on_after(0) as scope:
        async with s:
            entered = True
    assert scope.cancelled_caught
    assert not entered
    assert s.state is SchedulerState.STOPPED
    await checkpoint()
    with anyio.move_on_after(3600) as scope:
        await checkpoint()
    assert not scope.cancelled_caught


async def test_a_listener_that_raises_a_cancellation_hurts_nobody(clock, events, caplog):
    """`future.result()` of a cancelled future does: units were lost by it, and the scheduler never stopped."""

    def rude(event):
        raise asyncio.CancelledError

    async with Scheduler(limit=2, clock=clock) as s:
        s.listen(rude)
        s.listen(events)
        s.add(nothing, EVERY_SECOND)
        s.add(clock.sleep, EVERY_SECOND, args=(0.1,))
        await clock.travel(10.5)
        assert len(events.of(RunEnded)) == 20
        assert s.statistics().active_tasks == 0
    assert "a listener raised on RunEnded" in caplog.text


async def test_a_listener_that_is_added_twice_is_ended_one_by_one(clock):
    """The end of one once ended both."""
    told = []
    s = Scheduler(clock=clock)
    end_first, end_second = s.listen(told.append), s.listen(told.append)
    s.add(nothing, EVERY_SECOND)
    assert len(told) == 2
    end_first()
    end_first()
    s.add(nothing, EVERY_SECOND)
    assert len(told) == 3
    end_second()
    s.add(nothing, EVERY_SECOND)
    assert len(told) == 3


async def test_statistics_may_be_asked_for_from_another_thread_at_any_time(clock):
    """Members of families come and go meanwhile."""
    done, errors, asked = threading.Event(), [], [0]

    async def visit():
        await checkpoint()

    async with Scheduler(limit=20, limits={"server:*": 1}, clock=clock) as s:

        def ask():
            try:
                while not done.is_set() and asked[0] < 100_000:
                    s.statistics()
                    asked[0] += 1
            except RuntimeError as exc:
                errors.append(exc)

        for number in range(200):
            s.add(visit, EVERY_SECOND, needs=f"server:{number}")
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        thread = threading.Thread(target=ask)
        thread.start()
        try:
            await clock.travel(10)
        finally:
            done.set()
            thread.join()
            sys.setswitchinterval(interval)
    assert errors == []
    assert asked[0] > 0


async def test_state_of_a_job_without_start_is_that_of_its_pause(clock):
    """A pause in the turn of a retry leaves it DISABLED and without a next start."""
    async with Scheduler(clock=clock) as s:
        job = s.add(fail, "@every 1h", start="now", retry=Retry.constant("5s"))
        await clock.travel(1)
        clock.advance(10)
        in_a_thread(job.pause)
        await clock.travel(1)
        assert job.state is JobState.DISABLED
        assert job.next_start is None
