"""Jobs come and go while it runs: ids, first starts, the grid, and what remove does."""

import gc
import threading
import weakref
from collections import Counter
from datetime import datetime, timedelta

import anyio
import pytest
from anyio.to_thread import run_sync

from kit import T0, nothing, since_start
from schedule import After, At, Cron, Every, phase
from scheduler import DuplicateJob, JobAdded, JobFinished, JobNotFound, JobRemoved, Outcome, RunEnded, Scheduler
from timerqueue.testing import START, ManualClock

EVERY_SECOND = Every("1s", anchor=START)


async def test_jobs_are_listed_in_the_order_they_were_added(clock):
    """By id they can be found again; without an id they get one."""
    async with Scheduler(clock=clock) as s:
        added = [s.add(nothing, "@every 1h", id=id) for id in ("c", "a", "b")] + [s.add(nothing, "@every 1h")]
        assert s.jobs() == added
        assert s.get("a") is added[1]
        assert s.get(added[3].id) is added[3]
        assert s.statistics().jobs == 4


async def test_an_unknown_id_is_a_named_error(clock):
    """It is a KeyError too, whose text is a sentence."""
    async with Scheduler(clock=clock) as s:
        with pytest.raises(JobNotFound, match=r"^there is no job 'gone'"):
            s.get("gone")
    assert issubclass(JobNotFound, KeyError)


async def test_an_id_is_taken_once(clock):
    """A second job of the same id is an error that names the ways out, and the first job stays."""
    async with Scheduler(clock=clock) as s:
        first = s.add(nothing, EVERY_SECOND, id="a")
        with pytest.raises(DuplicateJob, match=r"'a'.*replace.*keep"):
            s.add(nothing, "@every 5s", id="a")
        assert s.jobs() == [first]


async def test_on_conflict_keep_answers_the_present_job(clock, events):
    """Nothing is added and nobody is told."""
    async with Scheduler(clock=clock) as s:
        first = s.add(nothing, EVERY_SECOND, id="a")
        s.listen(events)
        assert s.add(nothing, "@every 5s", id="a", on_conflict="keep") is first
        assert events == []


async def test_on_conflict_replace_ends_the_present_job(clock, events):
    """The old one's run is cancelled, the new one starts by its own schedule."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        old = s.add(clock.sleep, EVERY_SECOND, id="a", args=(3600,))
        await clock.travel(1)
        new = s.add(nothing, EVERY_SECOND, id="a", on_conflict="replace")
        assert s.jobs() == [new]
        await clock.travel(1)
        assert events.outcomes("a") == [Outcome.CANCELLED, Outcome.SUCCEEDED]
        assert old.statistics().runs == new.statistics().runs == 1


async def test_ids_that_scheduler_makes_do_not_meet_those_of_users(clock):
    """A user may call a job "job-1" before the scheduler would."""
    async with Scheduler(clock=clock) as s:
        s.add(nothing, EVERY_SECOND, id="job-1")
        assert s.add(nothing, EVERY_SECOND).id != "job-1"


async def test_a_job_can_be_added_by_a_job(clock, events):
    """It is seen by the loop at once."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def parent():
            s.add(nothing, "@every 1h", id="child", start="now")

        s.add(parent, At(START + timedelta(seconds=1)))
        await clock.travel(1)
        assert events.outcomes("child") == [Outcome.SUCCEEDED]


async def test_ten_thousand_jobs_spread_evenly_over_their_interval():
    """Added together they start apart: in no tenth of the interval more than a fifth off the mean."""
    s = Scheduler(clock=ManualClock())
    tenths = Counter()
    for number in range(10_000):
        start = s.add(nothing, "@every 10s", id=f"check-{number}").next_start
        assert 0 < start.timestamp() - T0 <= 10
        tenths[int(start.timestamp() * 1e6) % 10_000_000 // 1_000_000] += 1
    assert len(tenths) == 10
    assert all(800 < count < 1200 for count in tenths.values())


def test_a_phase_is_the_same_in_every_process():
    """A job keeps its place in the interval over restarts, whenever they are."""
    slots = set()
    for restart in (START, START + timedelta(days=3, seconds=4.25)):
        job = Scheduler(clock=ManualClock(restart)).add(nothing, "@every 1m", id="check-7")
        slots.add((job.next_start - datetime.fromtimestamp(0, START.tzinfo)) % timedelta(minutes=1))
    assert slots == {phase("check-7", "1m")}


async def test_start_now_runs_at_once_and_then_keeps_to_the_grid(clock, events):
    """The first start moves nothing."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, EVERY_SECOND, id="a", start="now")
        clock.advance(0.25)
        s.add(nothing, EVERY_SECOND, id="b", start="now")
        await clock.travel(2)
        assert events.starts("a") == [T0 + 0.25, T0 + 1, T0 + 2]
        assert events.starts("b") == [T0 + 0.25, T0 + 1, T0 + 2]


@pytest.mark.parametrize(
    ("schedule", "start", "expected"),
    [
        pytest.param(Every("10s"), 25, [25, 35, 45], id="a grid goes through its start"),
        pytest.param(Every("10s"), -25, [5, 15, 25, 35, 45], id="through a past start too"),
        pytest.param(After("10s"), 25, [25, 35, 45], id="the first of a fixed delay"),
        pytest.param(Cron("* * * * *"), 61, [120], id="calendars start from there on"),
        pytest.param(Cron("* * * * *"), 60, [60, 120], id="the start itself included"),
    ],
)
async def test_a_datetime_as_start_is_the_first_start(clock, events, schedule, start, expected):
    """`start=` a datetime says from when on."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, schedule, start=START + timedelta(seconds=start))
        await clock.travel(max(expected) + 3)
    assert [round(at - T0, 6) for at in events.starts()] == expected


async def test_a_fixed_rate_does_not_drift_however_late_it_starts(clock, events):
    """Every start is due on the grid, though each is late by another amount."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, EVERY_SECOND)
        for late in (0.9, 0.1, 0.5, 0.0):
            clock.advance(1 - clock.monotonic() % 1 + late)
            await clock.travel(0)
    assert [since_start(event.due) for event in events.of(RunEnded)] == [1, 2, 3, 4]


async def test_after_counts_from_the_end_of_the_run(clock, events):
    """First at once, then each `interval` after the end, success or not."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def work():
            await clock.sleep(3)
            raise ValueError

        s.add(work, After("10s"))
        await clock.travel(30)
    assert [at - T0 for at in events.starts()] == [0, 13, 26]


async def test_a_start_is_never_early(clock, events):
    """A microsecond before it is due nothing runs."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, EVERY_SECOND)
        await clock.travel(1 - 1e-6)
        assert events.starts() == []
        await clock.travel(1e-6)
        assert len(events.starts()) == 1


async def test_ties_run_in_the_order_in_which_they_were_added(clock, events):
    """Jobs that are due at the same instant do not change places."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        for number in range(20):
            s.add(nothing, EVERY_SECOND, id=f"{number}")
        await clock.travel(2)
    order = [event.job_id for event in events.of(RunEnded)]
    assert order == [f"{number}" for number in range(20)] * 2


async def test_a_job_whose_schedule_ends_leaves_with_its_last_run(clock, events):
    """It is listed while it runs, then it has finished; its counts can still be asked."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(clock.sleep, At(START + timedelta(seconds=1)), id="once", args=(2,))
        await clock.travel(2)
        assert s.jobs() == [job]
        await clock.travel(1)
        assert s.jobs() == []
        assert events.of(JobFinished, RunEnded)[-1] == JobFinished("once")
        assert job.statistics().successes == 1
        assert job.next_start is None


async def test_a_removed_job_never_starts_again(clock, events):
    """Twice is harmless, and its id is free."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, EVERY_SECOND, id="a")
        await clock.travel(1)
        job.remove()
        job.remove()
        await clock.travel(3)
        assert len(events.starts()) == 1
        assert events.of(JobRemoved) == [JobRemoved("a")]
        assert job.next_start is None
        s.add(nothing, EVERY_SECOND, id="a")


async def test_removing_a_job_cancels_its_run_and_its_subtasks(clock, events):
    """What waits for room is dropped, what runs is cancelled."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        running = s.add(clock.sleep, EVERY_SECOND, id="running", args=(3600,))
        waiting = s.add(nothing, EVERY_SECOND, id="waiting")
        await clock.travel(1)
        waiting.remove()
        running.remove()
        await clock.travel(0)
        assert events.outcomes() == [Outcome.CANCELLED]
        assert events.of(RunEnded)[0].error == "cancelled: removed"
        assert s.statistics().active_tasks == s.statistics().waiting_tasks == 0


async def test_a_job_that_removes_itself_ran_once(clock, events):
    """Its own run is cancelled at the next chance it gives; it does not wait for itself."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def once():
            s.get("me").remove()

        s.add(once, EVERY_SECOND, id="me")
        await clock.travel(5)
        assert len(events.outcomes("me")) == 1
        assert s.jobs() == []


async def test_run_now_on_a_removed_job_says_so(clock):
    """The handle outlives the job and tells the truth."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, EVERY_SECOND, id="a")
        job.remove()
        with pytest.raises(JobNotFound, match="'a' has been removed"):
            job.run_now()


async def test_removed_jobs_are_not_kept_alive(clock):
    """Of thousands that wait for a time far off few stay reachable, nor what their arguments hold."""

    class Target:
        """Something big."""

    async with Scheduler(clock=clock) as s:
        alive = weakref.WeakSet()
        for number in range(5_000):
            target = Target()
            alive.add(target)
            s.add(nothing, Cron("0 0 1 1 *") if number % 2 else "@every 1d", args=(target,)).remove()
        del target
        await clock.travel(0)
        gc.collect()
        assert len(alive) < 1_500


async def test_jobs_come_and_go_from_eight_threads(clock, events):
    """Adds, removals, updates and resizes from everywhere leave exactly the jobs that should be left, and those run."""
    async with Scheduler(clock=clock, limits={"x": 3}) as s:
        s.listen(events)
        barrier = threading.Barrier(8)

        def work(number):
            barrier.wait()
            for count in range(50):
                job = s.add(nothing, EVERY_SECOND, id=f"{number}-{count}", needs="x")
                job.update(priority=number)
                job.pause()
                job.resume()
                s.resize(limit=10 + count, limits={"x": 1 + count})
                s.jobs()
                s.statistics()
                if count % 2:
                    job.remove()

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(run_sync, work, number)
        kept = {f"{number}-{count}" for number in range(8) for count in range(0, 50, 2)}
        assert {job.id for job in s.jobs()} == kept
        await clock.travel(1)
        assert Counter(event.job_id for event in events.of(RunEnded)) == Counter(kept)
        assert len(events.of(JobAdded)) == 400
        assert s.statistics().limits["x"].used == 0
