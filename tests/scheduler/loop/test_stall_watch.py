"""Code that does not let go of the event loop is found out. Real time: a simulated clock cannot see this."""

import asyncio
import gc
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextvars import ContextVar
from datetime import timedelta

import anyio
import anyio.lowlevel
import pytest
from anyio import from_thread
from anyio.to_thread import run_sync

from kit import PATIENCE, until
from schedule import Schedule
from scheduler import LoopBlocked, Outcome, RunEnded, Scheduler, Subtask


def block(told):
    """Hold the loop until the watch has seen it, or far too long. A busy machine may have held it before."""
    told.clear()
    for _ in range(500):
        if told.is_set():
            return
        time.sleep(0.01)


def stalls(events, where):
    """Return the reports of stalls whose stack shows this: a busy machine may hold the loop elsewhere, too."""
    return [report for report in events.of(LoopBlocked) if where in report.stack]


@pytest.fixture
def told(monkeypatch):
    """Is set as soon as the watch has told of a stall."""
    event = threading.Event()
    monkeypatch.setattr("scheduler._loop.stall.logger.warning", lambda *_: event.set())
    return event


async def test_a_job_that_blocks_the_loop_is_reported_with_its_stack(events, told):
    """By name, while it does so, and the stack shows the line; other jobs go on afterwards."""

    async def blocks():
        block(told)

    async with Scheduler(blocked_after="20ms") as s:
        s.listen(events)
        s.add(blocks, "@every 1h", id="bad", start="now")
        s.add(anyio.sleep, "@every 1h", id="good", args=(0,), start="now")
        await until(lambda: stalls(events, "in block") and len(events.of(RunEnded)) == 2)
        assert s.statistics().stalls == len(events.of(LoopBlocked))
    (report,) = stalls(events, "in block")
    assert (report.job_id, report.seconds) == ("bad", pytest.approx(0.02))
    assert "block(told)" in report.stack
    assert set(events.outcomes()) == {Outcome.SUCCEEDED}


async def test_an_inline_function_that_blocks_is_reported_too(events, told):
    """It is the likeliest culprit."""
    async with Scheduler(blocked_after="20ms") as s:
        s.listen(events)
        s.add(block, "@every 1h", id="bad", start="now", inline=True, args=(told,))
        await until(lambda: stalls(events, "in block"))
    assert stalls(events, "in block")[0].job_id == "bad"


async def blocks(told):
    """Hold the loop as a task does."""
    block(told)


async def in_a_task_group(told):
    """Hold it in a child task."""
    async with anyio.create_task_group() as group:
        group.start_soon(blocks, told)


async def called_from_a_thread(told):
    """Hold it from a worker thread."""
    await run_sync(from_thread.run_sync, block, told)


async def in_gathered_tasks(told):
    """Hold it in tasks of asyncio's own."""
    await asyncio.gather(blocks(told), anyio.lowlevel.checkpoint())


async def under_wait_for(told):
    """Hold it in what may be a task of asyncio's own."""
    await asyncio.wait_for(blocks(told), 60)


async def in_a_callback(told):
    """Hold it in no task at all."""
    asyncio.get_running_loop().call_soon(block, told)
    await run_sync(told.wait, 5)


async def is_reported_in_its_name(events, told, culprit):
    """Run it as a job."""
    async with Scheduler(blocked_after="20ms") as s:
        s.listen(events)
        s.add(culprit, "@every 1h", id="bad", start="now", args=(told,))
        await until(lambda: stalls(events, "in block") and events.of(RunEnded))
    (report,) = stalls(events, "in block")
    assert report.job_id == "bad"


@pytest.mark.parametrize("culprit", [in_a_task_group, called_from_a_thread])
async def test_what_a_job_has_started_is_reported_in_its_name(events, told, culprit):
    """Its own frame waits meanwhile: the loop stands in a task or a callback that came from it."""
    await is_reported_in_its_name(events, told, culprit)


@pytest.mark.parametrize("culprit", [in_gathered_tasks, under_wait_for, in_a_callback])
def test_what_a_job_has_started_by_asyncio_itself_is_reported_in_its_name(events, told, culprit):
    """Where a task is not one of anyio's."""
    anyio.run(is_reported_in_its_name, events, told, culprit)


async def test_a_schedule_that_blocks_is_reported_without_a_job(events, told):
    """It is asked between the runs. The stack names it."""

    class Slow(Schedule):
        """Holds the loop when it is asked for the second time."""

        asked = 0

        def next(self, after):
            self.asked += 1
            if self.asked == 2:
                block(told)
            return after + timedelta(milliseconds=10 if self.asked < 2 else 3_600_000)

    async with Scheduler(blocked_after="100ms") as s:
        s.listen(events)
        s.add(lambda: None, Slow(), id="any")
        await until(lambda: stalls(events, "in next"))
    (report,) = stalls(events, "in next")
    assert report.job_id is None


async def test_code_beside_the_scheduler_is_reported_once_for_each_time(events, told):
    """However long it holds the loop; and once more when it does so again."""
    async with Scheduler(blocked_after="20ms") as s:
        s.listen(events)
        for times in (1, 2):
            block(told)
            time.sleep(0.06)  # noqa: ASYNC251 - to block is the point
            told.clear()
            await until(lambda: len(stalls(events, "in block")) >= times)  # noqa: B023 - it ends in this round
    assert [report.job_id for report in stalls(events, "in block")] == [None, None]


async def test_waiting_is_not_blocking(events):
    """Neither a run that sleeps, nor one in a thread, nor many short ones in a row."""
    async with Scheduler(blocked_after="500ms") as s:  # a busy machine holds a loop up for 100
        s.listen(events)
        gate = anyio.Event()
        done = threading.Event()

        def thread():
            done.wait()

        s.add(gate.wait, "@every 1h", id="sleeps", start="now")
        s.add(thread, "@every 1h", id="thread", start="now")
        s.add(anyio.sleep, "@every 1ms", id="many", args=(0,))
        await until(lambda: len(events.outcomes("many")) >= 750)
        gate.set()
        done.set()
    assert events.of(LoopBlocked) == []


async def test_many_short_subtasks_of_one_run_are_not_blocking(events):
    """They share a place in the pool, and each of them lets go soon."""
    async with Scheduler(blocked_after="500ms") as s:  # in all they take longer
        s.listen(events)

        async def short():
            sum(range(10_000))

        async def parent():
            return [Subtask(short) for _ in range(8_000)]

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


STOPPED = """
import os, signal, threading
import anyio
import anyio.lowlevel
from scheduler import LoopBlocked, Scheduler

async def main():
    async with Scheduler(blocked_after="300ms") as s:
        s.listen(lambda event: print(event, flush=True) if isinstance(event, LoopBlocked) else None)
        print("up", flush=True)
        await anyio.to_thread.run_sync(input)
        await anyio.sleep(0.4)

anyio.run(main)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="nothing stops a process here")
def test_a_process_that_was_stopped_has_not_blocked():
    """The watching thread stood as still as the loop."""
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.7)
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate("\n", timeout=PATIENCE)
    assert (out, process.returncode) == ("", 0)


class Large:
    """Something whose memory one would miss."""


async def test_what_has_blocked_is_not_kept_alive(events, told):
    """The watch looks into the loop from outside, and leaves nothing there that holds a task or its context."""
    variable, held = ContextVar("variable"), []

    async def child():
        variable.set(large := Large())
        held.append(weakref.ref(large))
        del large
        block(told)

    async def parent():
        async with anyio.create_task_group() as group:
            group.start_soon(child)

    async with Scheduler(blocked_after="20ms") as s:
        s.listen(events)
        s.add(parent, "@every 1h", id="bad", start="now")
        await until(lambda: events.of(LoopBlocked) and events.of(RunEnded))
        await until(lambda: gc.collect() >= 0 and held[0]() is None)
