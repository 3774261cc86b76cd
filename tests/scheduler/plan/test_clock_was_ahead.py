"""What was planned while the clock was ahead keeps no job for longer than its own schedule and floor do from now on."""

from datetime import timedelta

import pytest

from kit import broken
from scheduler import Overlap, Retry
from timerqueue.testing import ManualClock

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR

INTERVALS = {
    "* * * * *": MINUTE,
    "*/5 * * * *": 5 * MINUTE,
    "@every 1m": MINUTE,
    "@every 7m anchor=2026-01-01T00:00:00+00:00": 7 * MINUTE,
    "@after 1m": MINUTE,
    "@hourly | 30 * * * *": HOUR,
    "@hourly": HOUR,
    "@daily": DAY,
    "@calendar 1 day origin=2020-01-01T00:00Z": DAY,
}
"""Schedules, and the longest time between two of their starts, in seconds."""

AHEAD = pytest.mark.parametrize("ahead", [3 * MINUTE, HOUR, 20 * HOUR, 400 * DAY], ids=lambda ahead: f"{ahead} s")


def add_all(s, **options):
    """Add a job for each schedule, whose text is its id."""
    for text in INTERVALS:
        s.add("work", text, id=text, **options)


def too_far(s, clock, rest=0):
    """Return the jobs whose next start is more than two intervals away, after they have rested for so long.

    Two, because what has run already does not run again if the clock was set back by less than that.
    """
    found = {job.id: (job.next_start - clock.now()).total_seconds() for job in s.jobs() if job.next_start}
    assert found.keys() == INTERVALS.keys()
    return {text: seconds for text, seconds in found.items() if not 0 <= seconds <= 2 * INTERVALS[text] + rest}


def set_back(processes, ahead):
    """Let the next process have a clock that is right."""
    processes.clock = ManualClock(processes.clock.now() - timedelta(seconds=ahead))


@AHEAD
async def test_starts_that_were_planned_come_no_later_than_the_schedule_says_now(processes, ahead):
    """The clock was set back while no process ran."""
    async with processes.one() as s:
        add_all(s)
        await processes.clock.travel(600)
    set_back(processes, ahead)
    async with processes.one() as s:
        await processes.clock.travel(0)
        assert too_far(s, processes.clock) == {}


@AHEAD
@pytest.mark.parametrize("delivery", ["at_most_once", "at_least_once"])
@pytest.mark.parametrize("is_down", [True, False], ids=["while it was down", "while it ran"])
async def test_a_floor_ends_no_later_than_if_the_crash_were_found_now(processes, ahead, delivery, is_down):
    """Five minutes, though the crash was found when the clock was ahead."""
    async with processes.one(10_000, dies=True) as s:
        add_all(s, delivery=delivery)
        for job in s.jobs():
            job.run_now()
        await processes.clock.travel(1)
    count = len(processes.begun)
    assert count == len(INTERVALS)
    async with processes.one(dies=is_down) as s:
        await processes.clock.travel(2)
        if not is_down:
            processes.clock.step(-ahead)
            await processes.clock.travel(1)
            assert too_far(s, processes.clock, 300) == {}
            await processes.clock.travel(300 + 2 * MINUTE)
    if is_down:
        set_back(processes, ahead)
        async with processes.one() as s:
            await processes.clock.travel(1)
            assert too_far(s, processes.clock, 300) == {}
            await processes.clock.travel(300 + 2 * MINUTE)
    if delivery == "at_least_once":
        assert len(processes.again()) == len(INTERVALS)
    assert len(processes.begun) - count >= 3  # those of each minute


@AHEAD
async def test_a_retry_comes_no_later_than_its_rule_says_now(processes, ahead):
    """It was planned for a minute after the failure."""
    known = {"add": lambda s: s.register("broken", broken)}
    async with processes.one(**known) as s:
        s.add("broken", "@daily", id="job", retry=Retry.constant("1m")).run_now()
        await processes.clock.travel(1)
        assert s.get("job").statistics().failures == 1
    set_back(processes, ahead)
    async with processes.one(**known) as s:
        await processes.clock.travel(1)
        assert (s.get("job").next_start - processes.clock.now()).total_seconds() <= MINUTE


@AHEAD
async def test_what_is_owed_by_a_stop_is_tried_again_at_once(processes, ahead):
    """The instant at which it was cut off does not matter."""
    async with processes.one(10_000) as s:
        s.add(
            "work", "@every 10s", id="job", overlap=Overlap.ALLOW, max_running=3, delivery="at_least_once", start="now"
        )
        await processes.clock.travel(35)
    owed = [due for due, _ in processes.begun]
    set_back(processes, ahead)
    async with processes.one():
        await processes.clock.travel(1)
    assert processes.again() == owed


@AHEAD
async def test_a_pause_without_an_end_and_one_with_an_end_stay(processes, ahead):
    """What somebody has asked for is an instant of the clock on the wall, and stands."""
    until = processes.clock.now() + timedelta(minutes=10)
    async with processes.one() as s:
        s.add("work", "@every 1m", id="for ever").pause("by hand")
        s.add("work", "@every 1m", id="for ten minutes").pause("by hand", until=until)
        await processes.clock.travel(1)
    set_back(processes, ahead)
    async with processes.one() as s:
        await processes.clock.travel(1)
        assert {job.id: job.is_paused for job in s.jobs()} == {"for ever": True, "for ten minutes": True}
