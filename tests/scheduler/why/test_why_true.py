"""An answer says nothing that is not so: starts moved by hand, counts without records, attempts that were dropped."""

from datetime import timedelta

import pytest

from scheduler import Retry, Scheduler, Verdict
from timerqueue.testing import START


async def test_a_start_before_a_next_start_that_was_moved_does_not_come(life, clock):
    """Somebody moved it, or the first one has a date."""
    async with life.one() as s:
        life.add(s, "job", 10, every="10s").set_next_start(life.t(45))
        life.add(s, "late", 3600, every="10s")
        skipped, moved = await s.why("job", life.t(20)), await s.why("job", life.t(45))
        before = await s.why("late", life.t(20))
        later = await s.why("job", life.t(50))
    assert (skipped.verdict, skipped.due, skipped.next) == (Verdict.NOT_DUE, life.t(20), life.t(45))
    assert str(skipped).endswith(
        "does not start at 2026-01-01 00:00:20 UTC: its next start is 2026-01-01 00:00:45 UTC."
    )
    assert (before.verdict, before.next) == (Verdict.NOT_DUE, life.t(3600))
    assert moved.verdict is later.verdict is Verdict.TO_COME


@pytest.mark.parametrize("step", [-15, 3.5, 3_600])
async def test_starts_of_an_interval_move_with_a_clock_that_is_set(life, clock, step):
    """They stay as far apart as they were: the instants before the step are not due any more."""
    async with life.one() as s:
        job = life.add(s, "job", 10, every="10s")
        await clock.travel(35)
        clock.step(step)
        await clock.travel(0.5)
        start = job.next_start
        following = start + timedelta(seconds=10)
        comes = [await s.why("job", at) for at in (start, following, start + timedelta(seconds=200))]
        none = await s.why("job", following + timedelta(seconds=2))
        await clock.travel(10)
        ran = await s.why("job", start)
    assert [each.verdict for each in comes] == [Verdict.TO_COME] * 3
    assert (none.verdict, none.previous, none.next) == (
        Verdict.NOT_DUE,
        following,
        following + timedelta(seconds=10),
    )
    assert ran.verdict is Verdict.RAN


async def test_without_a_store_a_run_by_hand_is_not_taken_for_a_late_start(clock):
    """The counts know its start alone."""

    async def nothing():
        """Do nothing."""

    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, "@every 60s", id="job", start=START + timedelta(seconds=60))
        job.pause("x")
        await clock.travel(80)
        job.resume()
        job.run_now()
        await clock.travel(1)
        why = await s.why("job", START + timedelta(seconds=60))
    assert why.verdict is Verdict.NOT_KNOWN


async def test_a_second_attempt_that_found_no_room_is_not_told_as_a_stop(life, clock):
    """No scheduler has stopped: the first attempt failed, and the second one was dropped."""
    async with life.one(limits={"host": 1}) as s:

        @s.task("fails")
        async def fails():
            msg = "broken"
            raise RuntimeError(msg)

        retry = Retry.exponential("30s", cap="30s", max_retries=3)
        job = s.add("fails", "@every 1h", id="job", start=life.t(10), retry=retry, needs="host")
        life.add(s, "slow", 20, takes=100, needs="host")
        await clock.travel(60)
        job.remove()
        await clock.travel(1)
        why = await s.why("job", life.t(10))
    assert why.verdict is Verdict.RAN
    assert "and failed" in str(why)
