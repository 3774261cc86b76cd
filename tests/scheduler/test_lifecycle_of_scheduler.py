"""PRE_RUNNING, RUNNING, STOPPED: once, and what becomes of the runs."""

import itertools
import math
import threading

import anyio
import pytest
from anyio.to_thread import run_sync

from kit import PATIENCE, nothing, since_start
from schedule import Every
from scheduler import (
    AlreadyStopped,
    JobRemoved,
    MissedReason,
    Outcome,
    Retry,
    RunAbandoned,
    RunEnded,
    RunMissed,
    Scheduler,
    SchedulerStarted,
    SchedulerState,
    SchedulerStopped,
    Subtask,
)
from scheduler.stores.memory import MemoryStore
from timerqueue import LifecycleError
from timerqueue.testing import START, ManualClock

EVERY_SECOND = Every("1s", anchor=START)


async def test_it_runs_once_from_pre_running_to_stopped(clock, events):
    """There is no way back, and listeners are told of both steps."""
    s = Scheduler(clock=clock)
    s.listen(events)
    assert s.state is SchedulerState.PRE_RUNNING
    async with s:
        assert s.state is SchedulerState.RUNNING
    assert s.state is SchedulerState.STOPPED
    assert [type(event) for event in events] == [SchedulerStarted, SchedulerStopped]
    with pytest.raises(LifecycleError, match="make a new one"):
        await s.run()


async def test_a_running_scheduler_cannot_be_run_again(clock):
    """The second caller gets an error and the first goes on."""
    async with Scheduler(clock=clock) as s:
        with pytest.raises(LifecycleError, match="running"):
            await s.run()
        assert s.state is SchedulerState.RUNNING


@pytest.mark.parametrize("end", ["left", "stopped"])
async def test_entering_a_second_time_is_a_plain_error(clock, end):
    """Not one in a group, and nothing hangs."""
    s = Scheduler(clock=clock)
    if end == "stopped":
        s.stop()
    else:
        async with s:
            pass
    with pytest.raises(LifecycleError, match="make a new one"):
        async with s:
            pytest.fail("it cannot have been entered")


async def test_one_stopped_before_it_ran_never_runs(clock):
    """Stop comes first, and so it stays."""
    s = Scheduler(clock=clock)
    s.stop()
    assert s.state is SchedulerState.STOPPED
    with pytest.raises(LifecycleError):
        await s.run()


async def test_jobs_added_before_it_runs_start_with_it(clock, events):
    """What was due meanwhile is made up for by the job's rule, once."""
    s = Scheduler(clock=clock)
    s.listen(events)
    s.add(nothing, EVERY_SECOND, id="early")
    clock.advance(3.5)
    async with s:
        await clock.travel(0)
        assert events.outcomes("early") == [Outcome.SUCCEEDED]
        assert events.missed("early") == [(2, MissedReason.LATE)]
        await clock.travel(1)
        assert len(events.outcomes("early")) == 2


@pytest.mark.parametrize("verb", ["add", "run_now"])
async def test_nothing_can_be_started_after_stop(clock, verb):
    """The error says what to do, and nothing has changed."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, EVERY_SECOND, id="old")
    with pytest.raises(AlreadyStopped, match="make a new one"):
        s.add(nothing, EVERY_SECOND, id="new") if verb == "add" else job.run_now()
    assert [job.id for job in s.jobs()] == ["old"]


@pytest.mark.parametrize("verb", ["remove", "pause", "resume", "update"])
async def test_what_starts_nothing_is_harmless_after_stop(clock, verb):
    """A program that tidies up after the end meets no error."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, EVERY_SECOND)
    job.update(schedule="@every 5s") if verb == "update" else getattr(job, verb)()


async def test_a_run_may_end_within_the_grace(clock, events):
    """It succeeds, although the scheduler stops, and nobody was cut off."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, EVERY_SECOND, id="slow", args=(3,))
        await clock.travel(1)
        s.stop(grace="5s")
        await clock.travel(3)
    assert events.outcomes() == [Outcome.SUCCEEDED]
    assert events[-1].cut_off == ()


async def test_a_run_that_outlasts_the_grace_is_cut_off_and_reported(clock, events):
    """Its outcome is CANCELLED and its job is named in SchedulerStopped."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, EVERY_SECOND, id="slow", args=(3600,))
        s.add(clock.sleep, EVERY_SECOND, id="quick", args=(1,))
        await clock.travel(1)
        s.stop(grace="5s")
        await clock.travel(5)
    assert events.outcomes("slow") == [Outcome.CANCELLED]
    assert events.outcomes("quick") == [Outcome.SUCCEEDED]
    assert events[-1].cut_off == ("slow",)


async def test_only_the_first_stop_counts(clock, events):
    """A second one with another grace changes nothing."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, EVERY_SECOND, args=(4,))
        await clock.travel(1)
        s.stop(grace="5s")
        s.stop(grace=0)
        await clock.travel(4)
        s.stop(grace=0)
    assert events.outcomes() == [Outcome.SUCCEEDED]
    assert len(events.of(SchedulerStopped)) == 1


async def test_what_waits_for_room_when_it_stops_is_missed(clock, events):
    """A run that had no room yet gets none any more, and its reason is STOPPED."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, EVERY_SECOND, id="first", args=(2,))
        s.add(nothing, EVERY_SECOND, id="second")
        await clock.travel(1)
        s.stop(grace="5s")
        await clock.travel(2)
    assert events.outcomes() == [Outcome.SUCCEEDED]
    assert events.missed("second") == [(1, MissedReason.STOPPED)]


async def test_what_stop_ends_is_told_in_the_order_in_which_it_ends(clock, events):
    """First what never began, then what ends within the grace, then what is cut off; that all is over comes last."""
    async with Scheduler(limit=2, clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, EVERY_SECOND, id="slow", args=(3600,))
        s.add(clock.sleep, EVERY_SECOND, id="quick", args=(2,))
        s.add(nothing, EVERY_SECOND, id="waiting")
        await clock.travel(1)
        begun = len(events)
        s.stop(grace="5s")
        await clock.travel(5)
    told = [(type(event), getattr(event, "job_id", None)) for event in events[begun:]]
    assert told == [
        (RunMissed, "waiting"),
        (RunEnded, "quick"),
        (RunEnded, "slow"),
        (SchedulerStopped, None),
    ]


async def test_no_run_begins_within_the_grace(clock, events):
    """Neither a regular start, nor a retry, nor one by hand."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def fail():
            await clock.sleep(0.5)
            raise ValueError

        s.add(clock.sleep, EVERY_SECOND, id="slow", args=(4,))
        s.add(fail, "@every 1h", id="failing", retry=Retry.constant("1s"), start="now")
        s.add(nothing, EVERY_SECOND, id="quick")
        await clock.travel(1.2)
        s.stop(grace="5s")
        begun = len(events.starts())
        await clock.travel(5)
    assert len(events.starts()) == begun


async def test_subtasks_of_a_run_still_start_within_the_grace(clock, events):
    """They belong to a run that may end."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def parent():
            await clock.sleep(1)
            return Subtask(clock.sleep, 1)

        s.add(parent, "@every 1h", start="now")
        await clock.travel(0)
        s.stop(grace="5s")
        await clock.travel(2)
    assert events.outcomes() == [Outcome.SUCCEEDED]


async def test_leaving_async_with_waits_for_what_runs(clock, events):
    """The grace of a plain exit is five seconds."""
    async with anyio.create_task_group() as group, Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, EVERY_SECOND, args=(3,))
        await clock.travel(1)
        group.start_soon(clock.travel, 3)
    assert events.outcomes() == [Outcome.SUCCEEDED]


@pytest.mark.parametrize(
    ("length", "is_deaf", "outcome", "ends"),
    [
        (2, False, Outcome.SUCCEEDED, {3}),
        (100, False, Outcome.CANCELLED, {6}),
        (2, True, Outcome.SUCCEEDED, {3}),
        (100, True, Outcome.CANCELLED, {11, 101}),  # trio waits for the task that was given up, asyncio does not
    ],
)
async def test_leaving_async_with_lets_time_pass_that_is_moved_by_hand(length, is_deaf, outcome, ends, events):
    """For nobody else would: what runs may end within the grace, is cut off, or given up."""
    clock = ManualClock()

    async def work():
        with anyio.CancelScope(shield=is_deaf):
            await clock.sleep(length)

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(work, EVERY_SECOND)
        await clock.travel(1)
    assert events.outcomes() == [outcome]
    assert round(since_start(events[-1].at), 6) in ends
    assert len(events.of(RunAbandoned)) == (is_deaf and length > 10)


@pytest.mark.parametrize("others", [60, math.inf])
async def test_leaving_async_with_waits_in_real_time_for_what_is_real(others, events):
    """Time does not pass for the sake of somebody else who sleeps."""
    clock, release = ManualClock(), threading.Event()

    async def first_for_real():
        await run_sync(release.wait, 5)
        await clock.sleep(2)

    async with anyio.create_task_group() as group:
        group.start_soon(clock.sleep, others)
        async with Scheduler(clock=clock) as s:
            s.listen(events)
            s.add(first_for_real, EVERY_SECOND, id="a")
            await clock.travel(1)
            threading.Timer(0.02, release.set).start()
        group.cancel_scope.cancel()
    assert events.outcomes() == [Outcome.SUCCEEDED]
    assert since_start(events[-1].at) == pytest.approx(3)


async def test_an_error_in_the_body_of_async_with_comes_out_as_it_is(clock, events):
    """Not in a group, and runs are cancelled without a grace."""
    s = Scheduler(clock=clock)
    s.listen(events)
    s.add(clock.sleep, EVERY_SECOND, args=(3600,))

    async def body():
        async with s:
            await clock.travel(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await body()
    assert events.outcomes() == [Outcome.CANCELLED]
    assert s.state is SchedulerState.STOPPED


async def test_cancelling_run_from_outside_ends_everything(clock, events):
    """Whoever cancels the task of the scheduler finds its runs cancelled, not failed, and none left."""
    s = Scheduler(clock=clock)
    s.listen(events)
    s.add(clock.sleep, EVERY_SECOND, args=(3600,))
    async with anyio.create_task_group() as group:
        group.start_soon(s.run)
        await clock.travel(1)
        group.cancel_scope.cancel()
    assert s.state is SchedulerState.STOPPED
    assert events.outcomes() == [Outcome.CANCELLED]
    assert s.statistics().active_tasks == 0


async def test_it_can_be_stopped_from_any_thread(clock, events):
    """Eight threads stop it at once: it stops once."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, EVERY_SECOND, args=(1,))
        await clock.travel(1)
        barrier = threading.Barrier(8)

        def stop():
            barrier.wait()
            s.stop()

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(run_sync, stop)
        await clock.travel(1)
    assert events.outcomes() == [Outcome.SUCCEEDED]
    assert len(events.of(SchedulerStopped)) == 1


async def test_a_stop_that_another_thread_has_begun_before_it_ran_ends_it(clock):
    """Though it looked as if it did not run when that thread looked."""
    s = Scheduler(clock=clock)
    has_begun, stop = threading.Event(), s._lifecycle.stop
    s._lifecycle.stop = lambda: has_begun.wait(PATIENCE) and stop()
    thread = threading.Thread(target=s.stop)
    thread.start()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(s.run)
            await clock.travel(0)
            assert s.state is SchedulerState.RUNNING
            has_begun.set()
    thread.join()
    assert s.state is SchedulerState.STOPPED


async def test_calls_from_other_threads_while_it_stops_end_well(clock):
    """Each either takes effect or says that it is too late; nothing hangs, nothing else is raised."""
    told = []
    async with Scheduler(clock=clock) as s:
        barrier = threading.Barrier(5)

        def meddle(number):
            barrier.wait()
            for count in itertools.count():
                try:
                    job = s.add(nothing, EVERY_SECOND, id=f"{number}-{count}")
                    job.run_now()
                    job.pause()
                    job.resume()
                    job.update(priority=1)
                    s.resize(limits={"x": 1 + count})
                    job.remove()
                except AlreadyStopped:
                    told.append(number)
                    return

        def stop():
            barrier.wait()
            s.stop()

        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(run_sync, meddle, number)
            group.start_soon(run_sync, stop)
    assert sorted(told) == [0, 1, 2, 3]
    assert s.statistics().active_tasks == 0


async def test_a_run_that_ignores_the_end_is_abandoned(clock, events):
    """After `kill_after` it is given up; the scheduler ends once its code lets go."""
    async with Scheduler(clock=clock, kill_after="2s") as s:
        s.listen(events)
        gate = anyio.Event()

        async def deaf():
            with anyio.CancelScope(shield=True):
                await gate.wait()

        s.add(deaf, EVERY_SECOND, id="deaf")
        await clock.travel(1)
        s.stop(grace="1s")
        await clock.travel(3)
        assert events.of(RunAbandoned)[0].job_id == "deaf"
        assert events.outcomes() == [Outcome.CANCELLED]
        gate.set()
    assert events[-1].cut_off == ("deaf",)


async def test_stop_removes_no_job(clock, events):
    """The list can be looked at after the end."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, EVERY_SECOND, id="a")
    assert s.get("a") in s.jobs()
    assert not events.of(JobRemoved)


@pytest.mark.parametrize("kind", ["memory", "store"])
async def test_what_was_to_start_now_is_told_as_missed_when_the_scheduler_stops_first(clock, events, kind):
    """Its tick is not lost in silence, though maybe no turn of the loop comes between the two: trio draws lots."""
    for _ in range(20):
        async with Scheduler(clock=clock, store=None if kind == "memory" else MemoryStore()) as s:
            s.listen(events)
            await clock.travel(1)
            s.add(nothing, "@every 1h", start="now", durable=False)
            s.stop()
    assert len(events.outcomes()) + len(events.missed()) == 20
    assert set(events.missed()) <= {(1, MissedReason.STOPPED)}


async def test_what_another_thread_has_asked_for_just_before_the_stop_is_done(clock):
    """Nobody is told that it was not."""
    store = MemoryStore()
    async with Scheduler(clock=clock, store=store) as s:
        s.register("nothing", nothing)
        job = s.add("nothing", "@every 1h", id="a")
        await s.flush()
        thread = threading.Thread(target=lambda: [job.pause("by a thread"), job.update(priority=3), s.stop()])
        thread.start()
        thread.join()
    ((row, _),) = [each for chunk in store.load() for each in chunk]
    assert (row.paused, row.options) == ("by a thread", '{"priority":3}')
