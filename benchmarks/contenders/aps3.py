"""APScheduler 3: its asyncio scheduler with the memory store, as its own guide sets it up.

Two settings are ours, so that no run is left out for being late: `misfire_grace_time=None`, and one thread pool of the
scenario's limit where a limit is asked for (its asyncio executor has none).
"""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from apscheduler.events import EVENT_JOB_EXECUTED, JobExecutionEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger
from child import Values, serve
from expressions import NOW, expressions
from meters import Growth, cpu_s, objects_alive, rss_mib
from workload import Beats, Burst, Grid, spread

AHEAD_US = 150


class Current:
    """The work that the job functions belong to: this scheduler wants functions that can be imported by name."""

    burst: Burst
    grid: Grid
    beats: Beats
    wanted: dict[str, float]


async def nothing() -> None:
    """A job with nothing to do."""


async def run_burst() -> None:
    """A run of the burst."""
    await Current.burst.job()


async def run_grid(index: int) -> None:
    """A run of the grid; the listener knows what it was due at."""
    if now := Current.grid.note(index):
        Current.wanted[f"job-{index}"] = now


def run_quick() -> None:
    """The job that must keep its second."""
    Current.beats.note()


def run_slow(seconds: float) -> None:
    """A job that holds a thread."""
    time.sleep(seconds)
    Current.beats.slow_runs += 1


def scheduler(**options: Any) -> AsyncIOScheduler:
    """A running scheduler that leaves no run out for being late, and does not spend its time on complaints about it."""
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    made = AsyncIOScheduler(timezone=UTC, job_defaults={"misfire_grace_time": None}, **options)
    made.start()
    return made


def at(epoch_s: float) -> datetime:
    """The instant as this scheduler's triggers take it."""
    return datetime.fromtimestamp(epoch_s, UTC)


def burst(jobs: int) -> Values:
    """One-shots that are all due at the same instant."""

    async def main() -> Values:
        s = scheduler()
        Current.burst = Burst(jobs, ahead_us=AHEAD_US)
        due = DateTrigger(at(Current.burst.due))
        for index in range(jobs):
            s.add_job(run_burst, due, id=f"job-{index}")
        return await Current.burst.observe()

    return asyncio.run(main())


def steady(jobs: int, rounds: int) -> Values:
    """Every job once a second, each at a phase of its own."""

    async def main() -> Values:
        s = scheduler()
        grid = Current.grid = Grid(jobs, rounds)
        Current.wanted = {}

        def executed(event: JobExecutionEvent) -> None:
            if now := Current.wanted.pop(event.job_id, 0.0):
                grid.late(now - event.scheduled_run_time.timestamp())

        s.add_listener(executed, EVENT_JOB_EXECUTED)
        for index in range(jobs):
            trigger = IntervalTrigger(seconds=1, start_date=at(grid.next_due(index)))
            s.add_job(run_grid, trigger, args=[index], id=f"job-{index}")
        return await grid.observe()

    return asyncio.run(main())


def add_remove(standing: int, pairs: int) -> Values:
    """Adding and removing a job, with others waiting."""

    async def main() -> Values:
        s = scheduler()
        hourly = IntervalTrigger(hours=1)
        rss_before, objects_before = rss_mib(), objects_alive()
        began = cpu_s()
        for index in range(standing):
            s.add_job(nothing, hourly, id=f"job-{index}")
        await asyncio.sleep(0)
        add_us = (cpu_s() - began) / standing * 1e6
        rss_full = rss_mib()
        began = cpu_s()
        for index in range(pairs):
            s.add_job(nothing, hourly, id=f"pair-{index}")
            s.remove_job(f"pair-{index}")
        await asyncio.sleep(0)
        pair_us = (cpu_s() - began) / pairs * 1e6
        for index in range(standing):
            s.remove_job(f"job-{index}")
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
    s = scheduler()
    first = time.time() + 60
    growth = Growth(traced=traced)
    for index, offset in enumerate(spread(jobs, interval_s)):
        s.add_job(nothing, IntervalTrigger(seconds=int(interval_s), start_date=at(first + offset)), id=f"job-{index}")
    await asyncio.sleep(0.5)
    return growth.bytes_per(jobs)


def idle(jobs: int, seconds: float) -> Values:
    """CPU that waiting jobs cost while none is due."""

    async def main() -> Values:
        s = scheduler()
        hourly = IntervalTrigger(hours=1)
        for index in range(jobs):
            s.add_job(nothing, hourly, id=f"job-{index}")
        await asyncio.sleep(1)
        cpu = cpu_s()
        await asyncio.sleep(seconds)
        return {"idle_cpu_ms": (cpu_s() - cpu) * 1e3}

    return asyncio.run(main())


def cron(count: int) -> Values:
    """Each expression parsed, and its first start after now found."""
    texts = expressions(count)
    began = cpu_s()
    read: Callable[[str, Any], CronTrigger] = CronTrigger.from_crontab
    starts = [read(text, UTC).get_next_fire_time(None, NOW) for text in texts]
    return {"seconds": cpu_s() - began, "each_us": (cpu_s() - began) / len(starts) * 1e6}


def overload(limit: int, slow_jobs: int, slow_s: float, seconds: int) -> Values:
    """More work than the thread pool has room for, and one quick job that queues like all others."""

    async def main() -> Values:
        s = scheduler(executors={"default": ThreadPoolExecutor(limit)})
        beats = Current.beats = Beats(seconds)
        now = time.time()
        for index, offset in enumerate(spread(slow_jobs, 1.0)):
            trigger = IntervalTrigger(seconds=1, start_date=at(now + offset))
            s.add_job(run_slow, trigger, args=[slow_s], id=f"slow-{index}")
        s.add_job(run_quick, IntervalTrigger(seconds=1), id="quick")
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
