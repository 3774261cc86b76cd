"""A start that is skipped has a record and no run; one that is superseded gives way to what the schedule says."""

import pytest

from kit import at, nothing, relative, since_start
from schedule import After, At, Every
from scheduler import (
    AlreadyStopped,
    JobFinished,
    JobNotFound,
    JobState,
    MissedReason,
    Outcome,
    Retry,
    RunMissed,
    Scheduler,
)
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START

EVERY = Every(100, anchor=START)


async def fail():
    """Fail at once."""
    raise ValueError


async def test_a_skipped_start_does_not_run_and_the_next_does(clock, events):
    """On its grid, as if nothing had been."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY, id="a")
        job.skip()
        assert job.next_start == at(200)
        await clock.travel(250)
        assert relative(events.starts()) == [200]
        (missed,) = events.of(RunMissed)
        assert (since_start(missed.first_due), missed.count, missed.reason) == (100, 1, MissedReason.SKIPPED)
        assert job.statistics().missed == 1


async def test_what_is_skipped_twice_leaves_out_two(clock, events):
    """Each with its own event."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        job.skip()
        job.skip()
        await clock.travel(350)
        assert relative(events.starts()) == [300]
        assert len(events.missed()) == 2


async def test_a_start_set_by_hand_is_skipped(clock, events):
    """The schedule goes on after it."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        job.set_next_start(at(30))
        job.skip()
        await clock.travel(150)
        assert relative(events.starts()) == [100]


async def test_an_interval_counts_from_the_start_that_was_skipped(clock, events):
    """A job that counts from the end of its runs has none to count from."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, After(100), start=at(10))
        job.skip()
        await clock.travel(150)
        assert relative(events.starts()) == [110]


async def test_a_job_without_a_further_start_is_done(clock, events):
    """Its only one was skipped."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, At(at(10)), id="once")
        job.skip()
        assert "once" not in s
        assert [event.job_id for event in events.of(JobFinished)] == ["once"]


async def test_a_paused_job_skips_nothing(clock, events):
    """It has no next start."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        job.pause()
        job.skip()
        job.resume()
        await clock.travel(150)
        assert relative(events.starts()) == [100]
        assert events.missed() == []


async def test_a_retry_is_not_skipped(clock, events):
    """It belongs to a tick that has begun."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(fail, EVERY, retry=Retry.constant("10s", max_retries=1))
        await clock.travel(105)
        job.skip()
        await clock.travel(150)
        assert relative(events.starts()) == [100, 110]


async def test_what_was_skipped_stays_skipped_after_a_restart(clock):
    """It has a record, and the next start is stored."""
    store = MemoryStore()
    async with Scheduler(clock=clock, store=store) as s:
        s.register("nothing", nothing)
        s.add("nothing", EVERY, id="a").skip()
        await s.flush()
        (record,) = await s.history("a")
        assert (record.outcome, record.reason) == (Outcome.MISSED, MissedReason.SKIPPED)
    s = Scheduler(clock=clock, store=store)
    s.register("nothing", nothing)
    async with s:
        assert s.get("a").next_start == at(200)


async def test_a_start_set_by_hand_is_superseded(clock, events):
    """By what the schedule says. Where it says already what comes, nothing changes."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY)
        job.set_next_start(at(30))
        job.supersede()
        job.supersede()
        await clock.travel(150)
        assert relative(events.starts()) == [100]
        assert events.missed() == []


async def test_a_disabled_job_has_no_start_and_an_enabled_one_has_one(clock, events):
    """They are the pause of the job by other words."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, EVERY)
        job.disable("by hand")
        assert (job.state, job.next_start, job.error) == (JobState.DISABLED, None, "by hand")
        job.enable()
        assert (job.state, job.next_start, job.error) == (JobState.SCHEDULED, at(100), None)


@pytest.mark.parametrize("verb", ["skip", "supersede"])
async def test_verbs_of_what_is_gone_are_refused(clock, verb):
    """A job that was removed, and a scheduler that has stopped."""
    async with Scheduler(clock=clock) as s:
        job, gone = s.add(nothing, EVERY), s.add(nothing, EVERY)
        gone.remove()
        with pytest.raises(JobNotFound):
            getattr(gone, verb)()
    with pytest.raises(AlreadyStopped):
        getattr(job, verb)()
