"""After a crash a job waits for five minutes. In TimescaleDB these begin again at every restart and every refresh, so
that a job can be postponed for ever, and the record of the crash is wrong. Ours begin once, when the crash is found.
"""

from datetime import timedelta

import pytest

from schedule import After, Every
from scheduler import Delivery, JobState, MissedReason, Outcome, Overlap
from scheduler.stores import Retention
from timerqueue.testing import START

HOUR = 3_600
DAY = 24 * HOUR

EACH_KIND = pytest.mark.parametrize(
    ("schedule", "first"),
    [pytest.param(After("5s"), 300.5, id="drifting"), pytest.param(Every("5s", anchor=START), 305, id="fixed")],
)


async def takes_no_time(_seconds):
    """Stand in for a sleep, once whatever killed has been mended."""


async def die(lives, schedule, **options):
    """Let the process die under the job "a" at 0.1, and half a second after the start be found dead."""
    async with lives.life(killed=True) as s:
        s.add("sleep", schedule, id="a", args=(10,), start="now", **options)
        await lives.clock.travel(0.1)
    lives.clock.advance(0.4)
    lives.events.clear()
    lives.tasks["sleep"] = takes_no_time


@EACH_KIND
@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
async def test_defect_the_crash_floor_does_not_start_again_at_every_restart(lives, clock, schedule, first, killed):
    """Ten restarts, orderly or not, within the five minutes: they end when they would have."""
    await die(lives, schedule)
    for _ in range(10):
        async with lives.life(killed=killed) as s:
            await clock.travel(25)
            assert s.get("a").statistics().consecutive_crashes == 1
    assert lives.starts() == []
    async with lives.life():
        await clock.travel(first - 250.5)
    assert lives.starts() == [first]


@EACH_KIND
async def test_defect_the_crash_floor_does_not_start_again_at_every_refresh(lives, clock, schedule, first):
    """Others write into the job's row all the time, and other jobs come and go."""
    await die(lives, schedule)
    async with lives.life() as s:
        row = next(row for rows in lives.store.load() for row, _ in rows)
        for number in range(30):
            lives.store.edit(row._replace(name=f"{number}"))
            s.add("nothing", Every(1_000), id="other", on_conflict="replace")
            await clock.travel(9.5)
        assert s.get("a").name == "29"
        assert lives.starts("a") == []
        await clock.travel(first - 285.5)
        assert lives.starts("a") == [first]


@pytest.mark.parametrize("schedule", [After("5s"), Every("5s", anchor=START)], ids=["drifting", "fixed"])
async def test_defect_the_crash_floor_outlasts_a_pause_of_others(lives, clock, schedule):
    """All jobs are paused for a minute of the five: that brings no start forward."""
    await die(lives, schedule, tags=["x"])
    async with lives.life() as s:
        s.pause("x", reason="maintenance", until=clock.now() + timedelta(minutes=1))
        await clock.travel(299)
        assert s.pauses() == []
        assert lives.starts() == []


@pytest.mark.parametrize("schedule", [After("4s"), Every("4s", anchor=START)], ids=["drifting", "fixed"])
async def test_defect_the_crash_floor_outlasts_a_new_interval(lives, clock, schedule):
    """Four seconds in place of five are no reason to start it minutes earlier."""
    await die(lives, After("5s"))
    async with lives.life() as s:
        s.get("a").update(schedule=schedule)
        await clock.travel(299)
        assert lives.starts() == []


async def test_defect_the_record_of_a_crash_has_true_times_and_is_closed(lives, clock):
    """It is not the first that age takes away, and it does not stay open."""
    async with lives.life() as s:
        s.add("sleep", Every(DAY, anchor=START), id="a", args=(HOUR,), start="now")
        await clock.travel(1)
        clock.advance(HOUR)
        await clock.travel(0)
    async with lives.life(killed=True) as s:
        s.get("a").run_now()
        await clock.travel(9)
    died = clock.now()
    clock.advance(31)
    async with lives.life() as s:
        await s.flush()
        assert lives.store.running() == []
        assert lives.store.prune(Retention(age=35.0), int(clock.wall() * 1_000_000)) == 1
        (record,) = await s.history("a")
    assert record.outcome is Outcome.CRASHED
    assert record.started == record.due == died - timedelta(seconds=9)
    assert record.ended == died + timedelta(seconds=31)


async def test_a_job_that_was_killed_three_times_in_a_row_starts_no_more(lives, clock):
    """It is quarantined, visibly and over restarts, until somebody resumes it: then it has a clean slate."""
    for number in range(3):
        async with lives.life(killed=True) as s:
            if not number:
                s.add("sleep", After(10), id="a", args=(5_000,))
            await clock.travel(301)
            assert s.get("a").state is JobState.RUNNING
    for _ in range(2):
        async with lives.life() as s:
            await clock.travel(1_000)
            assert s.get("a").state is JobState.DISABLED
            assert "3 times in a row" in s.get("a").error
    lives.tasks["sleep"] = takes_no_time
    lives.events.clear()
    async with lives.life() as s:
        s.get("a").resume()
        await clock.travel(10)
        counts = s.get("a").statistics()
        assert (counts.successes, counts.crashes, counts.consecutive_crashes) == (1, 3, 0)
        assert s.get("a").state is JobState.SCHEDULED


async def test_two_runs_that_one_death_has_ended_are_one_crash_in_a_row(lives, clock):
    """And two among the crashes of all time."""
    async with lives.life(killed=True) as s:
        s.add("sleep", Every(10, anchor=START), id="a", args=(500,), overlap=Overlap.ALLOW)
        await clock.travel(25)
    async with lives.life() as s:
        counts = s.get("a").statistics()
        assert (counts.runs, counts.crashes, counts.consecutive_crashes) == (2, 2, 1)
        await s.flush()
        records = await s.history("a")
    assert [record.outcome for record in records if record.attempt] == [Outcome.CRASHED] * 2


@pytest.mark.parametrize("delivery", Delivery)
async def test_what_the_floor_costs_is_counted_as_missed(lives, clock, events, delivery):
    """Each start of the five minutes, in one report; the tick that was lost is none of them."""
    await die(lives, Every("5s", anchor=START), delivery=delivery)
    async with lives.life() as s:
        await clock.travel(330)
        assert events.missed("a") == [(60, MissedReason.AFTER_CRASH)]
        assert s.get("a").statistics().missed == 60


async def test_slots_that_come_back_with_a_resumed_job_are_not_missed_as_well(lives, clock):
    """Whoever resumes it by hand ends the five minutes: from the next slot on it runs, and each slot has one record."""
    await die(lives, Every("10s", anchor=START))
    async with lives.life() as s:
        await clock.travel(54.5)
        s.get("a").pause()
        s.get("a").resume()
        await clock.travel(50)
        assert lives.starts() == [60, 70, 80, 90, 100]
        await s.flush()
        records = await s.history("a")
        recorded = sum(record.count for record in records)
        assert recorded == 1 + 5 + 5  # the crash, what it has cost, and what has run since
        counts = s.get("a").statistics()
        assert (counts.missed, counts.successes) == (5, 5)


async def test_run_now_does_not_wait_for_the_floor(lives, clock):
    """Somebody wants it, and knows why."""
    await die(lives, After("5s"))
    async with lives.life() as s:
        s.get("a").run_now()
        await clock.travel(1)
        assert lives.starts() == [0.5]
