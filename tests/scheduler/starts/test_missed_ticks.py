"""What becomes of ticks that passed while nobody could run them."""

from datetime import datetime, timedelta

import pytest

from kit import nothing, since_start
from schedule import After, At, Cron, Every, Missed
from scheduler import MissedReason, RunEnded, RunMissed, Scheduler
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START

HOURLY = {
    "every": Every("1h", anchor=START),
    "cron": Cron("0 * * * *"),
    "combined": Cron("0 0-11 * * *") | Cron("0 12-23 * * *"),
}


def hours(instants):
    """Give instants in hours from the start."""
    return [round(since_start(each) / 3600, 9) for each in instants]


@pytest.mark.parametrize("schedule", HOURLY.values(), ids=HOURLY)
@pytest.mark.parametrize(
    ("options", "run", "missed"),
    [
        pytest.param({}, [5], (1, 4), id="latest"),
        pytest.param({"missed": Missed.SKIP, "grace": "1m"}, [], (1, 5), id="skip"),
        pytest.param({"missed": Missed.SKIP, "grace": "30m"}, [5], (1, 4), id="skip within its grace"),
        pytest.param({"missed": Missed.ALL}, [1, 2, 3, 4, 5], None, id="all"),
        pytest.param({"missed": Missed.ALL, "catch_up": 2}, [4, 5], (1, 3), id="all up to a number"),
    ],
)
async def test_after_a_gap_runs_what_the_policy_says(clock, events, schedule, options, run, missed):
    """Oldest first; each omitted tick is reported with the range it lies in; then the schedule goes on."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, schedule, **options)
        clock.advance(5 * 3600 + 600)
        await clock.travel(0)
        assert hours(event.due for event in events.of(RunEnded)) == run
        reports = [(*hours([e.first_due, e.last_due]), e.count, e.reason) for e in events.of(RunMissed)]
        count = 0 if missed is None else missed[1] - missed[0] + 1
        assert reports == ([] if missed is None else [(*missed, count, MissedReason.LATE)])
        assert job.statistics().missed == s.statistics().missed == count
        clock.advance(3000)
        await clock.travel(0)
        assert hours(event.due for event in events.of(RunEnded))[len(run) :] == [6]


@pytest.mark.parametrize("schedule", HOURLY.values(), ids=HOURLY)
async def test_a_gap_of_a_century_costs_no_more_than_one_of_a_day(clock, events, schedule):
    """Nobody walks over its 876,600 ticks; what cannot be counted says so."""
    asked = 0
    real = type(schedule).next

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, schedule)

        def counting(self, after):
            nonlocal asked
            asked += 1
            return real(self, after)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(schedule), "next", counting)
            clock.advance(36_525 * 86_400)
            await clock.travel(0)
    assert asked < 300
    (report,) = events.of(RunMissed)
    assert report.count == 876_599 or not report.is_exact
    assert hours([report.first_due, report.last_due]) == [1, 876_599]
    assert hours(event.due for event in events.of(RunEnded)) == [876_600]
    assert job.statistics().runs == 1


async def test_a_single_late_tick_is_no_gap(clock, events):
    """It runs, late, under every policy but an impatient SKIP."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        for missed in Missed:
            s.add(nothing, HOURLY["every"], id=missed.name, missed=missed)
        clock.advance(3700)
        await clock.travel(0)
        assert {event.job_id for event in events.of(RunEnded)} == {"LATEST", "ALL"}
        assert events.missed("SKIP") == [(1, MissedReason.LATE)]
        assert {event.lateness for event in events.of(RunEnded)} == {100}


async def test_skip_misses_what_found_no_room_in_time(clock, events):
    """The grace counts until the run begins, so waiting for a limit uses it up."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, At(START + timedelta(hours=1)), args=(10,))
        s.add(nothing, HOURLY["every"], id="impatient", missed=Missed.SKIP, grace="5s")
        s.add(nothing, HOURLY["every"], id="patient", missed=Missed.SKIP, grace="15s")
        clock.advance(3600)
        await clock.travel(10)
        assert events.missed() == [(1, MissedReason.NO_ROOM)]
        assert [event.job_id for event in events.of(RunEnded)][1:] == ["patient"]
        assert s.get("impatient").statistics().runs == 0


async def test_a_fixed_delay_has_no_more_than_one_tick(clock, events):
    """It counts from the end of its run, so nothing piles up."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, After("1h"))
        await clock.travel(0)
        clock.advance(1e6)
        await clock.travel(0)
        clock.advance(3600)
        await clock.travel(0)
    assert len(events.of(RunEnded)) == 3
    assert events.missed() == []


async def test_a_one_shot_that_was_slept_over_still_runs(clock, events):
    """And one of an impatient SKIP is missed, and finishes its job all the same."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        when = datetime(2026, 1, 1, 1, tzinfo=START.tzinfo)
        s.add(nothing, At(when), id="patient")
        s.add(nothing, At(when), id="impatient", missed=Missed.SKIP)
        clock.advance(7200)
        await clock.travel(0)
        assert [event.job_id for event in events.of(RunEnded)] == ["patient"]
        assert sum(count for count, _ in events.missed("impatient")) == 1
        assert s.jobs() == []


@pytest.mark.parametrize("by", ["the job", "all"])
async def test_ticks_that_a_pause_drops_are_one_record_of_all_of_them(clock, events, by):
    """Those that wait for the end of a run are dropped before the older one that waits for room."""
    async with Scheduler(limit=1, clock=clock, store=MemoryStore()) as s:
        s.listen(events)
        s.register("nothing", nothing)
        s.add(clock.sleep, At(START + timedelta(seconds=1)), args=(1_000,), durable=False)
        s.add("nothing", Every("10s", anchor=START), id="a", missed=Missed.ALL)
        await clock.travel(55)
        s.get("a").pause() if by == "the job" else s.pause()
        await clock.travel(0)
        (record,) = await s.history("a")
    assert (record.count, record.reason) == (5, MissedReason.PAUSED)
    assert [(at - START).total_seconds() for at in (record.due, record.last_due)] == [10, 50]
