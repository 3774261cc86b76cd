"""TimescaleDB's scenarios of the history of runs: what is recorded, and how much of it is kept."""

import logging
from datetime import timedelta

import pytest

from kit import T0, nothing
from schedule import After, Every
from scheduler import Outcome
from scheduler.stores import Batch, Retention
from scheduler.stores.memory import MemoryStore
from scheduler.testing import simulate
from timerqueue.testing import START
from timescaledb_lives import seconds

DAYS = 90
ALL = DAYS * 24 * 2


@pytest.mark.parametrize("task", ["nothing", "fail"])
async def test_timescaledb_h1_h2_each_run_has_one_record(lives, clock, task):
    """A success as well as a failure, latest first, with its times; there is no switch that leaves some out."""
    async with lives.life() as s:
        s.add(task, After(100), id="a")
        await clock.travel(250)
        await s.flush()
        records = await s.history("a")
    assert [seconds(record.started) for record in records] == [200, 100, 0]
    assert [seconds(record.ended) for record in records] == [200, 100, 0]
    assert {record.outcome for record in records} == {Outcome.SUCCEEDED if task == "nothing" else Outcome.FAILED}


async def test_timescaledb_h2_h3_a_run_that_goes_on_has_its_record_already(lives, clock):
    """Open, and completed at its end, whatever the job has become meanwhile."""
    async with lives.life() as s:
        job = s.add("sleep", After(100), id="a", args=(10,))
        await clock.travel(5)
        await s.flush()
        (record,) = await s.history("a")
        assert (record.outcome, record.ended) == (None, None)
        job.update(args=(3,), name="renamed")
        await clock.travel(5)
        await s.flush()
        (record,) = await s.history("a")
        assert (record.outcome, seconds(record.ended)) == (Outcome.SUCCEEDED, 10)


async def test_timescaledb_h2_records_outlive_their_job(lives, clock):
    """It is removed, and added anew with counts that begin at nothing; the next scheduler still knows what was."""
    async with lives.life() as s:
        s.add("nothing", After(100), id="a")
        await clock.travel(50)
        s.get("a").remove()
        await clock.travel(50)
        assert s.add("nothing", After(1_000), id="a").statistics().runs == 0
        await clock.travel(1)
    async with lives.life() as s:
        assert [seconds(record.started) for record in await s.history("a")] == [100, 0]


def records_of(days, **retention):
    """Simulate a run each half hour; give the store's records, latest first."""
    store = MemoryStore()

    def build(s, _clock):
        s.register("nothing", nothing)
        s.add("nothing", Every("30m", anchor=START), id="a")

    simulate(build, timedelta(days=days, seconds=1), store=store, retention=Retention(**retention))
    return store.history("a", limit=10 * ALL)


@pytest.fixture(scope="module")
def ninety_days():
    """Give the records of ninety days of which nothing has been forgotten."""
    return records_of(DAYS, per_job=None, age=None, total_bytes=None)


@pytest.mark.parametrize(
    ("bounds", "kept"),
    [
        pytest.param({}, 1_000, id="by default a thousand of each job"),
        pytest.param({"per_job": None}, 30 * 24 * 2, id="by default thirty days"),
        pytest.param({"per_job": 10}, 10, id="ten"),
        pytest.param({"per_job": 15}, 15, id="fifteen"),
        pytest.param({"per_job": None, "age": None, "total_bytes": None}, ALL, id="all"),
    ],
)
def test_timescaledb_h5_of_ninety_days_is_kept_what_lies_within_the_bounds(ninety_days, bounds, kept):
    """Of a run each half hour: the latest."""
    assert len(ninety_days) == ALL
    store = MemoryStore()
    store.open(0, lambda: None)
    store.commit(Batch(ended=ninety_days))
    while store.prune(Retention(**bounds), ninety_days[0].due_us):
        pass
    left = store.history("a", limit=10 * ALL)
    assert kept <= len(left) <= kept + 1  # the one that is exactly as old as it may be
    assert left == ninety_days[: len(left)]


def test_timescaledb_h5_the_scheduler_prunes_by_itself():
    """After each thousand records, and never what is within the bounds."""
    due = [record.due_us for record in records_of(25, per_job=10)]
    assert 10 <= len(due) <= 10 + 1_000
    newest = (int(T0) + 25 * 86_400) * 1_000_000
    assert due == [newest - number * 30 * 60 * 1_000_000 for number in range(len(due))]


@pytest.mark.parametrize("bad", [{"per_job": -1}, {"age": -1.0}, {"total_bytes": -1}, {"per_job": "many"}], ids=str)
def test_timescaledb_h6_senseless_bounds_are_refused(bad):
    """When they are given, by name, and not when there is something to prune."""
    with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        Retention(**bad)


async def test_timescaledb_h7_a_failure_says_what_went_wrong(lives, clock):
    """Which kind of error, its text and its traceback."""
    async with lives.life() as s:
        s.add("fail", After(100), id="a")
        await clock.travel(1)
        await s.flush()
        (record,) = await s.history("a")
    assert record.error == "ValueError: it does not work"
    assert "raise ValueError(msg)" in record.traceback


async def test_timescaledb_h9_many_jobs_with_little_room_are_each_attempted(lives, clock):
    """Thirty jobs, room for two: all have run within thirty runs' time."""
    async with lives.life(limit=2) as s:
        for number in range(30):
            s.add("sleep", After(1_000), id=f"{number}", args=(1,))
        await clock.travel(15)
        await s.flush()
        assert {record.job_id for record in await s.history()} == {f"{number}" for number in range(30)}
        assert all(job.statistics().successes == 1 for job in s.jobs())


async def test_timescaledb_o6_failures_are_logged_and_successes_are_not(lives, clock, caplog):
    """As warnings; at that level a job that does its work is silent."""
    caplog.set_level(logging.WARNING, "scheduler")
    async with lives.life() as s:
        s.add("nothing", After(10), id="good")
        s.add("fail", After(100), id="bad")
        await clock.travel(50)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "'bad'" in caplog.text
