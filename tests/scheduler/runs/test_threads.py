"""Plain functions: in worker threads, or on the loop itself."""

import sys
import threading
import time
import traceback

import anyio
import anyio.from_thread
import pytest

from kit import until
from schedule import Every
from scheduler import MissedReason, NotASubtask, Outcome, RunAbandoned, RunEnded, Scheduler, Subtask, current_run
from timerqueue.testing import START

EVERY_MINUTE = Every("1m", anchor=START)


async def test_a_plain_function_runs_in_a_worker_thread(clock, events):
    """Its result is the run's."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(threading.get_ident, "@every 1h", start="now")
        await clock.travel(0)
        await until(lambda: events.of(RunEnded))
        assert events.of(RunEnded)[0].result != threading.get_ident()


async def test_inline_runs_it_on_the_loop(clock, events):
    """For functions that return at once it saves the thread."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(threading.get_ident, "@every 1h", start="now", inline=True)
        await clock.travel(0)
        assert events.of(RunEnded)[0].result == threading.get_ident()


async def test_inline_awaits_what_it_gets(clock, events):
    """A lambda around an `async def` is no trap."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def answer():
            await clock.sleep(1)
            return 42

        s.add(lambda: answer(), "@every 1h", start="now", inline=True)  # noqa: PLW0108 - it is the point
        await clock.travel(1)
        assert events.of(RunEnded)[0].result == 42


async def test_a_plain_function_that_returns_a_coroutine_is_told_so(clock, events):
    """Nobody would await it; the error says both ways out, and Python has nothing to warn of."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def answer():
            return 42

        s.add(lambda: answer(), "@every 1h", start="now")  # noqa: PLW0108 - it is the point
        await clock.travel(0)
        await until(lambda: events.of(RunEnded))
        (ended,) = events.of(RunEnded)
        assert ended.outcome is Outcome.FAILED
        assert NotASubtask.__name__ in ended.error
        assert "inline=True" in ended.error


async def test_a_thread_knows_its_run_and_may_return_subtasks(clock, events):
    """Context variables go with it."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        def child(number):
            return current_run().job_id, number

        def parent():
            return [Subtask(child, 1), Subtask(child, 2)]

        s.add(parent, "@every 1h", id="a", start="now")
        await clock.travel(0)
        await until(lambda: events.of(RunEnded))
        assert sorted(events.of(RunEnded)[0].results) == [("a", 1), ("a", 2)]


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(3)])
async def test_what_a_thread_raises_fails_its_run_alone(clock, events, error):
    """Even what would end a program: it was the task that said so, not the user."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        def fail():
            raise error

        s.add(fail, EVERY_MINUTE, id="bad")
        s.add(threading.get_ident, EVERY_MINUTE, id="good")
        await clock.travel(60)
        await until(lambda: len(events.of(RunEnded)) == 2)
        assert events.outcomes("bad") == [Outcome.FAILED]
        assert events.outcomes("good") == [Outcome.SUCCEEDED]
        assert type(error).__name__ in events.of(RunEnded, job_id="bad")[0].error


async def test_a_limit_holds_for_threads_too(clock, events):
    """A run in a thread takes a unit like any other."""
    running, peak, lock = [0], [0], threading.Lock()

    def task():
        with lock:
            running[0] += 1
            peak[0] = max(peak[0], running[0])
        time.sleep(0.001)
        with lock:
            running[0] -= 1

    async with Scheduler(limit=3, clock=clock) as s:
        s.listen(events)
        for number in range(20):
            s.add(task, "@every 1h", id=f"{number}", start="now")
        await until(lambda: len(events.of(RunEnded)) == 20)
    assert peak[0] <= 3


async def test_more_threads_than_anyio_s_own_limit(clock, events):
    """The scheduler's limit is the only one: fifty at a time are fifty."""
    barrier = threading.Barrier(50)
    async with Scheduler(limit=50, clock=clock) as s:
        s.listen(events)
        for number in range(50):
            s.add(barrier.wait, "@every 1h", id=f"{number}", start="now", args=(30,))
        await until(lambda: len(events.of(RunEnded)) == 50)
    assert set(events.outcomes()) == {Outcome.SUCCEEDED}


async def test_a_thread_that_outlives_its_timeout_holds_its_job_and_nothing_else(clock, events):
    """Nobody can stop it: the run ends, its unit is free, and the job counts as running until the thread ends."""
    begun, gate = threading.Event(), threading.Event()
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)

        def stuck():
            begun.set()
            gate.wait()

        s.add(stuck, EVERY_MINUTE, id="stuck", timeout="5s")
        s.add(threading.get_ident, Every("1m", anchor=START.replace(second=30)), id="other", inline=True)
        try:
            await clock.travel(60)
            await until(begun.is_set)
            await clock.travel(6)
            assert events.outcomes("stuck") == [Outcome.TIMED_OUT]
            assert s.statistics().active_tasks == 0
            await clock.travel(60)
            assert events.missed("stuck") == [(1, MissedReason.OVERLAP)]
            assert Outcome.SUCCEEDED in events.outcomes("other")
        finally:
            gate.set()
        await until(lambda: threads_named("stuck") == 0)
        await clock.travel(60)
        assert len(events.starts("stuck")) == 2
        assert events.of(RunAbandoned) == []


def threads_named(name):
    """Count threads that run a function of that name."""
    names = []
    for frame in sys._current_frames().values():
        names += [each.f_code.co_name for each, _ in traceback.walk_stack(frame)]
    return names.count(name)


async def test_a_thread_may_call_the_scheduler(clock, events):
    """All verbs are for any thread, that of a run included."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        def task():
            s.add(threading.get_ident, "@every 1h", id="child", start="now")
            s.get("parent").update(schedule="@every 2h")
            s.get("parent").pause()

        s.add(task, "@every 1h", id="parent", start="now")
        await until(lambda: events.of(RunEnded, job_id="child"))
        await until(lambda: s.get("parent").next_start is None)


async def test_stop_is_not_held_up_by_a_thread_of_a_cancelled_run(clock, events):
    """The scheduler ends; the thread ends by itself, later."""
    gate = threading.Event()
    try:
        async with Scheduler(clock=clock) as s:
            s.listen(events)
            s.add(gate.wait, "@every 1h", id="stuck", start="now")
            await clock.travel(0)
            s.stop(grace=0)
        assert events.outcomes() == [Outcome.CANCELLED]
        assert events[-1].cut_off == ("stuck",)
    finally:
        gate.set()


async def test_a_thread_can_call_back_into_the_loop(clock, events):
    """anyio.from_thread works in a task."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        def task():
            return anyio.from_thread.run_sync(threading.get_ident)

        s.add(task, "@every 1h", start="now")
        await until(lambda: events.of(RunEnded))
        assert events.of(RunEnded)[0].result == threading.get_ident()


async def leaving():
    """Raise it where the task is, not in a thread."""
    raise GeneratorExit


def leave():
    """Raise what Python ends coroutines with."""
    raise GeneratorExit


@pytest.mark.parametrize("options", [{"func": leave}, {"func": leave, "inline": True}, {"func": leaving}])
async def test_a_task_that_raises_generator_exit_ends_its_run_alone(options, clock, events):
    """In a thread, on the loop, or awaited."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(**options, schedule="@every 1h", id="leaving", start="now")
        await clock.travel(0)
        await until(lambda: events.of(RunEnded))
        s.add(int, EVERY_MINUTE, id="other", inline=True)
        await clock.travel(60)
    assert events.outcomes("leaving") == [Outcome.FAILED]
    assert "GeneratorExit" in repr(events.of(RunEnded)[0].error)
    assert events.outcomes("other") == [Outcome.SUCCEEDED]


def test_listeners_may_come_and_go_in_any_thread():
    """Whoever listens is seen to, whatever others do at that moment."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        s = Scheduler()
        for _ in range(2_000):
            end = s.listen(print)
            other = threading.Thread(target=end)
            other.start()
            end_of_second = s.listen(print)
            other.join()
            assert s._listeners.anybody
            end_of_second()
    finally:
        sys.setswitchinterval(interval)
