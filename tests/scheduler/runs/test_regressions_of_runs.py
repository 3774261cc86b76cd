"""Defects of runs, retries, deadlines and backlogs that a hostile review found: each stays fixed."""

import threading
from datetime import timedelta

import anyio
import pytest
from anyio.lowlevel import checkpoint

from kit import T0, nothing, relative, since_start, until
from schedule import Every, Missed
from scheduler import (
    InvalidJob,
    JobState,
    MissedReason,
    Outcome,
    Overlap,
    Retry,
    RunAbandoned,
    RunEnded,
    RunMissed,
    RunStarted,
    Scheduler,
    Subtask,
    current_run,
)
from timerqueue.testing import START

EVERY_SECOND = Every("1s", anchor=START)
EVERY_TEN = Every("10s", anchor=START)


async def fail():
    """Fail without waiting."""
    raise ValueError("boom")


def in_a_thread(func):
    """Call it in another thread while the loop does not move."""
    thread = threading.Thread(target=func)
    thread.start()
    thread.join()


class Tidy:
    """A task that works for ever, and needs a second of shielded clean-up when it is cancelled."""

    def __init__(self, clock):
        self.clock = clock
        self.cleaned = []

    async def __call__(self):
        try:
            await self.clock.sleep(10_000)
        finally:
            with anyio.CancelScope(shield=True):
                await self.clock.sleep(1)
                self.cleaned.append(round(self.clock.wall() - T0, 6))


# -- After -----------------------------------------------------------------------------------------------------------


async def test_a_start_counted_from_the_end_goes_on_after_one_that_was_found_too_late(clock, events):
    """With Missed.SKIP such a job once stayed in the list for ever, without a next start."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, "@after 10s", missed=Missed.SKIP)
        await clock.travel(1)
        clock.advance(60)
        await clock.travel(0)
        assert events.missed() == [(1, MissedReason.LATE)]
        assert job.next_start == clock.now() + timedelta(seconds=10)
        await clock.travel(100)
        assert len(events.starts()) == 11


@pytest.mark.parametrize("retry", [None, Retry.constant("3s", max_retries=50)])
async def test_a_start_counted_from_the_end_goes_on_after_a_thread_that_was_left_behind(clock, events, retry):
    """While the thread goes on nothing may start; afterwards the job is as before."""
    gate, begun = threading.Event(), threading.Event()

    def stuck():
        begun.set()
        gate.wait()

    async with Scheduler(clock=clock, kill_after=1) as s:
        s.listen(events)
        job = s.add(stuck, "@after 10s", timeout="1s", retry=retry)
        try:
            await until(begun.is_set)
            await clock.travel(60)
            assert events.outcomes() == [Outcome.TIMED_OUT]
            assert {reason for _, reason in events.missed()} == {MissedReason.OVERLAP}
            assert job.next_start is not None
        finally:
            job.update(timeout=None)
            gate.set()
        await until(lambda: all(thread.has_ended for thread in job.threads or ()))
        begun.clear()
        await clock.travel(10)
        await until(begun.is_set)
        await until(lambda: len(events.of(RunEnded)) >= 2)
        assert events.outcomes()[:2] == [Outcome.TIMED_OUT, Outcome.SUCCEEDED]
        await clock.travel(0)
        assert job.next_start is not None


# -- deadlines -------------------------------------------------------------------------------------------------------


async def test_the_timeout_of_a_second_subtask_does_not_cut_the_clean_up_short(clock, events):
    """A run that is being cancelled has all of `kill_after` for it."""
    tidy = Tidy(clock)

    async def parent():
        return [Subtask(tidy, timeout=1.0), Subtask(tidy, timeout=1.1), Subtask(tidy, timeout=1.5)]

    async with Scheduler(clock=clock, kill_after=5) as s:
        s.listen(events)
        s.add(parent, "@every 1h", start="now")
        await clock.travel(10)
        assert tidy.cleaned == [2.0, 2.0, 2.0]
        assert events.of(RunAbandoned) == []
        assert events.outcomes() == [Outcome.TIMED_OUT]


async def test_removing_a_job_leaves_subtasks_with_a_timeout_their_clean_up(clock, events):
    """The timeout comes while the run is being cancelled, and means nothing any more."""
    tidy = Tidy(clock)

    async def parent():
        return Subtask(tidy, timeout=2)

    async with Scheduler(clock=clock, kill_after=5) as s:
        s.listen(events)
        job = s.add(parent, "@every 1h", start="now")
        await clock.travel(1.5)
        job.remove()
        await clock.travel(10)
        assert tidy.cleaned == [2.5]
        assert events.of(RunAbandoned) == []
        assert events.outcomes() == [Outcome.CANCELLED]


async def test_a_timeout_in_the_turn_of_the_tick_that_replaces_does_not_cut_the_clean_up_short(clock, events):
    """Both come at the same instant: the run is cancelled once, and has its time to tidy up."""
    tidy = Tidy(clock)
    async with Scheduler(clock=clock, kill_after=5) as s:
        s.listen(events)
        s.add(tidy, EVERY_TEN, timeout=10, overlap=Overlap.REPLACE)
        await clock.travel(25)
        assert tidy.cleaned == [21.0]
        assert events.of(RunAbandoned) == []
        assert relative(events.starts()) == [10, 21]
        s.stop(grace=0)
        await clock.travel(10)


async def test_what_ignores_its_cancellation_is_given_up_after_kill_after_and_no_sooner(clock, events):
    """With or without timeouts of subtasks beside it."""
    tidy = Tidy(clock)
    async with Scheduler(clock=clock, kill_after=0.5) as s:
        s.listen(events)
        s.add(lambda: [Subtask(tidy, timeout=1.0), Subtask(tidy, timeout=1.4)], "@every 1h", start="now", inline=True)
        await clock.travel(1.45)
        assert events.of(RunAbandoned) == []
        await clock.travel(0.1)
        assert len(events.of(RunAbandoned)) == 1
        assert events.outcomes() == [Outcome.TIMED_OUT]
        await clock.travel(5)


async def test_a_run_knows_its_own_deadline_whatever_is_updated_meanwhile(clock, events):
    """It once said None, and was cut off all the same."""
    seen = []
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def task():
            job.update(timeout=None)
            await checkpoint()
            seen.append(current_run().deadline)
            await clock.sleep(100)

        job = s.add(task, "@every 1h", start="now", timeout=10)
        await clock.travel(20)
        assert seen == [START + timedelta(seconds=10)]
        assert events.outcomes() == [Outcome.TIMED_OUT]
        assert "10 s" in events.of(RunEnded)[0].error


# -- retries ---------------------------------------------------------------------------------------------------------


async def test_a_retry_that_is_due_in_the_turn_of_a_pause_does_not_start(clock, events):
    """The pause comes from another thread, and first in the turn."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(fail, "@every 1h", start="now", retry=Retry.constant("5s"))
        await clock.travel(1)
        clock.advance(10)
        in_a_thread(job.pause)
        await clock.travel(60)
        assert len(events.starts()) == 1
        assert job.again is None
        assert job.state is JobState.DISABLED


async def test_a_retry_that_is_due_in_the_turn_of_the_removal_does_not_start(clock, events):
    """Nor is it left in the heap."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        await clock.travel(0)
        waiting = len(s._core.queue)
        job = s.add(fail, "@every 1h", start="now", retry=Retry.constant("5s"))
        await clock.travel(1)
        clock.advance(10)
        in_a_thread(job.remove)
        await clock.travel(60)
        assert len(events.starts()) == 1
        assert len(s._core.queue) == waiting


async def test_a_regular_start_in_the_turn_of_a_retry_takes_its_place(clock, events):
    """Both are due when the loop comes back: one run, and it is the regular one's first attempt."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(fail, EVERY_TEN, retry=Retry.constant("5s"))
        await clock.travel(11)
        assert relative(events.starts()) == [10]
        clock.advance(10)
        await clock.travel(0)
        ticks = [(round(since_start(start.due)), start.attempt) for start in events.of(RunStarted)]
        assert ticks in ([(10, 1), (20, 1)], [(10, 1), (10, 2), (20, 1)])
        assert len(s.jobs()[0].runs) <= 1


async def test_beside_other_runs_a_retry_that_was_announced_takes_place(clock, events):
    """With Overlap.ALLOW each later failure once put it off, for ever."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def slow():
            await clock.sleep(5)
            raise ValueError

        s.add(
            slow,
            Every("2s", anchor=START),
            overlap=Overlap.ALLOW,
            retry=Retry.constant("7s", past_next_start=True),
        )
        await clock.travel(29)
        announced = [round(since_start(end.retry_at), 3) for end in events.of(RunEnded) if end.retry_at is not None]
        took_place = [round(since_start(start.started), 3) for start in events.of(RunStarted) if start.attempt > 1]
        assert took_place
        assert [at for at in announced if at < 29] == took_place
        s.stop(grace=0)


# -- overlaps and backlogs -------------------------------------------------------------------------------------------


async def test_replace_does_not_starve_while_it_waits_for_room(clock, events):
    """A tick that waits keeps its place in line, and stands for the newer one."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        for number in range(9):
            s.add(clock.sleep, EVERY_SECOND, id=f"{number}", args=(0.5,))
        job = s.add(clock.sleep, EVERY_SECOND, id="replaces", args=(0.5,), overlap=Overlap.REPLACE)
        await clock.travel(60.2)
        runs = [each.statistics().runs for each in s.jobs()]
        assert job.statistics().runs >= 8
        assert max(runs) - min(runs) <= 3
        assert Outcome.SUCCEEDED in {event.outcome for event in events.of(RunEnded, job_id="replaces")}
        s.stop(grace=0)


def test_replace_and_all_cannot_be_had_together(clock):
    """One drops what the other makes up for: of ten ticks once one ran."""
    s = Scheduler(clock=clock)
    with pytest.raises(InvalidJob, match="choose one of them"):
        s.add(nothing, EVERY_SECOND, overlap=Overlap.REPLACE, missed=Missed.ALL)
    job = s.add(nothing, EVERY_SECOND, overlap=Overlap.REPLACE)
    with pytest.raises(InvalidJob, match="choose one of them"):
        job.update(missed=Missed.ALL)
    assert job.policy.missed is Missed.LATEST


async def test_a_backlog_is_bounded_by_what_the_job_was_updated_to(clock, events):
    """It once grew without end after the number was made smaller."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, EVERY_SECOND, args=(10_000,), missed=Missed.ALL, catch_up=50)
        await clock.travel(40)
        assert len(job.backlog) == 39
        job.update(missed=Missed.LATEST, overlap=Overlap.QUEUE)
        await clock.travel(60)
        assert len(job.backlog) == 1
        assert job.statistics().missed == 98
        assert [round(since_start(event.first_due)) for event in events.of(RunMissed)] == list(range(2, 100))
        s.stop(grace=0)


async def test_a_job_is_running_while_one_of_its_runs_is(clock):
    """TERMINATING once stuck to it after another of its runs had been cut off."""
    async with Scheduler(clock=clock) as s:
        tidy = Tidy(clock)
        job = s.add(tidy, EVERY_TEN, overlap=Overlap.ALLOW, timeout=12)
        await clock.travel(22.5)
        assert len(job.runs) == 2
        assert job.state is JobState.TERMINATING
        await clock.travel(1)
        assert len(job.runs) == 1
        assert job.state is JobState.RUNNING
        s.stop(grace=0)
        await clock.travel(5)


# -- nothing is silent -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["remove", "pause", "stop"])
async def test_ticks_that_wait_for_a_run_and_are_dropped_are_told_with_the_reason(clock, events, verb):
    """They once vanished: no run, no event, no count."""
    reason = {"remove": MissedReason.REMOVED, "pause": MissedReason.PAUSED, "stop": MissedReason.STOPPED}[verb]
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, EVERY_TEN, id="a", args=(10_000,), missed=Missed.ALL)
        await clock.travel(45)
        if verb == "stop":
            s.stop(grace=0)
        else:
            getattr(job, verb)()
        await clock.travel(1)
        dropped = events.of(RunMissed)
        assert {event.reason for event in dropped} == {reason}
        assert relative(event.first_due for event in dropped) == [20, 30, 40]
        assert job.statistics().missed == 3
        s.stop(grace=0)


@pytest.mark.parametrize("verb", ["remove", "stop"])
async def test_a_run_that_waits_for_room_and_is_dropped_is_told_with_the_reason(clock, events, verb):
    """It had not begun, so its tick is missed."""
    reason = {"remove": MissedReason.REMOVED, "stop": MissedReason.STOPPED}[verb]
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, "@every 1h", id="holds", args=(10_000,), start="now")
        await clock.travel(1)
        job = s.add(nothing, "@every 1h", id="waits", start="now")
        await clock.travel(1)
        if verb == "stop":
            s.stop(grace=0)
        else:
            job.remove()
        await clock.travel(1)
        assert events.missed("waits") == [(1, reason)]
        assert events.starts("waits") == []
        s.stop(grace=0)


@pytest.mark.parametrize("who", ["a job", "a listener"])
async def test_no_run_begins_after_stop_has_returned(clock, events, who):
    """What was due in the same turn, and had room already, is missed."""
    s = Scheduler(limit=1_000, clock=clock)
    s.listen(events)

    async def stop():
        s.stop(grace="1s")

    s.add(stop if who == "a job" else nothing, EVERY_SECOND, id="first")
    if who == "a listener":
        s.listen(lambda event: s.stop(grace="1s") if isinstance(event, RunStarted) else None)
    for number in range(99):
        s.add(nothing, EVERY_SECOND, id=f"{number}")
    async with anyio.create_task_group() as group:
        group.start_soon(s.run)
        await clock.travel(5)
    assert len(events.starts()) == 1
    assert len(events.of(RunMissed)) == 99
    assert set(events.missed()) == {(1, MissedReason.STOPPED)}


# -- the rest --------------------------------------------------------------------------------------------------------


async def test_ten_thousand_results_come_back_in_full(clock):
    """Collecting them once cost time that grew with the square of their number."""

    async def one(number):
        return number

    async def parent():
        return [Subtask(one, number) for number in range(10_000)]

    s = Scheduler(clock=clock, blocked_after=None)
    s.add(parent, "@every 1h", id="a")
    ended = await s.run_once()
    assert sorted(ended["a"].results) == list(range(10_000))


@pytest.mark.parametrize("make_scope", [anyio.CancelScope, lambda: anyio.move_on_after(3600)])
async def test_a_job_that_leaves_a_cancel_scope_open_hurts_no_other(clock, events, make_scope):
    """The whole scheduler once ended with an exception group."""
    kept = []

    async def leak():
        await checkpoint()
        scope = make_scope()
        scope.__enter__()
        kept.append(scope)

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(leak, EVERY_SECOND, id="leak")
        for number in range(3):
            s.add(clock.sleep, EVERY_SECOND, id=f"{number}", args=(0.5,))
        await clock.travel(10.9)
        for number in range(3):
            assert events.outcomes(f"{number}") == [Outcome.SUCCEEDED] * 10
        assert len(events.starts("leak")) == 10
