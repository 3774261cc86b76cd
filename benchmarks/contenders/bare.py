"""The floor: the loop's own `call_at` and a task per run; no limits, no records. Standard library only."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial

from child import Values, serve
from meters import Growth, cpu_s, objects_alive, peak_rss_mib, rss_mib
from workload import Beats, Burst, Grid, loop_time, spread

HOUR_S = 3600.0
AHEAD_US = 20

Job = Callable[..., Coroutine[None, None, None]]


async def nothing() -> None:
    """A job with nothing to do."""


def start(job: Job, *args: object) -> None:
    """A task runs `job(*args)`; the loop holds it until it is done."""
    asyncio.get_running_loop().create_task(job(*args))


def burst(jobs: int) -> Values:
    """One-shots that are all due at the same instant."""

    async def main() -> Values:
        work, loop = Burst(jobs, ahead_us=AHEAD_US), asyncio.get_running_loop()
        due = loop_time(work.due)
        for _ in range(jobs):
            loop.call_at(due, start, work.job)
        return await work.observe()

    return asyncio.run(main())


def steady(jobs: int, rounds: int) -> Values:
    """Every job once a second, each at a phase of its own."""

    async def main() -> Values:
        grid, loop = Grid(jobs, rounds), asyncio.get_running_loop()
        epoch = loop_time(0.0)

        async def job(index: int, due: float) -> None:
            if now := grid.note(index):
                grid.late(now - (due - epoch))

        def wake(index: int, due: float) -> None:
            loop.call_at(due + 1.0, wake, index, due + 1.0)
            start(job, index, due)

        for index in range(jobs):
            due = epoch + grid.next_due(index)
            loop.call_at(due, wake, index, due)
        return await grid.observe()

    return asyncio.run(main())


def timerqueue(timers: int, over_s: float, lead_s: float) -> Values:
    """Timers alone: the loop calls a function at each deadline, without a task."""

    async def main() -> Values:
        loop = asyncio.get_running_loop()
        finished = asyncio.Event()
        left = timers

        def hit() -> None:
            nonlocal left
            left -= 1
            if not left:
                finished.set()

        began, cpu = loop.time(), cpu_s()
        start = began + lead_s
        for offset in spread(timers, over_s):
            loop.call_at(start + offset, hit)
        push_s = loop.time() - began
        await finished.wait()
        return {
            "push_s": push_s,
            "last_after_s": loop.time() - (start + over_s),
            "timer_us": (cpu_s() - cpu) / timers * 1e6,
            "peak_mib": peak_rss_mib(),
        }

    return asyncio.run(main())


def recursion(jobs: int, subtasks: int, limit: int, work_s: float) -> Values:
    """Jobs that each start subtasks, with a semaphore for the limit and a task for everything."""

    async def main() -> Values:
        free, finished = asyncio.Semaphore(limit), asyncio.Event()
        left = jobs * subtasks

        async def work() -> None:
            if work_s:
                await asyncio.sleep(work_s)

        async def subtask() -> None:
            nonlocal left
            async with free:
                await work()
            left -= 1
            if not left:
                finished.set()

        async def job() -> None:
            async with free:
                await work()
            for _ in range(subtasks):
                start(subtask)

        began, cpu = time.perf_counter(), cpu_s()
        for _ in range(jobs):
            start(job)
        await finished.wait()
        return {
            "seconds": time.perf_counter() - began,
            "task_us": (cpu_s() - cpu) / (jobs * (subtasks + 1)) * 1e6,
            "peak_mib": peak_rss_mib(),
        }

    return asyncio.run(main())


def add_remove(standing: int, pairs: int) -> Values:
    """`call_at` and `cancel`, with others waiting."""

    async def main() -> Values:
        loop = asyncio.get_running_loop()
        add = partial(loop.call_at, loop.time() + HOUR_S, start, nothing)
        rss_before, objects_before = rss_mib(), objects_alive()
        began = cpu_s()
        handles = [add() for _ in range(standing)]
        add_us = (cpu_s() - began) / standing * 1e6
        rss_full = rss_mib()
        began = cpu_s()
        for _ in range(pairs):
            add().cancel()
        await asyncio.sleep(0)
        pair_us = (cpu_s() - began) / pairs * 1e6
        while handles:
            handles.pop().cancel()
        await asyncio.sleep(0.1)
        return {
            "add_us": add_us,
            "pair_us": pair_us,
            "standing_mib": rss_full - rss_before,
            "kept_objects": objects_alive() - objects_before,
            "kept_mib": rss_mib() - rss_before,
        }

    return asyncio.run(main())


def waiting(jobs: int, interval_s: float) -> Values:
    """Resident memory of jobs that wait for their hour."""
    return {"rss_bytes": asyncio.run(_bytes_per_job(jobs, interval_s, traced=False))}


def waiting_traced(jobs: int, interval_s: float) -> Values:
    """The same in bytes that Python allocated."""
    return {"traced_bytes": asyncio.run(_bytes_per_job(jobs, interval_s, traced=True))}


async def _bytes_per_job(jobs: int, interval_s: float, *, traced: bool) -> float:
    loop = asyncio.get_running_loop()
    now = loop.time()
    growth = Growth(traced=traced)
    for offset in spread(jobs, interval_s):
        loop.call_at(now + offset, start, nothing)
    await asyncio.sleep(0.5)
    return growth.bytes_per(jobs)


def idle(jobs: int, seconds: float) -> Values:
    """CPU that waiting jobs cost while none is due."""

    async def main() -> Values:
        loop = asyncio.get_running_loop()
        for _ in range(jobs):
            loop.call_at(loop.time() + HOUR_S, start, nothing)
        await asyncio.sleep(1)
        cpu = cpu_s()
        await asyncio.sleep(seconds)
        return {"idle_cpu_ms": (cpu_s() - cpu) * 1e3}

    return asyncio.run(main())


def overload(limit: int, slow_jobs: int, slow_s: float, seconds: int) -> Values:
    """More work than the semaphore has room for, and one quick job that queues like all others."""

    async def main() -> Values:
        free, beats, loop = asyncio.Semaphore(limit), Beats(seconds), asyncio.get_running_loop()
        busy = [False] * (slow_jobs + 1)

        async def quick() -> None:
            beats.note()

        async def slow() -> None:
            await asyncio.sleep(slow_s)
            beats.slow_runs += 1

        async def limited(index: int, job: Job) -> None:
            async with free:
                await job()
            busy[index] = False

        def wake(index: int, due: float, job: Job) -> None:
            loop.call_at(due + 1.0, wake, index, due + 1.0, job)
            if not busy[index]:
                busy[index] = True
                start(limited, index, job)

        for index, offset in enumerate(spread(slow_jobs, 1.0)):
            wake(index, loop.time() + offset, slow)
        wake(slow_jobs, loop.time(), quick)
        return await beats.observe()

    return asyncio.run(main())


if __name__ == "__main__":
    serve(
        {
            "burst": burst,
            "steady": steady,
            "timerqueue": timerqueue,
            "recursion_empty": recursion,
            "recursion_sleep": recursion,
            "add_remove": add_remove,
            "waiting": waiting,
            "waiting_traced": waiting_traced,
            "idle": idle,
            "overload": overload,
        }
    )
