"""Our scheduler, through its public names and with its defaults; only a scenario's limit is set."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

from child import Unable, Values, serve
from meters import Growth, cpu_s, objects_alive, peak_rss_mib, rss_mib
from workload import INTERVAL_S, Beats, Burst, Grid

from schedule import At, Every, phase
from scheduler import Scheduler, Subtask, current_run

AHEAD_US = 60
SECOND = Every(timedelta(seconds=INTERVAL_S))
HOUR = Every(timedelta(hours=1))


async def nothing() -> None:
    """A job with nothing to do."""


def at(epoch_s: float) -> datetime:
    """The instant as our schedules take it."""
    return datetime.fromtimestamp(epoch_s, UTC)


def burst(jobs: int) -> Values:
    """One-shots that are all due at the same instant."""

    async def main() -> Values:
        async with Scheduler() as s:
            work = Burst(jobs, ahead_us=AHEAD_US)
            due = At(at(work.due))
            for index in range(jobs):
                s.add(work.job, due, id=f"job-{index}")
            return await work.observe()

    return asyncio.run(main())


def steady(jobs: int, rounds: int) -> Values:
    """Every job once a second, each at the phase that its id gives it."""

    async def main() -> Values:
        phases = (phase(f"job-{index}", SECOND.interval).total_seconds() for index in range(jobs))
        grid = Grid(jobs, rounds, phases)

        async def job(index: int) -> None:
            if now := grid.note(index):
                grid.late(now - current_run().due.timestamp())

        async with Scheduler() as s:
            for index in range(jobs):
                s.add(job, SECOND, id=f"job-{index}", args=(index,))
            values = await grid.observe()
            s.stop(grace=0)
            return values

    return asyncio.run(main())


def recursion(jobs: int, subtasks: int, limit: int, work_s: float) -> Values:
    """Jobs due at one instant that each return subtasks, under the scheduler's limit."""

    async def main() -> Values:
        finished = asyncio.Event()
        left = jobs * subtasks

        async def subtask() -> None:
            nonlocal left
            if work_s:
                await asyncio.sleep(work_s)
            left -= 1
            if not left:
                finished.set()

        async def job() -> list[Subtask]:
            if work_s:
                await asyncio.sleep(work_s)
            return [Subtask(subtask) for _ in range(subtasks)]

        async with Scheduler(limit=limit) as s:
            due = time.time() + 1 + jobs * AHEAD_US / 1e6
            for index in range(jobs):
                s.add(job, At(at(due)), id=f"job-{index}")
            if time.time() >= due:
                raise Unable("was still adding at the due instant: measure again on a calmer machine")
            await asyncio.sleep(max(0.0, due - time.time() - 0.05))
            cpu = cpu_s()
            await finished.wait()
            seconds = time.time() - due
            return {
                "seconds": seconds,
                "task_us": (cpu_s() - cpu) / (jobs * (subtasks + 1)) * 1e6,
                "peak_mib": peak_rss_mib(),
            }

    return asyncio.run(main())


def add_remove(standing: int, pairs: int) -> Values:
    """Adding and removing a job, with others waiting."""

    async def main() -> Values:
        async with Scheduler() as s:
            rss_before, objects_before = rss_mib(), objects_alive()
            began = cpu_s()
            for index in range(standing):
                s.add(nothing, HOUR, id=f"job-{index}")
            await asyncio.sleep(0)
            add_us = (cpu_s() - began) / standing * 1e6
            rss_full = rss_mib()
            began = cpu_s()
            for index in range(pairs):
                s.add(nothing, HOUR, id=f"pair-{index}").remove()
            # What the loop has to do about them is part of the price.
            await asyncio.sleep(0.05)
            pair_us = (cpu_s() - began) / pairs * 1e6
            for index in range(standing):
                s.get(f"job-{index}").remove()
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
    every = Every(interval_s)
    async with Scheduler() as s:
        growth = Growth(traced=traced)
        for index in range(jobs):
            s.add(nothing, every, id=f"job-{index}")
        await asyncio.sleep(0.5)
        return growth.bytes_per(jobs)


def idle(jobs: int, seconds: float) -> Values:
    """CPU that waiting jobs cost while none is due."""

    async def main() -> Values:
        async with Scheduler() as s:
            first = at(time.time() + 3600)
            for index in range(jobs):
                s.add(nothing, HOUR, id=f"job-{index}", start=first)
            await asyncio.sleep(1)
            cpu = cpu_s()
            await asyncio.sleep(seconds)
            return {"idle_cpu_ms": (cpu_s() - cpu) * 1e3}

    return asyncio.run(main())


def overload(limit: int, slow_jobs: int, slow_s: float, seconds: int) -> Values:
    """More work than there is room for, and one quick job that goes first."""

    async def main() -> Values:
        beats = Beats(seconds)

        async def quick() -> None:
            beats.note()

        async def slow() -> None:
            await asyncio.sleep(slow_s)
            beats.slow_runs += 1

        async with Scheduler(limit=limit) as s:
            for index in range(slow_jobs):
                s.add(slow, SECOND, id=f"slow-{index}")
            s.add(quick, SECOND, id="quick", priority=10)
            values = await beats.observe()
            s.stop(grace=0)
            return values

    return asyncio.run(main())


if __name__ == "__main__":
    serve(
        {
            "burst": burst,
            "steady": steady,
            "recursion_empty": recursion,
            "recursion_sleep": recursion,
            "add_remove": add_remove,
            "waiting": waiting,
            "waiting_traced": waiting_traced,
            "idle": idle,
            "overload": overload,
        },
        distribution="timerqueue",
    )
