"""A year in seconds, always the same."""

import os
import threading
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio
import attrs
import pytest

from kit import at, nothing, since_start
from schedule import After, At, Calendar, Cron, Every, Missed, Window
from scheduler import (
    ClockJumped,
    JobFinished,
    JobRemoved,
    Outcome,
    Overlap,
    Retry,
    RunAbandoned,
    RunEnded,
    RunMissed,
    Scheduler,
    SchedulerStarted,
    SchedulerStopped,
    Subtask,
    current_run,
)
from scheduler.testing import simulate
from timerqueue.testing import START

BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])
ASKED_FOR = pytest.mark.parametrize("backend", os.environ.get("BACKENDS", "asyncio trio").split())
"""What is long runs on those that the environment names, as async tests do."""
TEN_YEARS = 10 * 365.25 * 86_400


@BACKENDS
def test_time_jumps_from_due_to_due(backend):
    """Each start is at its very instant."""
    done = simulate(lambda s, _: s.add(nothing, Every("1d", anchor=START), id="a") and None, "10d12h", backend=backend)
    assert [since_start(run.started) for run in done.runs("a")] == [day * 86_400 for day in range(1, 11)]
    assert done.jobs["a"].successes == done.statistics.runs == 10
    assert isinstance(done.events[0], SchedulerStarted) or isinstance(done.events[1], SchedulerStarted)
    assert done.events[-1] == SchedulerStopped(at(10.5 * 86_400), ())


@BACKENDS
def test_sleeping_on_the_clock_takes_simulated_time(backend):
    """Runs overlap in it as they would in real time."""

    def build(s, clock):
        for name, seconds in (("long", 5_400), ("short", 60)):
            s.add(clock.sleep, Every("1h", anchor=START), id=name, args=(seconds,))

    done = simulate(build, "4h40m", backend=backend)
    assert [run.duration for run in done.runs("long")] == [5_400, 5_400]
    assert [run.duration for run in done.runs("short")] == [60] * 4
    assert done.jobs["long"].missed == 2


@BACKENDS
def test_an_async_build_runs_beside_its_jobs(backend):
    """It may sleep, and change them."""

    async def build(s, clock):
        job = s.add(nothing, Every("1h", anchor=START), id="a")
        await clock.sleep(3 * 3600 + 60)
        job.pause()
        await clock.sleep(2 * 3600)
        job.resume()
        s.add(nothing, At(START + timedelta(hours=7)), id="b")
        await clock.sleep(3600)
        job.remove()

    done = simulate(build, "1d", backend=backend)
    assert [since_start(run.started) / 3600 for run in done.runs("a")] == [1, 2, 3, 6]
    assert len(done.runs("b")) == 1
    assert set(done.jobs) == {"a", "b"}
    assert [type(event) for event in done.events if isinstance(event, (JobRemoved, JobFinished))] == [
        JobRemoved,
        JobFinished,
    ]


@BACKENDS
def test_what_runs_at_the_end_is_cancelled(backend):
    """And is named in the last event."""
    done = simulate(lambda s, c: s.add(c.sleep, "@every 1h", id="a", args=(10**9,)) and None, "1d", backend=backend)
    assert [run.outcome for run in done.runs("a")] == [Outcome.CANCELLED]
    assert done.events[-1].cut_off == ("a",)


@BACKENDS
def test_it_ends_even_if_runs_ignore_their_cancellation(backend):
    """Time goes on for them until they have come to their end."""

    def build(s, clock):
        async def deaf():
            with anyio.CancelScope(shield=True):
                await clock.sleep(3 * 86_400)

        s.add(deaf, "@every 1h", id="deaf", timeout="5s")
        s.add(nothing, "@every 1h", id="good")

    done = simulate(build, "1d", backend=backend)
    assert {run.outcome for run in done.runs("deaf")} == {Outcome.TIMED_OUT}
    assert len([event for event in done.events if isinstance(event, RunAbandoned)]) == 24
    assert {run.lateness for run in done.runs("good")} == {0}


@BACKENDS
@pytest.mark.parametrize("end", ["stops", "raises"])
def test_an_early_end_waits_for_what_ignores_it(backend, end):
    """A build that stops the scheduler, or raises, leaves nothing behind either."""

    async def build(s, clock):
        async def deaf():
            with anyio.CancelScope(shield=True):
                await clock.sleep(3 * 86_400)

        s.add(deaf, "@every 1h", id="deaf")
        await clock.sleep(7_200)
        if end == "raises":
            raise ZeroDivisionError
        s.stop(grace=0)

    if end == "raises":
        with pytest.raises(ZeroDivisionError):
            simulate(build, "365d", backend=backend)
    else:
        done = simulate(build, "365d", backend=backend)
        assert done.events[-1].cut_off == ("deaf",)


@BACKENDS
def test_a_stop_by_the_build_ends_it(backend):
    """There is nothing more to simulate."""

    async def build(s, clock):
        s.add(nothing, Every("1h", anchor=START), id="a")
        await clock.sleep(2 * 3600 + 1)
        s.stop()

    done = simulate(build, "365d", backend=backend)
    assert len(done.runs("a")) == 2
    assert done.events[-1].at == at(7_201)


@BACKENDS
def test_steps_set_the_wall_clock(backend):
    """At given times from the start, in whatever order they are given."""
    steps = [("2d", -3600), ("1d", 3600), ("100d", 5)]
    done = simulate(lambda s, _: s.add(nothing, Cron("0 * * * *"), id="a") and None, "3d", steps=steps, backend=backend)
    jumps = [event for event in done.events if isinstance(event, ClockJumped)]
    assert [(since_start(jump.at), jump.seconds) for jump in jumps] == [(86_400 + 3600, 3600), (2 * 86_400, -3600)]


@BACKENDS
def test_threads_stop_time(backend):
    """What is done in a thread is done at one instant."""
    done = simulate(lambda s, _: s.add(threading.get_ident, "@every 1h", id="a") and None, "6h", backend=backend)
    assert {(run.outcome, run.duration) for run in done.runs("a")} == {(Outcome.SUCCEEDED, 0)}
    assert len(done.runs("a")) == 6


@BACKENDS
def test_what_build_raises_comes_out(backend):
    """At once or later."""

    def at_once(s, _clock):
        s.add(nothing, "@every 1h", id="a")
        s.add(nothing, "@every 1h", id="a")

    with pytest.raises(ValueError, match="'a'"):
        simulate(at_once, "1d", backend=backend)

    async def later(s, clock):
        await clock.sleep(5)
        at_once(s, clock)

    with pytest.raises(ValueError, match="'a'"):
        simulate(later, "1d", backend=backend)


def test_options_are_those_of_the_scheduler():
    """As is the start."""
    start = datetime(2030, 6, 1, 12, tzinfo=UTC)
    done = simulate(
        lambda s, c: [s.add(c.sleep, Every("1h", anchor=start), id=id, args=(60,)) for id in "ab"] and None,
        "90m", start=start, limit=1,
    )  # fmt: skip
    assert done.runs("b")[0].lateness == 60
    assert done.events[-1].at == start + timedelta(minutes=90)


def test_the_log_has_a_line_for_each_event():
    """When, what, of which job, and the rest; results and tracebacks are left out."""

    async def fail():
        raise ValueError("boom")

    done = simulate(lambda s, _: s.add(fail, Every("1h", anchor=START), id="a") and None, "1h1m")
    assert len(done.log()) == len(done.events) == len(done.times)
    (line,) = [line for line in done.log() if " RunEnded " in line]
    assert line.startswith("2026-01-01T01:00:00.000000+00:00 RunEnded a ")
    assert "boom" in line
    assert "Traceback" not in line


def test_a_simulation_is_frozen():
    """Its counts are records."""
    done = simulate(lambda _s, _c: None, "1d")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        done.events = ()


def test_another_seed_gives_another_year():
    """The jitter of retries is drawn from it, and nothing else is."""

    async def fail():
        raise ValueError

    def build(s, _clock):
        s.add(fail, "@every 1h", retry=Retry.exponential("1m", max_retries=None))

    logs = [simulate(build, "1d", seed=seed).log() for seed in (1, 1, 2)]
    assert logs[0] == logs[1] != logs[2]


class Tasks:
    """What the jobs of the year do: succeed, fail, crash, take their time, go on and on, ignore everything."""

    def __init__(self, clock):
        self.clock = clock

    async def quick(self):
        """Take no time."""
        return current_run().attempt

    async def slow(self):
        """Take a while."""
        await self.clock.sleep(1 + current_run().due.day * 60)

    async def flaky(self):
        """Fail on some days."""
        if current_run().due.day % 5 == 0 and current_run().attempt < 3:
            raise ConnectionError("no route to host")

    async def crashing(self):
        """Raise what no task should."""
        await self.clock.sleep(2)
        raise SystemExit(3)

    async def wide(self):
        """Return subtasks, one of which fails in summer."""
        return [Subtask(self.leaf, number, needs="x", timeout="1h") for number in range(3)]

    async def leaf(self, number):
        """Do a part."""
        await self.clock.sleep(number)
        if number == 2 and current_run().due.month in (6, 7):
            raise ValueError("too hot")
        return number

    async def hung(self):
        """Take longer than any timeout."""
        await self.clock.sleep(10**9)

    async def deaf(self):
        """Ignore being cancelled."""
        with anyio.CancelScope(shield=True):
            await self.clock.sleep(3_600)


WEEKS = Window(Cron("0 0 1 * *"), "3d")


def add_mixed_jobs(s, clock, count):
    """Most come weekly, some daily, one every three hours, with every option that there is."""
    tasks = Tasks(clock)
    kinds = [tasks.quick, tasks.slow, tasks.flaky, tasks.crashing, tasks.wide, tasks.hung, tasks.deaf]
    schedules = [
        lambda n: Every("7d") if n % 2 else Every("14d"),
        lambda n: Every("21d", jitter="1h"),
        lambda n: Cron(f"{n % 60} {n % 24} * * {n % 7}", tz=["UTC", "Europe/Berlin", "America/New_York"][n % 3]),
        lambda n: After("20d"),
        lambda n: Calendar("1 month", origin=START + timedelta(hours=n), tz="Europe/Berlin"),
        lambda n: At(START + timedelta(hours=8 * n)),
        lambda n: Cron("H H 1,15 * *") | Every("30d"),
        lambda n: Every("15d").except_(WEEKS),
    ]
    for n in range(count):
        schedule = "@every 3h" if n < 1 else "@daily" if n < 6 else Every("1d") if n < 12 else schedules[n % 8](n)
        s.add(
            kinds[n % 7],
            schedule,
            id=f"job-{n}",
            needs=["", "x", "y:1", {"x": 2}][n % 4],
            priority=n % 3,
            timeout="2h" if n % 7 >= 5 else None,
            retry=[None, Retry.exponential("1m", max_retries=3), Retry.linear("5m", max_retries=5)][n // 7 % 3],
            overlap=list(Overlap)[n % 4],
            missed=list(Missed)[n % 3 if n % 4 < 3 else n % 2],  # REPLACE and ALL exclude each other
            start="now" if n % 50 == 0 else None,
        )


async def mixed_year(s, clock, count):
    """So many jobs, some of which are changed on the way."""
    add_mixed_jobs(s, clock, count)
    for n in range(0, count, count // 10):
        await clock.sleep(30 * 86_400)
        s.get(f"job-{n}").pause()
        s.add(nothing, Every("7d"), id=f"new-{n}")
        if n:
            s.get(f"job-{n - count // 10}").resume()
            s.get(f"new-{n - count // 10}").remove()


YEAR = {
    "steps": [("30d", 3_600), ("60d", -3_600), ("90d5h", 7 * 86_400), ("200d", -86_400), ("300d", 0.4)],
    "limit": 50,
    "limits": {"x": 10, "y:*": 5},
    "kill_after": "1m",
}


@ASKED_FOR
@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
def test_a_year_of_hundreds_of_jobs_is_the_same_each_time(backend):
    """With clock steps and crashing tasks, twice with the same seed: one and the same log."""
    build = partial(mixed_year, count=200)
    first, second = (simulate(build, "365d", seed=7, backend=backend, **YEAR) for _ in range(2))
    assert first.log() == second.log()
    assert first.statistics == second.statistics
    check(first)
    assert first.statistics.runs > 6_000 + 14 * 200
    assert {run.outcome for run in first.events if isinstance(run, RunEnded)} >= {
        Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMED_OUT, Outcome.CANCELLED,
    }  # fmt: skip


@ASKED_FOR
@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
def test_a_month_with_a_wrong_clock_of_ten_years(backend):
    """Forth and back again: every job goes on, and what was jumped over is counted, not run through."""
    options = {**YEAR, "steps": [("5d", TEN_YEARS), ("10d", -TEN_YEARS), ("15d", -TEN_YEARS), ("20d", TEN_YEARS)]}
    done = simulate(lambda s, clock: add_mixed_jobs(s, clock, 300), "30d", backend=backend, **options)
    check(done)
    assert 1_000 < done.statistics.runs < 10_000
    assert len([event for event in done.events if isinstance(event, ClockJumped)]) == 4
    assert sum(event.count for event in done.events if isinstance(event, RunMissed)) > 1_000


def check(done):
    """Whatever happened, the books are balanced."""
    for id, counts in done.jobs.items():
        assert counts.runs == counts.successes + counts.failures, id
        assert counts.crashes == 0, id
    ended = [event for event in done.events if isinstance(event, RunEnded)]
    assert len(ended) == sum(counts.runs for counts in done.jobs.values()) == done.statistics.runs
    missed = sum(event.count for event in done.events if isinstance(event, RunMissed))
    assert missed == sum(counts.missed for counts in done.jobs.values()) == done.statistics.missed
    assert done.statistics.active_tasks == done.statistics.waiting_tasks == 0


def test_a_schedule_can_be_tried_out_before_it_is_believed():
    """What a user does with it: the runs of a nightly job over the night in which the clocks are set."""

    def build(s, clock):
        s.add(clock.sleep, Cron("30 2 * * *", tz="Europe/Berlin"), id="nightly", args=(5_400,))

    done = simulate(build, "3d", start=datetime(2026, 3, 28, tzinfo=UTC))
    assert [run.started.strftime("%d %H:%M") for run in done.runs("nightly")] == [
        "28 01:30",
        "29 01:00",
        "30 00:30",
    ]


def test_the_real_scheduler_is_what_is_simulated():
    """It is given to `build` as it is."""
    seen = []
    simulate(lambda s, _: seen.append(s), "1s")
    assert isinstance(seen[0], Scheduler)
