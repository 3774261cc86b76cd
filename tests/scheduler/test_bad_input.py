"""Bad input and faults: each ends in a clear error or a recorded outcome, and no other job notices."""

import asyncio
import math
import time
from datetime import datetime, timedelta
from functools import partial

import anyio
import pytest

from kit import nothing
from schedule import At, Every, Missed, Schedule, ScheduleError
from scheduler import (
    InvalidJob,
    JobParked,
    JobState,
    Outcome,
    Overlap,
    RunEnded,
    Scheduler,
    SchedulerError,
    Subtask,
)
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START

EVERY_SECOND = Every("1s", anchor=START)


class Broken(Schedule):
    """A schedule of a user's that goes wrong after so many good answers."""

    def __init__(self, good, bad):
        self.good = good
        self.bad = bad

    def next(self, after):
        """Answer a second later, until the good answers are used up."""
        self.good -= 1
        if self.good >= 0:
            return after + timedelta(seconds=1)
        return self.bad(after)

    def __repr__(self):
        return "Broken()"


def raises(_after):
    """Fail."""
    raise ZeroDivisionError("my calendar is gone")


WRONG_ANSWERS = {
    "raises": (raises, "my calendar is gone"),
    "goes backwards": (lambda after: after - timedelta(seconds=1), "not later|strictly later"),
    "stands still": (lambda after: after, "not later|strictly later"),
    "is naive": (lambda after: (after + timedelta(seconds=1)).replace(tzinfo=None), "aware|naive|zone"),
    "is a number": (lambda _after: 12.5, "12.5|datetime"),
}


class Unkind(BaseException):
    """No Exception at all."""


FAULTS = {
    "an error": ValueError("boom"),
    "an exit": SystemExit(3),
    "no Exception": Unkind("boom"),
    "an end of iteration": StopIteration(1),
    "an end of an async iteration": StopAsyncIteration(),
    "a generator's end": GeneratorExit(),
    "a group": ExceptionGroup("several", [ValueError(1), KeyError(2)]),
    "a cancellation of asyncio's": asyncio.CancelledError(),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("waits_first", [False, True])
async def test_what_a_task_raises_fails_its_run_and_nothing_else(clock, events, fault, waits_first):
    """Its own kind of cancellation included; the job and its neighbours start again as ever."""
    async with Scheduler(limit=2, clock=clock) as s:
        s.listen(events)

        async def bad():
            if waits_first:
                await clock.sleep(0.25)
            raise fault

        s.add(bad, EVERY_SECOND, id="bad")
        s.add(clock.sleep, EVERY_SECOND, id="good", args=(0.5,))
        await clock.travel(3.75)
        assert events.outcomes("bad") == [Outcome.FAILED] * 3
        assert events.outcomes("good") == [Outcome.SUCCEEDED] * 3
        assert events.of(RunEnded, job_id="bad")[0].error
        assert "test_bad_input.py" in events.of(RunEnded, job_id="bad")[0].traceback
        assert s.statistics().active_tasks == 0


async def test_a_task_that_cancels_itself_on_its_backend_fails_alone(clock, events, anyio_backend_name):
    """A cancel scope of its own is its own affair; one that it leaves open is closed for it."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def bad():
            with anyio.CancelScope() as scope:
                scope.cancel()
                await anyio.sleep(1)
            raise ValueError

        s.add(bad, EVERY_SECOND, id="bad")
        s.add(nothing, EVERY_SECOND, id="good")
        await clock.travel(2)
        assert events.outcomes("bad") == [Outcome.FAILED] * 2
        assert events.outcomes("good") == [Outcome.SUCCEEDED] * 2


async def test_tasks_may_use_task_groups_and_timeouts_of_their_own(clock, events):
    """Structured concurrency inside a run works on a worker as on a task of its own."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def task():
            done = []
            async with anyio.create_task_group() as group:
                for number in range(3):
                    group.start_soon(clock.sleep, number)
            with anyio.move_on_after(0):
                await clock.sleep(3600)
                done.append("never")
            return done

        s.add(task, EVERY_SECOND, id="a", start="now")
        await clock.travel(2.5)
        assert events.of(RunEnded)[0].outcome is Outcome.SUCCEEDED
        assert events.of(RunEnded)[0].result == []
        s.stop(grace=0)


@pytest.mark.parametrize(("bad", "says"), WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
async def test_a_schedule_that_is_wrong_at_once_is_refused(clock, bad, says):
    """`add` raises, and there is no such job."""
    async with Scheduler(clock=clock) as s:
        with pytest.raises((SchedulerError, ScheduleError, ZeroDivisionError), match=says):
            s.add(nothing, Broken(0, bad), id="bad")
        assert s.jobs() == []


@pytest.mark.parametrize(("bad", "says"), WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
async def test_a_schedule_that_goes_wrong_later_parks_its_job(clock, events, bad, says):
    """The due run still runs; the event names the error; no other job notices; an update brings it back."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, Broken(2, bad), id="bad")
        s.add(nothing, EVERY_SECOND, id="good")
        await clock.travel(5.5)
        assert len(events.outcomes("bad")) == 2
        assert len(events.outcomes("good")) == 5
        (parked,) = events.of(JobParked)
        assert parked.job_id == "bad"
        assert any(word in parked.error for word in says.split("|"))
        assert job.state is JobState.DISABLED
        assert job.error == parked.error
        assert job in s.jobs()
        job.update(schedule=EVERY_SECOND)
        await clock.travel(1)
        assert len(events.outcomes("bad")) == 3
        assert job.error is None


@pytest.mark.parametrize(("bad", "says"), WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
async def test_a_schedule_that_goes_wrong_in_a_gap_parks_its_job(clock, events, bad, says):
    """Found when it is asked what was missed; others are made up for as ever."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, Broken(2, bad), id="bad")
        s.add(nothing, EVERY_SECOND, id="good")
        clock.advance(600)
        await clock.travel(0)
        assert [event.job_id for event in events.of(JobParked)] == ["bad"]
        assert len(events.outcomes("good")) == 1
        await clock.travel(5)
        assert len(events.outcomes("good")) == 6


@pytest.mark.parametrize(("bad", "says"), WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
@pytest.mark.parametrize("step", [-86_400, 86_400])
async def test_a_schedule_that_goes_wrong_when_the_clock_is_set_parks_its_job(clock, events, bad, says, step):
    """It is asked anew after a step; others are planned as ever."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(nothing, Broken(1, bad), id="bad")
        s.add(nothing, EVERY_SECOND, id="good")
        clock.step(step)
        await clock.travel(3.5)
        assert [event.job_id for event in events.of(JobParked)] == ["bad"]
        assert len(events.outcomes("good")) == 3


async def test_asking_for_starts_of_a_broken_schedule_hurts_only_the_asker(clock, events):
    """`next_starts` raises what the schedule raises, and the job goes on."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, Broken(1, raises), id="bad")
        with pytest.raises(ZeroDivisionError):
            job.next_starts(3)
        await clock.travel(1)
        assert len(events.outcomes("bad")) == 1


async def test_resuming_a_job_with_a_broken_schedule_parks_it(clock, events):
    """It does not raise in the caller, who may be in another thread."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(nothing, Broken(1, raises), id="bad")
        job.pause()
        job.resume()
        await clock.travel(5)
        assert job.state is JobState.DISABLED
        assert len(events.of(JobParked)) == 1


async def test_a_listener_that_raises_hurts_nobody(clock, events):
    """Neither the run, nor other listeners, nor the scheduler; it is logged."""

    def bad(_event):
        raise ZeroDivisionError

    async with Scheduler(clock=clock) as s:
        s.listen(bad)
        s.listen(events)
        s.add(nothing, EVERY_SECOND, id="a")
        await clock.travel(3)
        assert events.outcomes("a") == [Outcome.SUCCEEDED] * 3


async def test_a_listener_may_call_the_scheduler(clock, events):
    """Removing a job at its first failure is what listeners are for."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        def remove(event):
            if isinstance(event, RunEnded):
                s.get(event.job_id).remove()
                s.add(nothing, EVERY_SECOND, id="next", on_conflict="keep")

        end = s.listen(remove)
        s.add(nothing, EVERY_SECOND, id="a")
        await clock.travel(1)
        end()
        await clock.travel(2)
        assert len(events.outcomes("a")) == 1
        assert len(events.outcomes("next")) == 2


async def test_a_result_whose_repr_raises_hurts_nobody(clock, events):
    """Results are handed on and never looked at."""

    class Bad(list):
        __hash__ = None

        def __repr__(self):
            raise ZeroDivisionError

        def __bool__(self):
            raise ZeroDivisionError

        def __eq__(self, other):
            raise ZeroDivisionError

    async def task():
        return Bad()

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(task, EVERY_SECOND, id="a")
        await clock.travel(1)
        assert events.outcomes() == [Outcome.SUCCEEDED]


async def test_an_error_whose_text_raises_is_a_failure_like_any_other(clock, events):
    """Even then there is an outcome, and others run on."""

    class Bad(Exception):
        def __str__(self):
            raise ZeroDivisionError

    async def task():
        raise Bad

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(task, EVERY_SECOND, id="bad")
        s.add(nothing, EVERY_SECOND, id="good")
        await clock.travel(2)
        assert events.outcomes("bad") == [Outcome.FAILED] * 2
        assert events.outcomes("good") == [Outcome.SUCCEEDED] * 2


NAIVE = datetime(2026, 5, 1)

SENSELESS = {
    "no callable": ({"func": "text"}, "func|call"),
    "a coroutine instead of its function": ({"func": None}, "func|call"),
    "no schedule": ({"schedule": b"@every 10s"}, "schedule"),
    "text that is no schedule": ({"schedule": "often"}, "often"),
    "a schedule without a start": ({"schedule": At(START - timedelta(days=1))}, "no start"),
    "an id that is no text": ({"id": 5}, "id"),
    "an empty id": ({"id": ""}, "id"),
    "text as args": ({"args": 5}, "args"),
    "kwargs that are no mapping": ({"kwargs": 5}, "kwargs"),
    "a priority that is no number": ({"priority": "high"}, "priority"),
    "a priority without end": ({"priority": math.inf}, "priority"),
    "a priority of nothing": ({"priority": math.nan}, "priority"),
    "a timeout of nothing": ({"timeout": 0}, "timeout"),
    "a negative timeout": ({"timeout": -1}, "timeout"),
    "a timeout that is no number": ({"timeout": math.nan}, "timeout"),
    "a timeout that is no duration": ({"timeout": "soon"}, "timeout"),
    "a retry that is a number": ({"retry": 3}, "retry"),
    "an overlap that is none": ({"overlap": "drop"}, "overlap"),
    "a missed policy that is none": ({"missed": "newest"}, "missed"),
    "a negative grace": ({"grace": -1}, "grace"),
    "no room at all": ({"max_running": 0}, "max_running"),
    "half a run": ({"max_running": 1.5}, "max_running"),
    "a catch-up of nothing": ({"catch_up": 0}, "catch_up"),
    "a start that is text": ({"start": "soon"}, "start"),
    "a naive start": ({"start": NAIVE}, "naive"),
    "a start that is a number": ({"start": 5}, "start"),
    "a conflict that is not known": ({"on_conflict": "ignore", "id": "taken"}, "on_conflict"),
    "a conflict that is not known, without one": ({"on_conflict": "ignore"}, "on_conflict"),
    "a rule against another": ({"overlap": Overlap.REPLACE, "missed": Missed.ALL}, "REPLACE.*ALL"),
    "an option that is not known": ({"tiemout": 5}, "tiemout"),
    "tags that are a number": ({"tags": 5}, "tags"),
}


@pytest.mark.parametrize(("options", "says"), SENSELESS.values(), ids=SENSELESS)
def test_a_senseless_job_is_refused_by_the_name_of_its_argument(clock, options, says):
    """The message names it, and nothing has changed."""
    s = Scheduler(clock=clock)
    taken = s.add(nothing, EVERY_SECOND, id="taken")
    given = {"func": nothing, "schedule": EVERY_SECOND, **options}
    with pytest.raises((InvalidJob, ScheduleError, TypeError), match=says):
        s.add(given.pop("func"), given.pop("schedule"), **given)
    assert s.jobs() == [taken]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"limit": 0}, "limit|capacity"),
        ({"limits": {"http": 0}}, "http"),
        ({"limits": {"http": math.nan}}, "http"),
        ({"max_subtasks": 0}, "max_subtasks"),
        ({"max_subtasks": -5}, "max_subtasks"),
        ({"kill_after": -1}, "kill_after"),
        ({"kill_after": "soon"}, "kill_after"),
        ({"blocked_after": 0}, "blocked_after"),
        ({"blocked_after": -1}, "blocked_after"),
        ({"blocked_after": math.nan}, "blocked_after"),
        ({"limmit": 5}, "limmit"),
        ({"store": "jobs.db"}, "a text for store must be a URL: 'sqlite:///jobs.db'"),
        ({"store": MemoryStore}, "store"),
        ({"clock": time.monotonic}, r"clock must be something such as ManualClock\(\)"),
    ],
)
def test_a_senseless_scheduler_is_refused_by_the_name_of_its_argument(options, says):
    """When it is made, not when it runs."""
    with pytest.raises((ValueError, TypeError), match=says):
        Scheduler(**options)


@pytest.mark.parametrize("grace", [-1, math.nan, "soon", None])
async def test_a_senseless_grace_stops_nothing(clock, grace):
    """The error names it, and the scheduler runs on."""
    async with Scheduler(clock=clock) as s:
        with pytest.raises((ValueError, TypeError), match="grace"):
            s.stop(grace=grace)
        s.add(nothing, EVERY_SECOND)


@pytest.mark.parametrize("count", [-1, 1.5, "3"])
def test_a_senseless_number_of_starts_is_refused(clock, count):
    """Instead of an endless answer."""
    job = Scheduler(clock=clock).add(nothing, EVERY_SECOND)
    with pytest.raises((ValueError, TypeError), match="count"):
        job.next_starts(count)


def test_a_listener_that_cannot_be_called_is_refused():
    """It would fail at each event."""
    with pytest.raises((ValueError, TypeError), match=r"listener|call"):
        Scheduler().listen("text")


def test_naive_datetimes_say_how_to_mend_it(clock):
    """The message holds the very call."""
    with pytest.raises(InvalidJob, match=r"naive.*replace\(tzinfo=UTC\)"):
        Scheduler(clock=clock).add(nothing, EVERY_SECOND, start=NAIVE)
    with pytest.raises(ScheduleError, match=r"zone|naive|aware"):
        At(NAIVE)


@pytest.mark.slow
async def test_nonsense_from_one_job_leaves_the_others_alone(clock, events):
    """All of it at once, beside a job that must not notice."""
    async with Scheduler(limit=4, clock=clock, kill_after="2s") as s:
        s.listen(events)

        async def raising():
            raise SystemExit

        async def mixed():
            return [Subtask(nothing), None]

        async def deaf():
            with anyio.CancelScope(shield=True):
                await clock.sleep(20)

        async def endless():
            return Subtask(endless)

        for name, func in {"raising": raising, "mixed": mixed, "deaf": deaf, "endless": endless}.items():
            s.add(func, EVERY_SECOND, id=name, timeout="1500ms")
        s.add(nothing, Broken(3, raises), id="broken")
        s.add(nothing, EVERY_SECOND, id="good", priority=1)
        await clock.travel(20.5)
        assert events.outcomes("good") == [Outcome.SUCCEEDED] * 20
        assert max(event.lateness for event in events.of(RunEnded, job_id="good")) == 0
        s.stop(grace=0)
        await clock.travel(60)
    assert events[-1].at > START


def yields():
    """Is a generator function."""
    yield


async def yields_too():
    """Is an async generator function."""
    yield


class Yields:
    """Its call makes a generator."""

    __call__ = staticmethod(yields)


class AsyncCall:
    """Its objects are called as an `async def` is."""

    def __init__(self, ran=None):
        self.ran = ran

    async def __call__(self):
        self.ran.append(1)


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("func", [yields, yields_too, Yields(), partial(partial(yields)), partial(yields_too)])
def test_a_generator_function_is_refused_as_a_job(func, inline):
    """A call of it would do nothing, and that would be a success."""
    with pytest.raises(InvalidJob, match=r"generator function.*return, not yield"):
        Scheduler().add(func, "@every 1s", inline=inline)


def test_a_generator_function_is_refused_as_a_subtask():
    """In the task that makes it."""
    with pytest.raises(InvalidJob, match="generator function"):
        Subtask(yields)


def test_a_class_in_the_place_of_its_async_object_is_refused():
    """A call of the class would make an object, and nobody would call that."""
    with pytest.raises(InvalidJob, match=r"give AsyncCall\(\.\.\.\)"):
        Scheduler().add(AsyncCall, "@every 1s")


@pytest.mark.parametrize("wrap", [lambda func: func, partial, lambda func: partial(partial(func))])
async def test_an_object_with_an_async_call_is_awaited(wrap):
    """Also in a partial, and in a partial of that."""
    ran = []
    s = Scheduler()
    s.add(wrap(AsyncCall(ran)), "@every 1h", id="a")
    ended = await s.run_once()
    assert ended["a"].outcome is Outcome.SUCCEEDED
    assert ran == [1]


@pytest.mark.parametrize("inline", [False, True])
async def test_a_function_that_returns_a_generator_fails(inline):
    """Nothing tells it from others before it has been called."""
    s = Scheduler()
    s.add(lambda: yields(), "@every 1h", id="a", inline=inline)  # noqa: PLW0108 - it is the point
    ended = await s.run_once()
    assert ended["a"].outcome is Outcome.FAILED
    assert "nothing runs" in ended["a"].error
