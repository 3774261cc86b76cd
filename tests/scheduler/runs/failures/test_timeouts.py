"""The end of a run's time."""

import anyio
import pytest

from kit import at
from schedule import Every
from scheduler import JobState, MissedReason, Outcome, RunAbandoned, RunEnded, Scheduler, Subtask
from timerqueue.testing import START

EVERY_MINUTE = Every("1m", anchor=START)


async def test_a_run_is_cancelled_when_its_time_is_over(clock, events):
    """The outcome is TIMED_OUT, after exactly that time, and says how long it was."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, EVERY_MINUTE, args=(3600,), timeout="5s")
        await clock.travel(70)
        (ended,) = events.of(RunEnded)
        assert ended.outcome is Outcome.TIMED_OUT
        assert ended.duration == pytest.approx(5)
        assert ended.error == "took longer than its timeout of 5 s"
        assert job.statistics().timeouts == job.statistics().failures == 1
        assert s.statistics().active_tasks == 0


async def test_a_run_that_ends_in_time_is_left_alone(clock, events):
    """Its timer is taken out of the heap."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, EVERY_MINUTE, args=(4.9,), timeout="5s")
        await clock.travel(200)
        assert set(events.outcomes()) == {Outcome.SUCCEEDED}


async def test_time_that_is_waited_for_room_does_not_count(clock, events):
    """The clock of a run starts with the run."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, EVERY_MINUTE, id="hog", args=(30,))
        s.add(clock.sleep, EVERY_MINUTE, id="waits", args=(4,), timeout="5s")
        await clock.travel(100)
        assert events.outcomes("waits") == [Outcome.SUCCEEDED]


async def test_the_timeout_is_for_the_run_with_all_its_subtasks(clock, events):
    """Those that run are cancelled and those that wait are dropped."""
    begun = []
    async with Scheduler(limit=2, clock=clock) as s:
        s.listen(events)

        async def child(number):
            begun.append(number)
            await clock.sleep(4)

        async def parent():
            await clock.sleep(2)
            return [Subtask(child, number) for number in range(5)]

        s.add(parent, EVERY_MINUTE, timeout="7s")
        await clock.travel(80)
        assert events.outcomes() == [Outcome.TIMED_OUT]
        assert begun == [0, 1, 2, 3]
        assert s.statistics().waiting_tasks == s.statistics().active_tasks == 0


async def test_a_subtask_may_have_a_timeout_of_its_own(clock, events):
    """It ends the run, and the error says whose time it was."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def parent():
            return Subtask(clock.sleep, 3600, timeout="3s")

        s.add(parent, EVERY_MINUTE, timeout="50s")
        await clock.travel(70)
        (ended,) = events.of(RunEnded)
        assert ended.outcome is Outcome.TIMED_OUT
        assert ended.duration == pytest.approx(3)
        assert "3 s" in ended.error


async def test_a_run_may_tidy_up_after_its_timeout(clock, events):
    """Meanwhile the job is TERMINATING, its unit is held, and the next tick is skipped."""
    async with Scheduler(clock=clock, kill_after="10m") as s:
        s.listen(events)

        async def tidy():
            try:
                await clock.sleep(3600)
            finally:
                with anyio.CancelScope(shield=True):
                    await clock.sleep(90)

        job = s.add(tidy, EVERY_MINUTE, timeout="5s")
        await clock.travel(66)
        assert job.state is JobState.TERMINATING
        assert s.statistics().active_tasks == 1
        await clock.travel(90)
        assert job.state is JobState.SCHEDULED
        assert events.outcomes() == [Outcome.TIMED_OUT]
        assert events.missed() == [(1, MissedReason.OVERLAP)]


async def test_a_task_that_ignores_its_cancellation_is_given_up(clock, events):
    """Its units are free after `kill_after`, the job goes on, and the event says so."""
    async with Scheduler(limit=1, clock=clock, kill_after="2s") as s:
        s.listen(events)

        async def deaf():
            while True:
                try:
                    with anyio.CancelScope(shield=True):
                        await clock.sleep(100)
                except anyio.get_cancelled_exc_class():
                    pass

        job = s.add(deaf, EVERY_MINUTE, id="deaf", timeout="5s")
        await clock.travel(67)
        assert events.of(RunAbandoned) == [RunAbandoned("deaf", at(60), 2.0)]
        assert events.outcomes() == [Outcome.TIMED_OUT]
        assert s.statistics().active_tasks == 0
        assert job.state is JobState.SCHEDULED
        await clock.travel(54)
        assert len(events.starts()) == 2
        s.stop(grace=0)
        await clock.travel(500)


async def test_an_error_while_it_is_cancelled_does_not_change_the_outcome(clock, events):
    """It timed out; what it raised then is kept as the traceback."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def clumsy():
            try:
                await clock.sleep(3600)
            finally:
                raise ZeroDivisionError

        s.add(clumsy, EVERY_MINUTE, timeout="5s")
        await clock.travel(70)
        (ended,) = events.of(RunEnded)
        assert ended.outcome is Outcome.TIMED_OUT
        assert "ZeroDivisionError" in ended.traceback


async def test_a_result_that_comes_too_late_starts_no_subtasks(clock, events):
    """A task that swallows its cancellation and goes on as if nothing were has timed out all the same."""
    begun = []

    async def child():
        begun.append(1)

    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def swallows():
            with anyio.CancelScope(shield=True):
                await clock.sleep(6)
            return Subtask(child)

        s.add(swallows, EVERY_MINUTE, timeout="5s")
        await clock.travel(70)
        assert events.outcomes() == [Outcome.TIMED_OUT]
        assert begun == []


async def test_a_timeout_disturbs_no_other_run(clock, events):
    """Only the worker of the one is cancelled."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        for number in range(10):
            s.add(clock.sleep, EVERY_MINUTE, id=f"{number}", args=(10,), timeout=f"{number + 5.5}s")
        await clock.travel(75)
        timed_out = {e.job_id for e in events.of(RunEnded) if e.outcome is Outcome.TIMED_OUT}
        assert timed_out == {"0", "1", "2", "3", "4"}
        assert len(events.of(RunEnded)) == 10


async def test_after_a_timeout_the_next_run_on_the_same_worker_is_whole(clock, events):
    """A cancelled worker is replaced, so no later run inherits the cancellation."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, EVERY_MINUTE, id="slow", args=(30,), timeout="1s")
        s.add(clock.sleep, EVERY_MINUTE, id="next", args=(2,))
        await clock.travel(300)
        assert set(events.outcomes("slow")) == {Outcome.TIMED_OUT}
        assert events.outcomes("next") == [Outcome.SUCCEEDED] * 4
        s.stop(grace=0)
