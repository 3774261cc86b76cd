"""A run that cannot be launched is none: it keeps its place and is tried again, ever more seldom."""

import json
import subprocess
import sys
import threading
from datetime import timedelta
from textwrap import dedent

import anyio
import pytest

from kit import PATIENCE, at, since_start
from schedule import After, At, Every
from scheduler import (
    JobState,
    MissedReason,
    Outcome,
    Overlap,
    Retry,
    RunNotLaunched,
    RunStarted,
    Scheduler,
    Subtask,
    current_run,
)
from scheduler._jobs import call
from timerqueue.testing import START

EVERY = Every(1_000, anchor=START)


class Threads:
    """Worker threads that are refused the first so many times."""

    def __init__(self, monkeypatch, refusals, error):
        self.refusals = refusals
        self.error = error
        self._real = call.run_sync
        monkeypatch.setattr(call, "run_sync", self)

    async def __call__(self, func, **options):
        """Refuse, as late as anyio would, or do it."""
        await anyio.lowlevel.checkpoint()
        self.refusals -= 1
        if self.refusals >= 0:
            raise self.error
        return await self._real(func, **options)


@pytest.fixture(params=[RuntimeError("can't start new thread"), MemoryError()], ids=repr)
def threads(request, monkeypatch):
    """Give a way to refuse threads."""
    return lambda refusals: Threads(monkeypatch, refusals, request.param)


def said():
    """Take no time."""
    return current_run().attempt


async def settle(clock, job):
    """Wait for real threads."""
    while any(run.started is not None for run in job.runs):
        await clock.travel(0)
        await anyio.lowlevel.checkpoint()


async def test_it_is_tried_again_until_it_can_be_launched(clock, events, threads):
    """After 1, 2, 4 ... seconds; then it runs as what it was: the same tick, the same attempt, and one run."""
    threads(4)
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(said, EVERY, id="a", retry=Retry.constant(100, max_retries=0))
        await clock.travel(1_000)
        assert job.statistics().launch_failures == 1
        assert (job.statistics().runs, s.statistics().runs, s.statistics().lateness["default"].total) == (0, 0, 0)
        assert job.state is JobState.STARTING
        await clock.travel(14.9)
        assert job.statistics().launch_failures == 4
        assert events.outcomes() == []
        await clock.travel(0.1)
        await settle(clock, job)
        assert [since_start(event.started) for event in events.of(RunStarted)] == [1_000, 1_001, 1_003, 1_007, 1_015]
        assert {(since_start(event.due), event.attempt) for event in events.of(RunStarted)} == {(1_000, 1)}
        assert events.outcomes() == [Outcome.SUCCEEDED]
        counts = job.statistics()
        assert (counts.runs, counts.successes, counts.failures, counts.crashes) == (1, 1, 0, 0)
        assert (counts.launch_failures, counts.lateness_sum) == (4, 15)
        assert s.statistics().runs == s.statistics().lateness["default"].total == 1


async def test_a_stretch_is_told_of_once(clock, events, caplog, threads):
    """One warning at once, and one event with the count when it is over: no flood, however long it lasts."""
    threads(8)
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(said, EVERY, id="a")
        await clock.travel(1_000)
        for _ in range(300):
            await clock.travel(1)
            await settle(clock, job)
        (event,) = events.of(RunNotLaunched)
        assert (event.job_id, event.due, event.count) == ("a", at(1_000), 8)
        assert "no worker thread" in event.error
        assert sum("cannot be launched" in record.message for record in caplog.records) == 1
        starts = [since_start(event.started) - 1_000 for event in events.of(RunStarted)]
        assert starts == [0, 1, 3, 7, 15, 31, 63, 123, 183]


async def test_it_is_tried_again_under_the_limits_that_its_job_needs_by_then(clock, events, threads):
    """Others have filled the one that it needed before."""
    threads(1)
    async with Scheduler(limits={"full": 1}, clock=clock) as s:
        s.listen(events)
        job = s.add(said, EVERY, id="thread", needs="full")
        await clock.travel(1_000)
        s.add(clock.sleep, EVERY, args=(500,), needs="full", start="now")
        await clock.travel(0)
        job.update(needs=())
        await clock.travel(1)
        await settle(clock, job)
        assert events.outcomes("thread") == [Outcome.SUCCEEDED]
        s.stop(grace=0)


async def test_it_holds_no_room_while_it_waits(clock, events, threads):
    """Others may run; its place in the queue is that of its due instant."""
    threads(1)
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)
        job = s.add(said, EVERY, id="thread")
        s.add(clock.sleep, At(START + timedelta(seconds=1_000)), args=(0.5,), id="other")
        await clock.travel(1_000.6)
        assert events.outcomes("other") == [Outcome.SUCCEEDED]
        await clock.travel(1)
        await settle(clock, job)
        assert events.outcomes("thread") == [Outcome.SUCCEEDED]


async def test_a_timeout_counts_from_when_it_really_began(clock, events, threads):
    """Waiting to be launched is not running."""
    threads(3)
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(said, EVERY, timeout=2)
        await clock.travel(1_000)
        await clock.travel(7)
        await settle(clock, job)
        assert events.outcomes() == [Outcome.SUCCEEDED]


@pytest.mark.parametrize("ending", ["remove", "stop"])
async def test_it_can_be_taken_back_while_it_waits(clock, events, threads, ending):
    """By removing its job, and by stopping: it is missed, and nothing begins any more."""
    threads(1)
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(said, EVERY)
        await clock.travel(1_000.5)
        if ending == "remove":
            job.remove()
            await clock.travel(10)
            assert s.statistics().active_jobs == 0
    assert events.missed() == [(1, MissedReason.REMOVED if ending == "remove" else MissedReason.STOPPED)]
    assert len(events.of(RunNotLaunched)) == 1
    assert events.outcomes() == []


async def test_it_leaves_no_trace_in_the_counts_of_its_job(clock, threads):
    """Its lateness stayed as the greatest one, and its start as the last one, though it never ran."""
    threads(1)
    async with Scheduler(clock=clock) as s:
        job = s.add(said, EVERY, overlap=Overlap.ALLOW)
        clock.advance(1_007)
        await clock.travel(0)
        await settle(clock, job)
        counts = job.statistics()
        assert (counts.launch_failures, counts.last_start, counts.lateness_max) == (1, None, 0.0)


async def test_a_newer_tick_takes_its_place(clock, events, threads):
    """As that of any run that still waits: the older one is missed for want of room."""
    threads(3)
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(said, Every(2, anchor=START), overlap=Overlap.SKIP)
        await clock.travel(4.5)
        assert events.missed() == [(1, MissedReason.NO_ROOM)]
        await clock.travel(4.5)
        await settle(clock, job)
        assert events.outcomes()[0] is Outcome.SUCCEEDED
        assert job.statistics().launch_failures == 3


async def test_a_subtask_that_cannot_be_launched_waits_too(clock, events, threads):
    """Its run goes on meanwhile; what it may know of its run is still there."""
    threads(2)

    async def task():
        return Subtask(said)

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(task, After(1_000))
        await clock.travel(0)
        assert job.state is JobState.RUNNING
        await clock.travel(3)
        await settle(clock, job)
        assert events.outcomes() == [Outcome.SUCCEEDED]
        assert (job.statistics().runs, job.statistics().launch_failures) == (1, 2)
        assert events.of(RunNotLaunched)[0].count == 2


async def test_the_same_error_from_a_job_s_own_code_is_a_failure(clock, events):
    """It has been launched."""

    def task():
        raise RuntimeError("can't start new thread")

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(task, After(1_000))
        await clock.travel(0)
        await settle(clock, job)
        assert events.outcomes() == [Outcome.FAILED]
        assert job.statistics().launch_failures == 0


async def test_a_thread_that_was_never_begun_does_not_count_as_running(clock, events):
    """Cancelled on the way to its thread, it neither runs later nor keeps its job from starting again."""
    began = []

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        job = s.add(lambda: began.append(1), EVERY, id="a")

        def interrupt(event):
            if isinstance(event, RunStarted) and len(events.of(RunStarted)) == 1:
                job.update(overlap=Overlap.REPLACE)
                job.run_now()

        s.listen(interrupt)
        await clock.travel(1_000)
        for _ in range(100):
            await clock.travel(0)
            await settle(clock, job)
        assert events.outcomes() == [Outcome.CANCELLED, Outcome.SUCCEEDED]
        assert began == [1]
        assert job.threads is None or all(thread.has_ended for thread in job.threads)


REAL = dedent("""
    import anyio, json, resource, sys, threading
    from schedule import After
    from scheduler import RunEnded, RunNotLaunched, Scheduler

    async def main():
        events = []
        async with Scheduler() as s:
            s.listen(events.append)
            threading.stack_size(256 * 1024 * 1024)
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 128 * 1024 * 1024, resource.RLIM_INFINITY))
            job = s.add(lambda: threading.current_thread().name, After("1h"), id="a")
            while not job.statistics().launch_failures:
                await anyio.sleep(0.01)
            before = job.statistics()
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            while not job.statistics().successes:
                await anyio.sleep(0.01)
        told = [[e.error, e.count] for e in events if isinstance(e, RunNotLaunched)]
        ended = [e.outcome.value for e in events if isinstance(e, RunEnded)]
        after = job.statistics()
        counts = [after.runs, after.failures, after.launch_failures]
        print(json.dumps([before.runs, before.failures, told, ended, *counts]))

    anyio.run(main, backend=sys.argv[1])
""")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_process_without_room_for_a_thread_goes_on_when_there_is_some(backend):
    """The real thing, where a process can be kept from having it: Linux. Elsewhere only the tests above."""
    if not sys.platform.startswith("linux"):
        assert threading.active_count()
        return
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", REAL, backend],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    runs, failures, told, ended, runs_after, failures_after, launch_failures = json.loads(done.stdout)
    assert (runs, failures) == (0, 0)
    assert told == [["no worker thread: can't start new thread", launch_failures]]
    assert ended == ["succeeded"]
    assert (runs_after, failures_after) == (1, 0)
    assert launch_failures >= 1
