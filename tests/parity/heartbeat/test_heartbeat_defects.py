"""What Heartbeat's scheduler does wrong, and what ours does instead. Numbers as in the notes on Heartbeat, section 4.

| defect | where |
|---|---|
| 4, 5 | tests/schedule: no next start, clock changes; what of them concerns a running scheduler is here |
| 8 | tests/timerqueue for the heap, test_add_and_remove.py for jobs |
| 13 | tests/parity/heartbeat/test_heartbeat_loader.py: a slow store of states |
"""

import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import anyio
import pytest
from anyio.to_thread import run_sync

from kit import nothing, since_start
from schedule import At, Cron, Every, ScheduleError
from scheduler import (
    AlreadyStopped,
    InvalidJob,
    JobFinished,
    Outcome,
    RunAbandoned,
    RunEnded,
    RunMissed,
    Scheduler,
    Subtask,
)
from scheduler.testing import simulate
from timerqueue.testing import START

EVERY_SECOND = Every("1s", anchor=START)


async def test_heartbeat_defect_1_no_wait_shifts_the_phase(clock, events):
    """A job that waited for room, or ran long, is due on its grid again."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, Every("7s", anchor=START), id="hog", args=(2.5,))
        s.add(clock.sleep, EVERY_SECOND, id="a", args=(0.3,))
        await clock.travel(100)
        late = [event for event in events.of(RunEnded, job_id="a") if event.lateness > 0]
        assert late
        assert all(since_start(event.due) % 1 == 0 for event in events.of(RunEnded, job_id="a"))
        s.stop(grace=0)


def test_heartbeat_defect_2_the_zone_of_a_schedule_holds_on_every_start():
    """Not for the first one only."""

    def build(s, _clock):
        s.add(nothing, Cron("0 9 * * *", tz="America/New_York"), id="a")

    done = simulate(build, "5d")
    assert {run.due.hour for run in done.runs("a")} == {14}
    assert len(done.runs("a")) == 5


@pytest.mark.parametrize(("interval", "work"), [("1s", 0.0), ("100ms", 0.05), ("2s", 1.2)])
async def test_heartbeat_defect_3_runs_on_time_are_never_counted_as_missed(clock, events, interval, work):
    """However short the interval, and however much of it is used."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, Every(interval, anchor=START), args=(work,))
        await clock.travel(10)
        assert s.statistics().missed == 0
        assert events.of(RunMissed) == []
        s.stop(grace=0)


async def test_heartbeat_defect_3_a_start_delayed_by_a_limit_alone_is_counted(clock):
    """As lateness, by type."""
    async with Scheduler(limits={"http": 1}, clock=clock) as s:
        for number in range(2):
            s.add(clock.sleep, "@every 1h", id=f"{number}", args=(3,), needs="http", start="now")
        await clock.travel(6)
        assert s.get("1").statistics().lateness_max == pytest.approx(3)
        assert s.statistics().lateness["http"].quantile(1) >= 2.9


@pytest.mark.parametrize("expression", ["0 0 31 2 *", "0 0 30 2 *"])
async def test_heartbeat_defect_4_a_schedule_that_never_comes_is_refused(clock, expression):
    """It does not run now for ever."""
    async with Scheduler(clock=clock) as s:
        with pytest.raises((ScheduleError, InvalidJob)):
            s.add(nothing, expression)
        assert s.jobs() == []


async def test_heartbeat_defect_4_a_schedule_without_a_next_start_ends_its_job(clock, events):
    """With a message, after its last run."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, At(START.replace(second=1)), id="a")
        await clock.travel(100)
        assert len(events.starts("a")) == 1
        assert events.of(JobFinished) == [JobFinished("a")]


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin"])
@pytest.mark.parametrize(
    ("expression", "runs"), [("0 * * * *", 24), ("*/30 * * * *", 48), ("30 2 * * *", 1), ("30 1 * * *", 1)]
)
@pytest.mark.parametrize(("name", "day"), [("spring", datetime(2026, 3, 8)), ("autumn", datetime(2026, 11, 1))])
@pytest.mark.parametrize("european", [False, True])
def test_heartbeat_defect_5_no_clock_change_brings_a_storm_or_a_silence(zone, expression, runs, name, day, european):
    """On each of the days on which clocks change on either side, a job runs as often as on any other in real time."""
    if european:
        day = {"spring": datetime(2026, 3, 29), "autumn": datetime(2026, 10, 25)}[name]

    def build(s, clock):
        s.add(clock.sleep, Cron(expression, tz=zone), id="a", args=(0.1,))

    done = simulate(build, "24h", start=day.replace(hour=4 if zone.startswith("A") else 0, tzinfo=UTC))
    assert abs(len(done.runs("a")) - runs) <= 1
    starts = [run.started for run in done.runs("a")]
    assert all(b - a >= timedelta(seconds=1_800) for a, b in pairwise(starts))


@pytest.mark.parametrize(
    "error", [ValueError("boom"), SystemExit(1), RecursionError(), MemoryError(), AssertionError()]
)
async def test_heartbeat_defect_6_a_task_that_blows_up_takes_nobody_with_it(clock, events, error):
    """A failed run is all that is left of it."""

    async def bad():
        raise error

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(bad, EVERY_SECOND, id="bad")
        s.add(nothing, EVERY_SECOND, id="good")
        await clock.travel(3)
        assert events.outcomes("bad") == [Outcome.FAILED] * 3
        assert events.outcomes("good") == [Outcome.SUCCEEDED] * 3


@pytest.mark.parametrize("event", ["removed", "stopped"])
async def test_heartbeat_defect_7_run_once_ends_if_a_job_never_gets_to_run(clock, event):
    """Removed, or the scheduler stopped, before its first run."""
    s = Scheduler(limit=1, clock=clock)

    async def first():
        if event == "removed":
            s.get("second").remove()
        else:
            s.stop()

    s.add(first, EVERY_SECOND, id="first")
    s.add(nothing, EVERY_SECOND, id="second")
    assert set(await s.run_once()) == {"first"}


async def test_heartbeat_defect_8_removed_jobs_leave_no_entries(clock):
    """Fifty thousand hourly jobs come and go: of their timers few stay."""
    async with Scheduler(clock=clock) as s:
        for number in range(50_000):
            s.add(nothing, "@every 1h", id=f"{number}").remove()
        assert s.statistics().jobs == 0
        assert len(s._core.queue) < 50


async def test_heartbeat_defect_9_a_type_limit_counts_tasks(clock):
    """With a limit of one, one runs at a time, its continuations included."""
    running, peak = [0], [0]
    async with Scheduler(limits={"http": 1}, clock=clock) as s:

        async def task():
            running[0] += 1
            peak[0] = max(peak[0], running[0])
            await clock.sleep(0.1)
            running[0] -= 1

        async def fork():
            return [Subtask(task, needs="http")] * 50

        s.add(fork, "@every 1h", needs="http", start="now")
        await clock.travel(6)
        assert peak == [1]
        assert s.statistics().limits["http"].used == 0


async def test_heartbeat_defect_9_tasks_that_end_together_leave_no_unit_behind(clock):
    """Two that end in the same instant give back two."""
    async with Scheduler(limits={"http": 2}, clock=clock) as s:

        async def fork():
            return [Subtask(clock.sleep, 1, needs="http")] * 2

        s.add(fork, EVERY_SECOND, needs={"http": 2})
        await clock.travel(20.5)
        assert s.get("job-1").statistics().successes >= 9
        s.stop(grace=0)


async def test_heartbeat_defect_10_a_hung_check_gives_its_unit_back(clock, events):
    """Its run times out, is given up if it does not listen, and its job runs again."""
    async with Scheduler(limit=1, clock=clock, kill_after="2s") as s:
        s.listen(events)

        async def hung():
            with anyio.CancelScope(shield=True):
                await clock.sleep(60)

        s.add(hung, Every("10s", anchor=START), id="hung", timeout="5s")
        await clock.travel(38)
        assert len(events.of(RunAbandoned)) == 3
        assert events.outcomes("hung") == [Outcome.TIMED_OUT] * 3
        s.stop(grace=0)
        await clock.travel(100)


def test_heartbeat_defect_11_jobs_that_are_added_together_do_not_start_together():
    """A thousand jobs of ten seconds: never thirty in a tenth of a second, where a herd would be a thousand."""

    def build(s, _clock):
        for number in range(1_000):
            s.add(nothing, "@every 10s", id=f"{number}")

    done = simulate(build, "20s")
    starts = sorted(since_start(event.started) for event in done.events if isinstance(event, RunEnded))
    assert len(starts) == 2_000
    most = max(sum(1 for at in starts if begin <= at < begin + 0.1) for begin in starts[:1_000:10])
    assert most < 30


async def test_heartbeat_defect_11_a_quick_job_is_not_starved_by_slow_ones(clock, events):
    """Limit 10, two hundred jobs of 200 ms every second: a quick extra job of a higher priority keeps its second."""
    async with Scheduler(limit=10, clock=clock) as s:
        s.listen(events)
        for number in range(200):
            s.add(clock.sleep, Every("1s"), id=f"{number}", args=(0.2,))
        s.add(nothing, Every("1s"), id="quick", priority=1)
        await clock.travel(5)
        assert len(events.starts("quick")) == 5
        assert max(event.lateness for event in events.of(RunEnded, job_id="quick")) <= 0.21
        for job in s.jobs():
            job.remove()
        await clock.travel(1)


async def test_heartbeat_defect_12_an_add_that_races_with_stop_is_told(clock):
    """It either is a job of the scheduler or raises; none is lost unseen."""
    told, added = [], []
    async with Scheduler(clock=clock) as s:
        barrier = threading.Barrier(5)

        def add(number):
            barrier.wait()
            while True:
                try:
                    added.append(s.add(nothing, "@every 1h", id=f"{number}-{len(added)}", on_conflict="keep").id)
                except AlreadyStopped:
                    told.append(number)
                    return

        def stop():
            barrier.wait()
            s.stop()

        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(run_sync, add, number)
            group.start_soon(run_sync, stop)
    assert sorted(told) == [0, 1, 2, 3]
    assert {job.id for job in s.jobs()} == set(added)


async def test_heartbeat_defect_12_stop_waits_for_what_runs(clock, events):
    """For its grace, and says what it cut off."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(clock.sleep, EVERY_SECOND, id="quick", args=(2,))
        s.add(clock.sleep, EVERY_SECOND, id="slow", args=(20,))
        await clock.travel(1)
        s.stop(grace="5s")
        await clock.travel(6)
    assert events.outcomes("quick") == [Outcome.SUCCEEDED]
    assert events.outcomes("slow") == [Outcome.CANCELLED]
    assert events[-1].cut_off == ("slow",)


async def test_heartbeat_defect_14_clocks_do_not_mix(clock, events):
    """After a step of the wall clock intervals and calendars both start when they should, in their order."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, Every("10m", anchor=START), id="interval")
        s.add(nothing, Cron("*/10 * * * *"), id="calendar")
        await clock.travel(60)
        clock.step(300)
        await clock.travel(239)
        assert events.of(RunEnded) == []
        await clock.travel(2)
        assert [event.job_id for event in events.of(RunEnded)] == ["calendar"]
        await clock.travel(300)
        assert [event.job_id for event in events.of(RunEnded)] == ["calendar", "interval"]


async def test_heartbeat_defect_14_a_suspend_moves_calendars_at_once(clock, events):
    """They do not stand still for as long as the machine did."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, Cron("0 * * * *"), id="hourly")
        clock.suspend(3 * 3_600 + 1_800)
        await clock.travel(1)
        assert [since_start(event.due) for event in events.of(RunEnded)] == [3 * 3_600]
        await clock.travel(1_800)
        assert len(events.of(RunEnded)) == 2


@pytest.mark.parametrize("text", ["@every 0s", "@every -5s", "@every10s", "foobar", ""])
def test_heartbeat_senseless_schedules_are_refused_when_they_are_added(text):
    """Heartbeat takes the first three."""
    with pytest.raises((ScheduleError, InvalidJob)):
        Scheduler().add(nothing, text)
