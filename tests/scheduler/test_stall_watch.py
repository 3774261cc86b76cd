"""Code that does not let go of the event loop is found out. Real time: a simulated clock cannot see this."""

import threading
import time

import anyio
import pytest
from anyio.to_thread import run_sync

from scheduler import LoopBlocked, Outcome, RunEnded, Scheduler, Subtask


async def until(condition):
    """Give threads their time until it is so."""
    while not condition():
        await run_sync(threading.Event().wait, 0.001)


def block(told):
    """Hold the loop until the watch has seen it, or far too long."""
    for _ in range(500):
        if told.is_set():
            return
        time.sleep(0.01)


async def test_a_job_that_blocks_the_loop_is_reported_with_its_stack(events, monkeypatch):
    """By name, while it does so, and the stack shows the line; other jobs go on afterwards."""
    told = threading.Event()
    monkeypatch.setattr("scheduler._stall.logger.warning", lambda *_: told.set())

    async def blocks():
        block(told)

    async with Scheduler(blocked_after="20ms") as s:
        s.listen(events)
        s.add(blocks, "@every 1h", id="bad", start="now")
        s.add(anyio.sleep, "@every 1h", id="good", args=(0,), start="now")
        await until(lambda: events.of(LoopBlocked) and len(events.of(RunEnded)) == 2)
    (report,) = events.of(LoopBlocked)
    assert report.job_id == "bad"
    assert report.seconds == pytest.approx(0.02)
    assert "block(told)" in report.stack
    assert set(events.outcomes()) == {Outcome.SUCCEEDED}


async def test_an_inline_function_that_blocks_is_reported_too(events, monkeypatch):
    """It is the likeliest culprit."""
    told = threading.Event()
    monkeypatch.setattr("scheduler._stall.logger.warning", lambda *_: told.set())
    async with Scheduler(blocked_after="20ms") as s:
        s.listen(events)
        s.add(block, "@every 1h", id="bad", start="now", inline=True, args=(told,))
        await until(lambda: events.of(LoopBlocked))
    assert events.of(LoopBlocked)[0].job_id == "bad"


async def test_waiting_is_not_blocking(events):
    """Neither a run that sleeps, nor one in a thread, nor many short ones in a row."""
    async with Scheduler(blocked_after="20ms") as s:
        s.listen(events)
        gate = anyio.Event()
        done = threading.Event()

        def thread():
            done.wait()

        s.add(gate.wait, "@every 1h", id="sleeps", start="now")
        s.add(thread, "@every 1h", id="thread", start="now")
        s.add(anyio.sleep, "@every 1ms", id="many", args=(0,))
        await until(lambda: len(events.outcomes("many")) >= 50)
        gate.set()
        done.set()
    assert events.of(LoopBlocked) == []


async def test_many_short_subtasks_of_one_run_are_not_blocking(events):
    """They share a place in the pool, and each of them lets go soon."""
    async with Scheduler(blocked_after="20ms") as s:
        s.listen(events)

        async def short():
            end = time.perf_counter() + 0.0002
            while time.perf_counter() < end:
                pass

        async def parent():
            return [Subtask(short) for _ in range(1_500)]

        s.add(parent, "@every 1h", id="many", start="now")
        await until(lambda: events.outcomes("many"))
    assert events.of(LoopBlocked) == []


async def test_it_can_be_switched_off(events):
    """None means never: there is no watching thread."""
    async with Scheduler(blocked_after=None) as s:
        s.listen(events)
        assert not [t for t in threading.enumerate() if t.name == "scheduler stall watch"]


async def test_the_watch_ends_with_its_scheduler():
    """No thread is left behind."""
    async with Scheduler(blocked_after="20ms"):
        watches = [t for t in threading.enumerate() if t.name == "scheduler stall watch"]
        assert len(watches) == 1
    await run_sync(watches[0].join)
    assert not watches[0].is_alive()
