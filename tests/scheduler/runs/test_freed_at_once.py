"""What has ended or was removed is freed by counting references alone: the garbage collector finds nothing to do.

Garbage in circles waits for a collection of everything, and such a collection stops the loop for as long as it looks at
all jobs. So each scenario here is played with the collector off.
"""

import gc
import logging
import weakref
from datetime import timedelta

import pytest

from schedule import After, At, Every
from scheduler import Job, Overlap, Retry, Scheduler, Subtask
from scheduler.stores.memory import MemoryStore
from timerqueue import Alarm, Work, Worker
from timerqueue.testing import START


class Thing:
    """An argument or a result of the user's."""


@pytest.fixture(autouse=True)
def no_collections(monkeypatch):
    """Let nothing be freed but by counting references. Log records are formatted and gone: pytest would keep them, and
    with them errors.
    """
    monkeypatch.setattr(logging.getLogger("scheduler._runs.completion"), "handle", logging.Formatter().format)
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def kept(kinds=(Job, Work, Worker, Alarm)):
    """Count the jobs, runs, subtasks, workers and timers that are in memory, whoever holds them."""
    return sum(isinstance(each, kinds) for each in gc.get_objects())


def due(clock, seconds=1):
    return At(clock.now() + timedelta(seconds=seconds))


class Tasks:
    """What the jobs of these tests do, each with a thing of its own for an argument."""

    def __init__(self, clock):
        self.clock = clock
        self.things = []

    def thing(self):
        """Make one, and remember whether it lives."""
        thing = Thing()
        self.things.append(weakref.ref(thing))
        return thing

    async def returns(self, _thing):
        return self.thing()

    async def waits(self, _thing):
        await self.clock.sleep(1)
        return self.thing()

    async def fails(self, thing):
        raise ValueError(thing)

    async def fails_late(self, thing):
        await self.clock.sleep(1)
        raise ValueError(thing)

    async def stays(self, _thing):
        await self.clock.sleep(3600)

    async def has_subtasks(self, thing):
        subtasks = [self.returns, self.waits, self.fails, self.fails_late]
        return [Subtask(each, thing) for each in subtasks] + [Subtask(self.waits, thing, timeout="20s")]


RUNS = [
    pytest.param("returns", {}, id="one that never waits"),
    pytest.param("waits", {}, id="one that waits"),
    pytest.param("waits", {"timeout": "1h"}, id="one with a timeout that was not reached"),
    pytest.param("waits", {"needs": "http"}, id="one under a limit"),
    pytest.param("fails", {}, id="one that fails at once"),
    pytest.param("fails_late", {"timeout": "1h"}, id="one that fails late"),
    pytest.param("fails_late", {"retry": Retry.constant("2s", max_retries=5)}, id="one that is tried again"),
    pytest.param("stays", {"timeout": "5s"}, id="one that takes too long"),
    pytest.param("has_subtasks", {"timeout": "1h"}, id="one with subtasks"),
    pytest.param("has_subtasks", {"priority": 1}, id="one with a priority"),
]


@pytest.mark.parametrize("is_heard", [False, True], ids=["unheard", "heard"])
@pytest.mark.parametrize(("task", "options"), RUNS)
async def test_of_a_job_that_is_over_nothing_is_left(clock, task, options, is_heard):
    """Its runs, their timeouts, tasks and errors, and what the user gave and returned."""
    tasks = Tasks(clock)
    async with Scheduler(clock=clock, limits={"http": 2}) as s:
        if is_heard:
            s.listen(lambda _event: None)
        before = kept()
        for _ in range(20):
            s.add(getattr(tasks, task), due(clock), args=(tasks.thing(),), **options)
        await clock.travel(60)
        while s.jobs():  # those that have given up are still there
            s.jobs()[0].remove()
        await clock.travel(1)
        assert kept() <= before
        assert sum(thing() is not None for thing in tasks.things) == 0


@pytest.mark.parametrize("overlap", list(Overlap))
async def test_of_overlapping_runs_nothing_is_left(clock, overlap):
    """Nor of the ticks that were queued, or of the runs that were replaced."""
    tasks = Tasks(clock)
    async with Scheduler(clock=clock) as s:
        before = kept()
        job = s.add(clock.sleep, Every("1s"), args=(2.5,), overlap=overlap, timeout="1m")
        s.add(tasks.waits, Every("1s"), id="other", args=(tasks.thing(),), overlap=overlap)
        await clock.travel(20)
        job.remove()
        s.get("other").remove()
        del job
        await clock.travel(5)
        assert kept() <= before
        assert sum(thing() is not None for thing in tasks.things) == 0


@pytest.mark.parametrize("state", ["waiting", "running", "waiting for room", "paused", "about to be tried again"])
async def test_of_a_removed_job_nothing_is_left(clock, state):
    """The heap, the lines and the lists hold nothing of it, though others go on."""
    tasks = Tasks(clock)
    task = tasks.fails if state == "about to be tried again" else tasks.stays
    again = Retry.constant("1h", past_next_start=True)
    options = {"limit": 5} if state == "waiting for room" else {}
    async with Scheduler(clock=clock, **options) as s:
        for number in range(30):
            s.add(clock.sleep, Every("1h"), id=f"other {number}", args=(0.5,), start=clock.now() + timedelta(hours=1))
        before = kept((Job, Worker, Alarm))
        jobs = [s.add(task, Every("10s"), args=(tasks.thing(),), timeout="2h", retry=again) for _ in range(20)]
        await clock.travel(11 if state != "waiting" else 0.01)
        if state == "paused":
            s.pause()
        while jobs:
            jobs.pop().remove()
        await clock.travel(0.01)
        assert sum(thing() is not None for thing in tasks.things) == 0
        assert kept((Job, Worker, Alarm)) <= before  # empty places in a line stay until there are a hundred


async def test_the_next_jobs_do_not_wait_for_those_before_them_to_be_let_go(clock):
    """Jobs that are replaced all the time take no more room than they take at any one time."""
    tasks = Tasks(clock)
    async with Scheduler(clock=clock) as s:
        s.add(tasks.waits, Every("1h"), id="0", args=(tasks.thing(),))
        most = 0
        for number in range(500):
            s.add(tasks.waits, Every(f"{10 + number % 50}m"), id=str(number + 1), args=(tasks.thing(),), timeout="50m")
            s.get(str(number)).remove()
            await clock.travel(1)
            most = max(most, sum(thing() is not None for thing in tasks.things))
        assert most <= 3


@pytest.mark.parametrize("task", ["returns", "waits", "fails", "stays"])
async def test_of_a_stored_run_nothing_is_left(clock, task):
    """Its mark and its record are in the store, and nowhere else."""
    tasks = Tasks(clock)
    thing = tasks.thing()

    async def work():
        await getattr(tasks, task)(thing)

    async with Scheduler(store=MemoryStore(), clock=clock) as s:
        s.register("work", work)
        await clock.travel(1)
        before = kept()
        for number in range(20):
            s.add("work", due(clock), id=str(number), timeout="5s")
        await clock.travel(60)
        await s.flush()
        assert kept() <= before


async def test_the_worker_of_a_slice_is_left_by_its_task(clock):
    """Each of them holds the other while it serves: one circle for each turn in which something runs."""
    async with Scheduler(clock=clock) as s:
        s.add(clock.sleep, After("1s"), args=(0,))
        await clock.travel(5)
        before = kept((Worker,))
        await clock.travel(100)
        assert kept((Worker,)) <= before


async def test_schedules_that_differ_are_not_taken_for_one(clock):
    """Of one interval there are several schedules: with a pause after the end, an anchor, or jitter."""
    kinds = [
        Every("1m"),
        After("1m"),
        Every("1m", anchor=START),
        Every("1m", jitter="10s"),
        At(START + timedelta(days=1)),
    ]
    async with Scheduler(clock=clock) as s:
        jobs = [s.add(clock.sleep, kind, args=(0,)) for kind in [*kinds, *kinds, Every("2m")]]
        assert [job.schedule for job in jobs if not getattr(job.schedule, "jitter", None)] == [
            kind for kind in [*kinds, *kinds, Every("2m")] if not getattr(kind, "jitter", None)
        ]
        jittered = [job.schedule for job in jobs if getattr(job.schedule, "jitter", None)]
        assert [(each.interval, each.key) for each in jittered] == [(timedelta(minutes=1), jobs[n].id) for n in (3, 8)]


async def test_of_equal_schedules_few_are_kept(clock):
    """A program that makes a schedule for each job keeps none for each job."""
    async with Scheduler(clock=clock) as s:
        watched = []
        for number in range(20):
            schedule = Every("1m") if number % 2 else After("2m")
            watched.append(weakref.ref(schedule))
            assert s.add(clock.sleep, schedule, args=(0,)).schedule == schedule
        del schedule
        assert sum(schedule() is not None for schedule in watched) <= 3  # one of each kind, and the last
