"""TimescaleDB's scenarios of its interface: jobs of users, what is refused, and what others do to jobs meanwhile."""

from datetime import timedelta

import pytest

from kit import nothing
from schedule import After, Every, ScheduleError
from scheduler import (
    DuplicateJob,
    InvalidJob,
    JobNotFound,
    JobState,
    Outcome,
    UnknownTask,
    current_run,
)
from scheduler.stores import StoredJob
from timerqueue.testing import START
from timescaledb_lives import seconds

HOUR = 3_600


@pytest.mark.parametrize(
    ("func", "schedule", "options", "error"),
    [
        pytest.param("missing", "@every 1m", {}, UnknownTask, id="c13: a task that nobody has registered"),
        pytest.param(None, "@every 1m", {}, InvalidJob, id="no task"),
        pytest.param("nothing", "@every minus a minute", {}, ScheduleError, id="a bad interval"),
        pytest.param("nothing", "@every 0s", {}, ScheduleError, id="no interval"),
        pytest.param("nothing", None, {}, InvalidJob, id="no schedule"),
        pytest.param("nothing", "@every 1m", {"id": "x" * 513}, InvalidJob, id="a long id"),
        pytest.param("nothing", "@every 1m", {"id": "two\nlines"}, InvalidJob, id="an id of two lines"),
        pytest.param("nothing", "@every 1m", {"args": (object(),)}, InvalidJob, id="c9: arguments that are not JSON"),
    ],
)
async def test_timescaledb_c1_c9_c13_a_senseless_job_is_refused(lives, func, schedule, options, error):
    """At once, and nothing is left of it."""
    async with lives.life() as s:
        with pytest.raises(error):
            s.add(func, schedule, **options)
        assert s.jobs() == []
        await s.flush()
    assert list(lives.store.load()) == []


async def test_timescaledb_c2_plain_and_async_functions_are_jobs(lives, clock):
    """With a name and an id."""
    done = []
    async with lives.life() as s:
        s.register("on-the-loop", done.append, inline=True)
        job = s.add("on-the-loop", After(100), id="a", args=("loop",), name="The first")
        s.add("nothing", After(100), id="b")
        await clock.travel(0)
        assert done == ["loop"]
        assert (job.id, job.name) == ("a", "The first")
        assert all(each.statistics().successes == 1 for each in s.jobs())


async def test_timescaledb_c3_c4_o8_an_unknown_job_is_an_error(lives, clock):
    """To ask for, to run, or to change once it is gone; removing twice (S21) is harmless."""
    async with lives.life() as s:
        with pytest.raises(JobNotFound, match="'a'"):
            s.get("a")
        job = s.add("nothing", Every(HOUR), id="a")
        job.remove()
        job.remove()
        with pytest.raises(JobNotFound, match="'a'"):
            job.run_now()


async def test_timescaledb_c4_a_partial_change_keeps_the_rest(lives, clock):
    """In the store too, and over a restart."""
    async with lives.life() as s:
        job = s.add("sleep", Every(HOUR), id="a", args=(1,), timeout=9, priority=3, tags=["x"], name="A")
        before = job.next_start
        job.update(timeout=10)
        await clock.travel(0)
        assert (job.args, job.policy.priority, job.tags, job.name) == ((1,), 3, {"x"}, "A")
        assert job.policy.timeout == 10
    async with lives.life() as s:
        job = s.get("a")
        assert (job.args, job.policy.priority, job.tags, job.name) == ((1,), 3, {"x"}, "A")
        assert (job.policy.timeout, job.next_start) == (10, before)


async def test_timescaledb_c4_a_change_that_is_refused_changes_nothing(lives, clock):
    """Not even the parts of it that were right."""
    async with lives.life() as s:
        job = s.add("nothing", Every(HOUR), id="a", priority=1)
        row = lives.store
        await s.flush()
        before = list(row.load())
        with pytest.raises(InvalidJob):
            job.update(priority=2, timeout=-1)
        with pytest.raises(ScheduleError):
            job.update(schedule="@every never", priority=2)
        await s.flush()
        assert list(row.load()) == before


async def test_timescaledb_c6_what_a_run_has_done_before_it_fails_stays_done(lives, clock):
    """And it is a failure."""
    done = []

    async def work():
        done.append("committed")
        raise ValueError

    lives.tasks["work"] = work
    async with lives.life() as s:
        job = s.add("work", After(100), id="a")
        await clock.travel(0)
        assert (done, job.statistics().failures) == (["committed"], 1)


async def test_timescaledb_c7_a_job_that_is_to_start_now_runs_a_second_time(lives, clock):
    """Off its grid, and then on it again."""
    async with lives.life() as s:
        job = s.add("nothing", Every(HOUR, anchor=START), id="a", start="now")
        await clock.travel(600)
        job.set_next_start(clock.now())
        await clock.travel(0)
        assert lives.starts() == [0, 600]
        assert seconds(job.next_start) == HOUR


async def test_timescaledb_c10_jobs_add_jobs(lives, clock):
    """From within their runs; the next scheduler has them too."""
    async with lives.life() as s:

        async def plant():
            for number in range(3):
                s.add("nothing", Every(10, anchor=START), id=f"{number}", on_conflict="keep")

        s.register("plant", plant)
        s.add("plant", After(100), id="gardener")
        await clock.travel(15)
        assert [lives.starts(f"{number}") for number in range(3)] == [[10]] * 3
    async with lives.life() as s:
        assert {job.id for job in s.jobs()} == {"gardener", "0", "1", "2"}
        assert s.get("gardener").state is JobState.DISABLED
        assert "plant" in s.get("gardener").error


async def test_timescaledb_c11_c13_a_bad_row_does_not_stop_the_others(lives, clock):
    """Written by others, before the start or later: it is parked and says why; every other job runs."""
    bad = [
        StoredJob("schedule", "nothing", "@every now and then"),
        StoredJob("args", "nothing", "@every 10s", args="{"),
        StoredJob("options", "nothing", "@every 10s", options='{"priority": "high"}'),
        StoredJob("task", "missing", "@every 10s"),
    ]
    for row in bad[:2]:
        lives.store.edit(row)
    lives.store.edit(StoredJob("good", "nothing", f"@every 10s anchor={START.isoformat()}"))
    async with lives.life() as s:
        for row in bad[2:]:
            lives.store.edit(row)
        await clock.travel(25)
        assert lives.starts() == lives.starts("good") == [10, 20]
        for row in bad:
            job = s.get(row.id)
            assert job.state is JobState.DISABLED
            assert job.error


async def test_timescaledb_c12_a_third_long_job_disturbs_no_running_ones(lives, clock, events):
    """Each runs to its end, whatever order they come and go in."""
    async with lives.life() as s:
        for number, length in enumerate((30, 20)):
            s.add("sleep", After(HOUR), id=f"{number}", args=(length,))
        await clock.travel(5)
        s.add("sleep", After(HOUR), id="third", args=(100,))
        await clock.travel(5)
        s.get("third").remove()
        await clock.travel(100)
        assert events.outcomes("0") == events.outcomes("1") == [Outcome.SUCCEEDED]
        assert events.outcomes("third") == [Outcome.CANCELLED]


async def test_timescaledb_o2_a_job_from_twelve_hours_to_a_minute(lives, clock):
    """Runs at 0 and 12:00; then a minute after its finish; and half a minute earlier than it was to be."""
    async with lives.life() as s:
        job = s.add("nothing", After("12h"), id="a")
        await clock.travel(1)
        clock.advance(12 * HOUR - 1)
        await clock.travel(0)
        assert lives.starts() == [0, 12 * HOUR]
        job.update(schedule=After("1m"))
        await clock.travel(120)
        job.set_next_start(job.next_start - timedelta(seconds=30))
        await clock.travel(40)
        assert [at - 12 * HOUR for at in lives.starts()] == [-12 * HOUR, 0, 60, 120, 150]
        assert seconds(job.next_start) == 12 * HOUR + 210


@pytest.mark.parametrize("schedule", [After("4d"), Every("4d", anchor=START)], ids=["drifting", "fixed"])
async def test_timescaledb_o3_a_job_with_a_backlog_comes_again_soon(lives, clock, schedule):
    """At 0, 25 and 50; when nothing is left to do, four days later. The next start is stored each time."""
    backlog = [2]

    async def work():
        if backlog[0]:
            backlog[0] -= 1
            current_run().set_next_start(clock.now() + timedelta(seconds=25))

    lives.tasks["work"] = work
    async with lives.life() as s:
        s.add("work", schedule, id="a", start="now")
        await clock.travel(30)
    async with lives.life() as s:
        await clock.travel(70)
        assert lives.starts() == [0, 25, 50]
        last = 50 if isinstance(schedule, After) else 0
        assert seconds(s.get("a").next_start) == last + 4 * 86_400


async def test_timescaledb_o3_a_policy_every_thirty_seconds(lives, clock):
    """One, two and three runs after 1, 31 and 61 s."""
    async with lives.life() as s:
        job = s.add("nothing", After(30), id="a")
        counts = []
        for wait in (1, 30, 30):
            await clock.travel(wait)
            counts.append(job.statistics().runs)
    assert counts == [1, 2, 3]


async def test_timescaledb_o4_a_task_may_move_and_its_jobs_follow(lives, clock):
    """Its name stands for another callable in the next life, or in this one."""
    done = []
    lives.tasks["work"] = nothing
    async with lives.life() as s:
        s.add("work", Every(10, anchor=START), id="a")
        await clock.travel(5)

    async def other():
        done.append(clock.now())

    lives.tasks["work"] = other
    async with lives.life():
        await clock.travel(10)
    assert len(done) == 1


async def test_timescaledb_o8_a_run_by_hand_is_counted_and_recorded(lives, clock):
    """It goes through the queue like any other, and moves nothing."""
    async with lives.life() as s:
        job = s.add("nothing", Every(HOUR, anchor=START), id="a")
        await clock.travel(5)
        job.run_now()
        await clock.travel(0)
        await s.flush()
        assert job.statistics().runs == 1
        assert [record.outcome for record in await s.history("a")] == [Outcome.SUCCEEDED]
        assert seconds(job.next_start) == HOUR


async def test_timescaledb_o10_an_id_is_taken_once(lives, clock):
    """By a job of this life, or by one in the store."""
    async with lives.life() as s:
        s.add("nothing", Every(HOUR), id="a")
        with pytest.raises(DuplicateJob, match="'a'"):
            s.add("nothing", Every(HOUR), id="a")
    async with lives.life() as s:
        with pytest.raises(DuplicateJob, match="'a'"):
            s.add("nothing", Every(HOUR), id="a")


async def test_timescaledb_i1_a_job_that_is_changed_all_the_time_is_one_job(lives, clock):
    """By itself, by its handle and by others, while it is due."""
    async with lives.life() as s:
        job = s.add("nothing", Every(1, anchor=START), id="a")
        for number in range(20):
            job.update(priority=number)
            await clock.travel(0.25)
            ((row, _),) = next(lives.store.load())
            lives.store.edit(row._replace(name=f"{number}"))
            await clock.travel(0.25)
        assert [each.id for each in s.jobs()] == ["a"]
        assert lives.starts() == list(range(1, 11))
        await s.flush()
    assert len([row for rows in lives.store.load() for row in rows]) == 1


async def test_timescaledb_i2_removing_a_job_waits_for_nothing(lives, clock, events):
    """Not for its run either, which may take its time to tidy up: it has one record, with how it ended."""

    async def tidy():
        try:
            await clock.sleep(1_000)
        finally:
            tidied.append(clock.now())

    tidied = []
    lives.tasks["tidy"] = tidy
    async with lives.life() as s:
        s.add("tidy", Every(100), id="a").run_now()
        await clock.travel(1)
        s.get("a").remove()
        assert s.jobs() == []
        await clock.travel(1)
        assert len(tidied) == 1
        await s.flush()
        assert [record.outcome for record in await s.history("a")] == [Outcome.CANCELLED]
