"""TimescaleDB's scenarios of fixed schedules: slots from an origin, calendars, zones, and schedules that change.

How slots are found is tested with the schedules themselves (tests/schedule); here is what the scheduler makes of them.
"""

from datetime import UTC, datetime, timedelta

import pytest

from kit import T0, nothing
from schedule import After, Calendar, Every, ScheduleError
from scheduler import Retry
from scheduler.stores import Batch
from scheduler.testing import simulate
from timerqueue.testing import START
from timescaledb_lives import seconds

DAY = 86_400
MINUTE = 60


def starts(schedule, length, begin=START):
    """Give the instants at which a job of that schedule runs, as texts, when it is simulated."""
    simulation = simulate(lambda s, _: s.add(nothing, schedule, id="a") and None, length, start=begin)
    return [run.started.isoformat() for run in simulation.runs("a")]


def at(text):
    """Read an instant in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "interval"),
    [
        pytest.param(lambda origin: Calendar("1 day", origin=origin), "1d", id="1 day"),
        pytest.param(lambda origin: Every("12h", anchor=origin), "12h", id="12 h"),
        pytest.param(lambda origin: Calendar("21 days", origin=origin), "21d", id="21 days"),
        pytest.param(lambda origin: Every("360h", anchor=origin), "15d", id="f7: 360 h are 15 days"),
        pytest.param(lambda origin: Every("15s", anchor=origin), "15s", id="x1"),
    ],
)
async def test_timescaledb_f6_f7_x1_the_start_after_the_origin_is_an_interval_later(lives, clock, schedule, interval):
    """Exactly, five milliseconds after midnight, in the store too."""
    origin = START + timedelta(milliseconds=5)
    async with lives.life() as s:
        job = s.add("nothing", schedule(origin), id="a", start=origin)
        await clock.travel(1)
        assert lives.starts() == [0.005]
        assert job.next_start - origin == Every(interval).interval
    assert lives.state().next_us == int(T0) * 1_000_000 + 5_000 + Every(interval).interval // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("zone", "slot"),
    [("Europe/Athens", "2000-07-31T23:00:00.010000+00:00"), ("UTC", "2000-08-01T00:00:00.010000+00:00")],
)
def test_timescaledb_f7_seven_months_are_counted_in_the_zone_of_the_job(zone, slot):
    """In Athens it is summer by then; without a zone it is UTC, not that of whoever asks."""
    origin = at("2000-01-01T00:00:00.010")
    found = starts(Calendar("7 months", origin=origin, tz=zone), 230 * DAY, at("2000-01-01"))
    assert found == ["2000-01-01T00:00:00.010000+00:00", slot]


def test_timescaledb_f8_an_unknown_zone_is_refused(clock):
    """When it is said, not when it is due."""
    with pytest.raises(ScheduleError, match="Europe/Atlantis"):
        Calendar("1 day", origin=START, tz="Europe/Atlantis")
    with pytest.raises(ScheduleError, match="Europe/Atlantis"):
        simulate(lambda s, _: s.add(nothing, "CRON_TZ=Europe/Atlantis 0 5 * * *") and None, 1)


@pytest.mark.parametrize("idle", [0, 3 * MINUTE], ids=["at once", "later"])
async def test_timescaledb_f9_a_longer_delay_counts_from_the_last_finish(lives, clock, idle):
    """Of eight minutes, then of ten, whenever that was said."""
    async with lives.life() as s:
        job = s.add("sleep", After("8m"), id="a", args=(5,))
        await clock.travel(5 + idle)
        job.update(schedule=After("10m"))
        await clock.travel(0)
        assert seconds(job.next_start) == 5 + 10 * MINUTE


async def test_timescaledb_f10_a_drifting_job_becomes_a_fixed_one(lives, clock):
    """Its origin is now unless another is given: the next start is an interval from there."""
    async with lives.life() as s:
        job = s.add("nothing", After("10m"), id="a")
        await clock.travel(17)
        origin = clock.now()
        job.update(schedule=Every("10m", anchor=origin))
        await clock.travel(0)
        assert job.next_start - origin == timedelta(minutes=10)
        job.update(schedule=Every("10m"), start=origin)
        await clock.travel(0)
        assert job.next_start - origin == timedelta(minutes=10)


def test_timescaledb_f11_a_month_after_an_origin_that_is_moved():
    """Monthly from 1 January 00:03: next on 1 February at 00:03; moved to 04:00, on 1 February at 04:00."""

    async def build(s, clock):
        job = s.add(nothing, Calendar("1 month", origin=at("2023-01-01T00:03")), id="a")
        await clock.sleep(10 * MINUTE)
        found.append(job.next_start)
        job.update(schedule=Calendar("1 month", origin=at("2023-01-01T04:00")))
        job.run_now()
        await clock.sleep(6 * 3_600)
        found.append(job.next_start)

    found = []
    simulation = simulate(build, DAY, start=at("2023-01-01"))
    assert found == [at("2023-02-01T00:03"), at("2023-02-01T04:00")]
    assert len(simulation.runs("a")) == 3


async def test_timescaledb_f12_a_fixed_job_counts_from_its_slot(lives, clock):
    """And not from its finish, whatever the store says of that; once it drifts, from its finish."""
    async with lives.life() as s:
        s.add("sleep", Every("30s", anchor=START), id="a", args=(7,))
        await clock.travel(40)
        assert lives.starts() == [30]
        assert seconds(s.get("a").next_start) == 60
    lives.store.open(0, lambda: None)
    row, state = next(row for rows in lives.store.load() for row in rows)
    batch = Batch(jobs={"a": row}, states={"a": state._replace(last_finish_us=0)})
    lives.store.commit(batch)
    lives.store.close()
    async with lives.life() as s:
        job = s.get("a")
        assert seconds(job.next_start) == 60
        await clock.travel(27)
        assert lives.starts() == [30, 60]
        job.update(schedule=After("30s"))
        await clock.travel(0)
        assert seconds(job.next_start) == 67 + 30


@pytest.mark.parametrize(
    ("interval", "begin", "days", "expected"),
    [
        (
            "1 month",
            "2022-01-15T10:00",
            95,
            ["2022-01-15T10:00", "2022-02-15T10:00", "2022-03-15T10:00", "2022-04-15T10:00"],
        ),
        ("1 month", "2022-01-01", 65, ["2022-01-01", "2022-02-01", "2022-03-01"]),
        ("1 week", "2022-01-02T19:00", 20, ["2022-01-02T19:00", "2022-01-09T19:00", "2022-01-16T19:00"]),
        ("1 day", "2022-02-27T06:00", 2.5, ["2022-02-27T06:00", "2022-02-28T06:00", "2022-03-01T06:00"]),
        ("1 year", "2020-02-29", 1500, ["2020-02-29", "2021-02-28", "2022-02-28", "2023-02-28", "2024-02-29"]),
        ("2 years", "2020-03-02", 1500, ["2020-03-02", "2022-03-02", "2024-03-02"]),
        ("10 years", "2020-03-02", 4000, ["2020-03-02", "2030-03-02"]),
        ("2 weeks", "2022-03-02", 30, ["2022-03-02", "2022-03-16", "2022-03-30"]),
        ("2 months", "2022-03-02", 130, ["2022-03-02", "2022-05-02", "2022-07-02"]),
        ("10 months", "2022-03-02", 620, ["2022-03-02", "2023-01-02", "2023-11-02"]),
    ],
)
def test_timescaledb_x2_calendars_of_all_lengths(interval, begin, days, expected):
    """From the origin on, at its wall time."""
    found = starts(Calendar(interval, origin=at(begin)), days * DAY, at(begin) - timedelta(seconds=1))
    assert found == [at(text).isoformat() for text in expected]


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        ("2022-03-16T08:00", ["2022-03-16T08:00", "2022-03-23T08:00", "2022-03-30T07:00", "2022-04-06T07:00"]),
        ("2022-10-22T07:00", ["2022-10-22T07:00", "2022-10-29T07:00", "2022-11-05T08:00", "2022-11-12T08:00"]),
    ],
    ids=["into summer", "into winter"],
)
def test_timescaledb_x3_nine_in_berlin_stays_nine_in_berlin(begin, expected):
    """Once a week, through both changes of 2022."""
    schedule = Calendar("1 week", origin=at(begin), tz="Europe/Berlin")
    found = starts(schedule, 22 * DAY, at(begin) - timedelta(seconds=1))
    assert found == [at(text).isoformat() for text in expected]


@pytest.mark.parametrize("interval", ["1 month 1 week", "1 month 2 days", "1 day 3 hours"])
def test_timescaledb_x4_mixed_intervals_are_refused(interval):
    """A calendar counts in one unit."""
    with pytest.raises(ScheduleError, match=interval):
        Calendar(interval, origin=START)


async def test_timescaledb_o1_an_explicit_next_start_wins(lives, clock):
    """Over the schedule and over a retry; what is past means now."""
    async with lives.life() as s:
        job = s.add("fail", Every("1h", anchor=START), id="a", start="now", retry=Retry.constant("10m"))
        await clock.travel(1)
        assert seconds(job.next_start) == 10 * MINUTE
        job.set_next_start(START + timedelta(minutes=25))
        await clock.travel(0)
        assert seconds(job.next_start) == 25 * MINUTE
        job.set_next_start(START)
        await clock.travel(0)
        assert lives.starts() == [0, 1]


@pytest.mark.parametrize("never", [datetime.max, datetime.min, None, float("inf")], ids=str)
async def test_timescaledb_o1_infinity_is_no_next_start(lives, clock, never):
    """Pausing has a verb of its own."""
    async with lives.life() as s:
        job = s.add("nothing", Every("1h", anchor=START), id="a")
        with pytest.raises((ValueError, TypeError)):
            job.set_next_start(never)
        assert seconds(job.next_start) == 3_600


async def test_timescaledb_o1_a_new_interval_of_a_fixed_job_is_on_its_new_grid(lives, clock):
    """Not an interval after the last finish, as there."""
    async with lives.life() as s:
        job = s.add("nothing", Every("10m", anchor=START), id="a", start="now")
        await clock.travel(13)
        job.update(schedule=Every("4m", anchor=START))
        await clock.travel(0)
        assert seconds(job.next_start) == 4 * MINUTE


@pytest.mark.parametrize("schedule", [After("10m"), Every("10m", anchor=START)], ids=str)
async def test_timescaledb_o1_what_is_not_named_stays(lives, clock, schedule):
    """A change of anything but the schedule moves no start, and neither does the same schedule added again."""
    async with lives.life() as s:
        job = s.add("nothing", schedule, id="a", start="now")
        await clock.travel(MINUTE)
        job.update(priority=5, timeout=3, retry=Retry.timescaledb())
        s.add("nothing", schedule, id="a", priority=6, on_conflict="update")
        await clock.travel(0)
        assert seconds(job.next_start) == 10 * MINUTE
        assert job.policy.priority == 6


async def test_timescaledb_o1_a_new_origin_is_waited_for(lives, clock):
    """It never starts before an origin that is given as its start."""
    async with lives.life() as s:
        job = s.add("nothing", After("10m"), id="a")
        await clock.travel(1)
        job.update(schedule=Every("10m"), start=START + timedelta(hours=5))
        await clock.travel(0)
        assert seconds(job.next_start) == 5 * 3_600
