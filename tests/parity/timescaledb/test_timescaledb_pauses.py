"""What users of TimescaleDB ask for, over restarts: pauses of all jobs and of tags that end by themselves, and launches
that fail without a trace in the counts.
"""

import anyio
import pytest

from kit import PATIENCE, at
from schedule import After, Every
from scheduler import JobState, Outcome, Retry, RunNotLaunched
from scheduler._jobs import call
from scheduler.stores import StoredJob, StoredPause
from timerqueue.testing import START

TEN = Every(10, anchor=START)
EACH_SCOPE = pytest.mark.parametrize("tag", [None, "x"], ids=["all", "a tag"])


@EACH_SCOPE
@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
async def test_a_pause_outlives_restarts_and_ends_on_time(lives, clock, tag, killed):
    """With its reason; what it does not cover runs on; afterwards each job goes on from its next slot."""
    async with lives.life(killed=killed) as s:
        s.add("nothing", TEN, id="a", tags=["x"])
        s.add("nothing", TEN, id="b")
        await clock.travel(15)
        s.pause(tag, reason="maintenance", until=at(85))
        await s.flush()
    for _ in range(2):
        async with lives.life(killed=killed) as s:
            (pause,) = s.pauses()
            assert (pause.reason, pause.since, pause.until) == ("maintenance", at(15), at(85))
            assert s.get("a").state is JobState.DISABLED
            assert "maintenance" in s.get("a").error
            await clock.travel(30)
    async with lives.life() as s:
        await clock.travel(30)
        assert s.pauses() == []
        assert s.get("a").error is None
    assert lives.starts("a") == [10, 90, 100]
    assert lives.starts("b") == ([10, 90, 100] if tag is None else list(range(10, 110, 10)))
    assert list(lives.store.pauses()) == []


@EACH_SCOPE
async def test_a_pause_that_was_over_before_the_restart_holds_nothing(lives, clock, tag):
    """It is gone from the store too."""
    async with lives.life() as s:
        s.add("nothing", TEN, id="a", tags=["x"])
        s.pause(tag, until=at(50))
        await clock.travel(5)
    clock.advance(100)
    async with lives.life() as s:
        await clock.travel(10)
        assert s.pauses() == []
        assert lives.starts("a")[-1] == 110
    assert list(lives.store.pauses()) == []


async def test_the_pause_of_one_job_ends_by_itself_after_a_restart(lives, clock):
    """On time, or at the start if that is later."""
    async with lives.life() as s:
        for id, until in (("a", 35), ("b", 75)):
            s.add("nothing", TEN, id=id).pause("later", until=at(until))
        await clock.travel(5)
    async with lives.life():
        await clock.travel(40)
    clock.advance(60)
    async with lives.life() as s:
        await clock.travel(10)
        assert {job.state for job in s.jobs()} == {JobState.SCHEDULED}
    assert lives.starts("a")[:1] == [40]
    assert lives.starts("b")[-1:] == [110]
    assert [at for at in lives.starts("b") if at < 105] == []


@pytest.mark.parametrize("scope", ["*", "tag:x"])
async def test_others_may_pause_and_resume_by_writing_a_row(lives, clock, scope):
    """Whatever comes under it meanwhile is held as well."""
    async with lives.life() as s:
        s.add("nothing", TEN, id="a", tags=["x"])
        await clock.travel(15)
        lives.store.edit_pause(StoredPause(scope, "by a colleague", int((START.timestamp() + 15) * 1_000_000)))
        lives.store.edit(StoredJob("b", "nothing", f"@every 10s anchor={START.isoformat()}", tags='["x"]'))
        await clock.travel(30)
        assert lives.starts() == [10]
        assert all("by a colleague" in job.error for job in s.jobs())
        lives.store.delete_pause(scope)
        await clock.travel(10)
        assert lives.starts("a") == [10, 50]
        assert lives.starts("b") == [50]


async def test_resuming_one_job_leaves_the_pause_of_all(lives, clock):
    """They are separate intents, over restarts too."""
    async with lives.life() as s:
        s.add("nothing", TEN, id="a").pause("its own")
        s.pause(reason="everybody's")
        await clock.travel(15)
    async with lives.life() as s:
        s.get("a").resume()
        await clock.travel(20)
        assert lives.starts() == []
        s.resume()
        await clock.travel(10)
        assert lives.starts() == [40]


async def test_timescaledb_o10_thirty_one_failed_launches_are_told_of_once(lives, clock, events, monkeypatch):
    """And are no failures: one run, one record, no retry used up, over all of the time that it takes."""
    refusals = [RuntimeError("can't start new thread")] * 31
    real = call.run_sync

    async def run_sync(func, **options):
        if refusals:
            raise refusals.pop()
        return await real(func, **options)

    monkeypatch.setattr(call, "run_sync", run_sync)
    lives.tasks["thread"] = lambda: None
    async with lives.life() as s:
        job = s.add("thread", After(10_000), id="a", retry=Retry.constant(1, max_retries=0))
        with anyio.fail_after(PATIENCE):
            while not events.outcomes():
                await clock.travel(5)
                await anyio.sleep(0.001)  # the thread takes as long as it takes
        await s.flush()
        (event,) = events.of(RunNotLaunched)
        assert event.count == 31
        counts = job.statistics()
        assert (counts.runs, counts.successes, counts.failures, counts.crashes) == (1, 1, 0, 0)
        assert job.state is JobState.SCHEDULED
        (record,) = await s.history("a")
        assert record.outcome is Outcome.SUCCEEDED
