"""What becomes of a tick that finds the last run of its job still going."""

import anyio
import pytest

from kit import relative
from schedule import Every, Missed
from scheduler import JobState, MissedReason, Outcome, Overlap, Retry, RunEnded, RunMissed, Scheduler
from timerqueue.testing import START

EVERY_SECOND = Every("1s", anchor=START)


async def test_skip_omits_what_comes_meanwhile_and_counts_it(clock, events):
    """The default: a job never overlaps itself, and keeps to its grid."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, EVERY_SECOND, id="slow", args=(2.5,))
        await clock.travel(7.5)
        assert relative(events.starts()) == [1, 4, 7]
        assert relative(event.first_due for event in events.of(RunMissed)) == [2, 3, 5, 6]
        assert set(events.missed()) == {(1, MissedReason.OVERLAP)}
        assert job.statistics().missed == s.statistics().missed == 4
        await clock.travel(2)


async def test_queue_keeps_one_and_omits_the_others(clock, events):
    """The newest tick waits for the end of the run and then starts at once."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, EVERY_SECOND, args=(2.3,), overlap=Overlap.QUEUE)
        await clock.travel(5.8)
        assert relative(events.starts()) == [1, 3.3, 5.6]
        assert relative(event.due for event in events.of(RunEnded)) == [1, 3]
        assert relative(event.first_due for event in events.of(RunMissed)) == [2, 4]
        s.stop(grace=0)


async def test_allow_runs_so_many_beside_each_other(clock, events):
    """The next one over the number is omitted."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, EVERY_SECOND, args=(3.5,), overlap=Overlap.ALLOW, max_running=2)
        await clock.travel(2)
        assert s.statistics().active_tasks == 2
        assert s.statistics().active_jobs == 1
        await clock.travel(3)
        assert relative(events.starts()) == [1, 2, 5]
        assert relative(event.first_due for event in events.of(RunMissed)) == [3, 4]
        assert job.state is JobState.RUNNING
        await clock.travel(1)
        s.stop(grace=0)


async def test_allow_without_a_number_allows_ten(clock):
    """Unbounded is never the default."""
    async with Scheduler(clock=clock) as s:
        s.add(clock.sleep, EVERY_SECOND, args=(3600,), overlap=Overlap.ALLOW)
        await clock.travel(15)
        assert s.statistics().active_tasks == 10
        s.stop(grace=0)


async def test_replace_cancels_the_run_and_starts_the_new_one_after_it(clock, events):
    """Never two at a time: the new run waits until the old one has ended."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def slow():
            try:
                await clock.sleep(3600)
            finally:
                with anyio.CancelScope(shield=True):
                    await clock.sleep(0.25)

        s.add(slow, EVERY_SECOND, overlap=Overlap.REPLACE)
        await clock.travel(2.5)
        assert relative(events.starts()) == [1, 2.25]
        assert relative(event.due for event in events.of(RunEnded)) == [1]
        assert events.outcomes() == [Outcome.CANCELLED]
        assert events.of(RunEnded)[0].error == "cancelled: replaced"
        s.stop(grace=0)
        await clock.travel(1)


async def test_replace_starts_only_the_newest(clock, events):
    """A run that is slow to end is followed by one run, however many ticks came meanwhile."""
    async with Scheduler(clock=clock, kill_after="1h") as s:
        s.listen(events)

        async def deaf():
            with anyio.CancelScope(shield=True):
                await clock.sleep(3.5)

        s.add(deaf, EVERY_SECOND, overlap=Overlap.REPLACE)
        await clock.travel(5.2)
        assert relative(events.starts()) == [1, 4.5]
        assert [relative([event.due]) for event in events.of(RunEnded)] == [[1]]
        assert sum(count for count, _ in events.missed()) == 2
        s.stop(grace=0)
        await clock.travel(5)


@pytest.mark.parametrize("overlap", list(Overlap))
async def test_every_tick_is_a_run_or_is_missed(clock, events, overlap):
    """Whatever the rule, none is lost and none is counted twice."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, EVERY_SECOND, args=(2.3,), overlap=overlap, max_running=2)
        await clock.travel(20)
        job.pause()
        await clock.travel(10)
    counts = job.statistics()
    waited = 1 if overlap in (Overlap.QUEUE, Overlap.REPLACE) else 0
    assert 20 - waited <= counts.runs + counts.missed <= 20
    assert counts.crashes == 0


async def test_a_run_that_waits_for_room_stands_for_the_newer_tick(clock, events):
    """Ticks do not pile up before a full limit: one waits, the older ones are missed for want of room."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        gate = anyio.Event()
        s.add(gate.wait, "@every 1h", id="hog", start="now")
        s.add(anyio.sleep, EVERY_SECOND, id="late", args=(0,))
        await clock.travel(3.5)
        assert s.statistics().waiting_tasks == 1
        assert events.missed("late") == [(1, MissedReason.NO_ROOM)] * 2
        gate.set()
        await clock.travel(0)
        assert relative(event.due for event in events.of(RunEnded, job_id="late")) == [3]


async def test_the_oldest_tick_goes_although_a_retry_waits_beside_it(clock, events):
    """The newest may still run: what is due and has no run is the newest end of the ticks."""

    async def fails():
        await clock.sleep(1)
        raise ValueError

    async with Scheduler(limits={"x": 1}, clock=clock) as s:
        s.listen(events)
        every = Every("10s", anchor=START)
        s.add(clock.sleep, "@every 1h", args=(34,), id="hog", needs="x", start="now")
        s.add(fails, every, id="job", needs="x", overlap=Overlap.QUEUE, retry=Retry.constant("3s", max_retries=1))
        await clock.travel(15)
        s.add(clock.sleep, "@every 1h", args=(23,), id="hog too", needs="x", start="now")
        await clock.travel(43)
        assert relative(event.due for event in events.of(RunEnded, job_id="job")) == [20]
        assert relative(event.first_due for event in events.of(RunMissed)) == [10, 30, 40]
        await clock.travel(3)
        assert relative(event.due for event in events.of(RunEnded, job_id="job")) == [20, 50]
        s.stop(0)


async def test_missed_all_keeps_every_tick_of_an_overrunning_job(clock, events):
    """Up to `catch_up` of them wait for the end of the run, oldest first."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        gate = anyio.Event()
        s.add(gate.wait, EVERY_SECOND, missed=Missed.ALL, catch_up=3)
        await clock.travel(6)
        gate.set()
        await clock.travel(0)
        assert relative(event.due for event in events.of(RunEnded)) == [1, 4, 5, 6]
        assert relative(event.first_due for event in events.of(RunMissed)) == [2, 3]


async def test_run_now_obeys_the_overlap_rule(clock, events):
    """A job that is running is not run a second time by hand."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, "@every 1h", args=(2,), start="now")
        await clock.travel(1)
        job.run_now()
        await clock.travel(5)
        assert events.outcomes() == [Outcome.SUCCEEDED]
        assert events.missed() == [(1, MissedReason.OVERLAP)]


async def test_a_place_that_becomes_free_is_for_the_tick_that_has_waited_longest(clock, events):
    """Not for the next one: what waits for the end of a run starts as soon as one of several has ended."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, EVERY_SECOND, args=(2.5,), overlap=Overlap.ALLOW, max_running=2, missed=Missed.ALL)
        await clock.travel(9)
        assert relative(events.starts()) == [1, 2, 3.5, 4.5, 6, 7, 8.5]
        assert relative(event.due for event in events.of(RunEnded)) == [1, 2, 3, 4, 5]
        assert events.missed() == []
        s.stop(0)
