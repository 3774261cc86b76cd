"""APScheduler 4, a pre-release: its asynchronous scheduler with the memory store and the local event broker.

Ours is the setting `max_running_jobs=None`: by default it runs one job of a task at a time, which would turn a burst
into a queue.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from apscheduler import AsyncScheduler, current_job
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger
from child import Values, serve
from expressions import NOW, expressions
from meters import Growth, cpu_s, objects_alive, rss_mib
from workload import Beats, Burst, Grid, spread

MOST_PAIRS = 200
AHEAD_US = 150


class Current:
    """The work that the job functions belong to: this scheduler wants functions that can be imported by name."""

    burst: Burst
    grid: Grid
    beats: Beats


async def nothing() -> None:
    """A job with nothing to do."""


async def run_burst() -> None:
    """A run of the burst."""
    await Current.burst.job()


async def run_grid(index: int) -> None:
    """A run of the grid."""
    if now := Current.grid.note(index):
        Current.grid.late(now - current_job.get().scheduled_fire_time.timestamp())


async def run_quick() -> None:
    """The job that must keep its second."""
    Current.beats.note()


async def run_slow(seconds: float) -> None:
    """A job that takes its time."""
    await asyncio.sleep(seconds)
    Current.beats.slow_runs += 1


@asynccontextmanager
async def scheduler(*jobs: Callable[..., Any], **options: Any) -> AsyncIterator[AsyncScheduler]:
    """A running scheduler that knows `jobs`, each of which may run many times at once."""
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    async with AsyncScheduler(**options) as made:
        for job in jobs:
            await made.configure_task(job.__name__, func=job, max_running_jobs=None)
        await made.start_in_background()
        yield made


def at(epoch_s: float) -> datetime:
    """The instant as this scheduler's triggers take it."""
    return datetime.fromtimestamp(epoch_s, UTC)


def hourly() -> IntervalTrigger:
    """A trigger whose first time is an hour away; each schedule needs its own, because it counts in it."""
    return IntervalTrigger(hours=1, start_time=at(time.time() + 3600))


def burst(jobs: int) -> Values:
    """One-shots that are all due at the same instant."""

    async def main() -> Values:
        async with scheduler(run_burst) as s:
            Current.burst = Burst(jobs, ahead_us=AHEAD_US)
            due = at(Current.burst.due)
            for index in range(jobs):
                await s.add_schedule("run_burst", DateTrigger(due), id=f"job-{index}")
            return await Current.burst.observe()

    return asyncio.run(main())


def steady(jobs: int, rounds: int) -> Values:
    """Every job once a second, each at a phase of its own."""

    async def main() -> Values:
        async with scheduler(run_grid) as s:
            grid = Current.grid = Grid(jobs, rounds)
            for index in range(jobs):
                trigger = IntervalTrigger(seconds=1, start_time=at(grid.next_due(index)))
                await s.add_schedule("run_grid", trigger, args=(index,), id=f"job-{index}")
            return await grid.observe()

    return asyncio.run(main())


def add_remove(standing: int, pairs: int) -> Values:
    """Adding and removing a schedule, with others waiting; few pairs, because removing one looks at all."""

    async def main() -> Values:
        async with scheduler(nothing) as s:
            counted = min(pairs, MOST_PAIRS)
            rss_before, objects_before = rss_mib(), objects_alive()
            began = cpu_s()
            for index in range(standing):
                await s.add_schedule("nothing", hourly(), id=f"job-{index}")
            add_us = (cpu_s() - began) / standing * 1e6
            rss_full = rss_mib()
            began = cpu_s()
            for index in range(counted):
                await s.add_schedule("nothing", hourly(), id=f"pair-{index}")
                await s.remove_schedule(f"pair-{index}")
            pair_us = (cpu_s() - began) / counted * 1e6
            for index in range(standing):
                await s.remove_schedule(f"job-{index}")
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
    async with scheduler(nothing) as s:
        first = time.time() + 60
        growth = Growth(traced=traced)
        for index, offset in enumerate(spread(jobs, interval_s)):
            trigger = IntervalTrigger(seconds=interval_s, start_time=at(first + offset))
            await s.add_schedule("nothing", trigger, id=f"job-{index}")
        await asyncio.sleep(0.5)
        return growth.bytes_per(jobs)


def idle(jobs: int, seconds: float) -> Values:
    """CPU that waiting jobs cost while none is due."""

    async def main() -> Values:
        async with scheduler(nothing) as s:
            for index in range(jobs):
                await s.add_schedule("nothing", hourly(), id=f"job-{index}")
            await asyncio.sleep(1)
            cpu = cpu_s()
            await asyncio.sleep(seconds)
            return {"idle_cpu_ms": (cpu_s() - cpu) * 1e3}

    return asyncio.run(main())


def cron(count: int) -> Values:
    """Each expression parsed, and its first start after now found."""
    texts = expressions(count)
    began = cpu_s()
    starts = [_read(text).next() for text in texts]
    return {"seconds": cpu_s() - began, "each_us": (cpu_s() - began) / len(starts) * 1e6}


def _read(text: str) -> CronTrigger:
    minute, hour, day, month, weekday = text.split()
    return CronTrigger(
        minute=minute, hour=hour, day=day, month=month, day_of_week=weekday, start_time=NOW, timezone=UTC
    )


def overload(limit: int, slow_jobs: int, slow_s: float, seconds: int) -> Values:
    """More work than there is room for, and one quick job that queues like all others."""

    async def main() -> Values:
        async with scheduler(run_slow, run_quick, max_concurrent_jobs=limit) as s:
            beats = Current.beats = Beats(seconds)
            now = time.time()
            for index, offset in enumerate(spread(slow_jobs, 1.0)):
                trigger = IntervalTrigger(seconds=1, start_time=at(now + offset))
                await s.add_schedule("run_slow", trigger, args=(slow_s,), id=f"slow-{index}")
            await s.add_schedule("run_quick", IntervalTrigger(seconds=1, start_time=at(now)), id="quick")
            return await beats.observe()

    return asyncio.run(main())


if __name__ == "__main__":
    serve(
        {
            "burst": burst,
            "steady": steady,
            "add_remove": add_remove,
            "waiting": waiting,
            "waiting_traced": waiting_traced,
            "idle": idle,
            "cron": cron,
            "overload": overload,
        },
        cannot={
            "timerqueue": "has no timer queue of its own",
            "recursion_empty": "has no subtasks",
            "recursion_sleep": "has no subtasks",
        },
        distribution="APScheduler",
    )
