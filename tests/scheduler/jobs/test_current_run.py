"""What a task may know of its run, and what stays of one: nothing."""

from contextvars import ContextVar
from datetime import timedelta

import pytest

from schedule import Every
from scheduler import Retry, RunEnded, Scheduler, Subtask, current_run
from timerqueue.testing import START

EVERY_MINUTE = Every("1m", anchor=START)
WORD = ContextVar("word", default="none")


async def test_a_task_knows_its_tick(clock):
    """The instants are aware; without a timeout there is no deadline."""
    seen = []
    async with Scheduler(clock=clock) as s:

        async def look():
            seen.append(current_run())

        s.add(look, EVERY_MINUTE, id="a")
        s.add(look, EVERY_MINUTE, id="b", timeout="5s")
        clock.advance(62)
        await clock.travel(0)
    a, b = seen
    assert (a.job_id, a.due, a.attempt, a.deadline) == ("a", START + timedelta(seconds=60), 1, None)
    assert b.deadline == START + timedelta(seconds=67)
    assert a.due.tzinfo is not None


async def test_the_fence_rises_with_each_attempt_at_a_tick(clock):
    """A late writer of an earlier attempt can be told apart."""
    seen = []
    async with Scheduler(clock=clock) as s:

        async def fail():
            run = current_run()
            seen.append((run.due, run.attempt, run.fence))
            raise ValueError

        s.add(fail, EVERY_MINUTE, retry=Retry.constant("1s", max_retries=2))
        await clock.travel(70)
    assert [attempt for _, attempt, _ in seen] == [1, 2, 3]
    assert len({due for due, *_ in seen}) == 1
    fences = [fence for *_, fence in seen]
    assert fences == sorted(set(fences))


async def test_outside_of_a_run_it_is_an_error(clock):
    """A LookupError that says so, beside a running scheduler too."""
    async with Scheduler(clock=clock):
        with pytest.raises(LookupError, match="outside a run"):
            current_run()


async def test_context_variables_are_those_of_the_run_alone(clock):
    """What it sets reaches its subtasks and never the next run on the same worker, nor the scheduler's own context."""
    seen = []
    async with Scheduler(limit=1, clock=clock) as s:

        async def child(name):
            seen.append((name, WORD.get()))
            WORD.set(f"{name}'s child")

        async def parent(name):
            seen.append((name, WORD.get()))
            WORD.set(name)
            return [Subtask(child, name), Subtask(child, name)]

        for name in "ab":
            s.add(parent, EVERY_MINUTE, id=name, args=(name,))
        await clock.travel(130)
    assert set(seen) == {("a", "none"), ("a", "a"), ("b", "none"), ("b", "b")}
    assert WORD.get() == "none"


async def test_a_value_survives_the_waits_of_its_run(clock, events):
    """A run keeps its context over every switch, however many run in turn on its worker."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def task(name):
            WORD.set(name)
            for _ in range(5):
                await clock.sleep(1)
                assert WORD.get() == name
                assert current_run().job_id == name

        for number in range(50):
            s.add(task, EVERY_MINUTE, id=f"{number}", args=(f"{number}",))
        await clock.travel(70)
        assert len(events.of(RunEnded)) == 50
        assert {event.error for event in events.of(RunEnded)} == {None}


async def test_what_a_thread_sets_reaches_its_subtasks_too(clock):
    """A plain `def` is a task like any other."""
    seen = []

    def in_a_thread():
        WORD.set("red")
        return Subtask(look)

    async def look():
        seen.append(WORD.get())

    s = Scheduler(clock=clock)
    s.add(in_a_thread, EVERY_MINUTE)
    s.add(look, EVERY_MINUTE)
    await s.run_once()
    assert sorted(seen) == ["none", "red"]


async def test_runs_see_the_context_in_which_the_scheduler_was_started(clock):
    """A logging context of the program is there in its jobs."""
    seen = []
    token = WORD.set("program")
    try:
        async with Scheduler(clock=clock) as s:

            async def look():
                seen.append(WORD.get())

            s.add(look, EVERY_MINUTE)
            await clock.travel(60)
    finally:
        WORD.reset(token)
    assert seen == ["program"]
