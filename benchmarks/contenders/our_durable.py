"""What a memory costs our scheduler: the same scenarios over any store, and over none.

`measurements(sqlite, SQLiteStore)` are those of a script for SQLite; `measurements()` have no store, for comparison.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from statistics import median

from attrs import frozen
from child import Measurement, Values
from meters import cpu_s, peak_rss_mib, rss_mib
from our_databases import Database
from workload import INTERVAL_S, OVERDUE_S, FirstStarts, Grid, is_overdue

from schedule import After, Every, phase
from scheduler import Outcome, Scheduler, Store, current_run

ROOM = 10_000
ALL = 100_000_000
SECOND = Every(INTERVAL_S)
HOUR = Every(3600)
AGAIN = After("1ms")


def measurements(
    opened: Callable[[], AbstractContextManager[Database | None]] = nullcontext,
    make: Callable[[str], Store] | None = None,
) -> dict[str, Measurement]:
    """The durable scenarios over databases that `opened` makes; by default in memory alone.

    `make`: the store at a place, for the process that prepares a restart.
    """
    durable = Durable(opened, make)
    return {
        "durable_sqlite": durable.runs,
        "durable_postgres": durable.runs,
        "durable_steady": durable.steady,
        "restart": durable.restart,
        "add_flush": durable.add_flush,
        "unchanged": durable.unchanged,
        "prepare": durable.prepare,
    }


@frozen
class Durable:
    """The scenarios. Each makes a database of its own."""

    opened: Callable[[], AbstractContextManager[Database | None]]
    make: Callable[[str], Store] | None

    def runs(self, jobs: int, warm_s: float, seconds: float) -> Values:
        """A closed loop: each job is due again a millisecond after its end, so none is ever missed for want of time."""
        with self.opened() as database:
            return asyncio.run(_closed_loop(database, jobs, warm_s, seconds))

    def steady(self, jobs: int, rounds: int) -> Values:
        """Every job once a second, each at the phase that its id gives it."""
        with self.opened() as database:
            return asyncio.run(_steady(_store_of(database), jobs, rounds))

    def restart(self, jobs: int) -> Values:
        """A database that another process has filled is opened; without one the program adds its jobs anew."""
        with self.opened() as database:
            if database is not None:
                sizes = json.dumps({"jobs": jobs, "place": database.place})
                subprocess.run([sys.executable, sys.argv[0], "prepare", sizes], check=True, stdout=subprocess.DEVNULL)
                time.sleep(OVERDUE_S)
            return asyncio.run(_restart(database, jobs))

    def prepare(self, jobs: int, place: str) -> Values:
        """The other process: the jobs are stored at `place`."""
        assert self.make is not None
        asyncio.run(_prepare(self.make(place), jobs))
        return {}

    def add_flush(self, singles: int, jobs: int) -> Values:
        """Jobs made durable one by one, then many at once, then as many that are added in one call."""
        with self.opened() as database:
            return asyncio.run(_add_flush(database, singles, jobs))

    def unchanged(self, jobs: int, calls: int) -> Values:
        """Jobs that are said again and again, and are there already as they are to be."""
        with self.opened() as database:
            return asyncio.run(_unchanged(_store_of(database), jobs, calls))


async def _unchanged(store: Store | None, jobs: int, calls: int) -> Values:
    async def tick(number: int, host: str) -> None:
        """Never due here."""

    def say(s: Scheduler) -> tuple[float, float]:
        """Return how long the loop stands still, and the CPU of its thread. All that is said is made anew."""
        given = [(f"job-{index}", "@every 1h", (index, f"host-{index % 400}")) for index in range(jobs)]
        began, cpu = time.perf_counter(), time.thread_time()
        s.add_many(tick, given, timeout="5s", on_conflict="update")
        return time.perf_counter() - began, time.thread_time() - cpu

    async with _scheduler(store) as s:
        s.register("tick", tick)
        say(s)
        await s.flush()
        rss, stood, used = 0.0, [], []
        for number in range(calls):
            if number == calls // 2:  # the allocator has found its size by then
                rss = rss_mib()
            stall, cpu = say(s)
            stood.append(stall)
            used.append(cpu)
            await s.flush()
        grown = max(0.0, rss_mib() - rss)
        values = {"job_us": median(used) / jobs * 1e6, "stall_ms": max(stood) * 1e3, "grown_mib": grown}
        s.stop(grace=0)
    return values


async def _closed_loop(database: Database | None, jobs: int, warm_s: float, seconds: float) -> Values:
    made = 0

    async def tick() -> None:
        nonlocal made
        made += 1

    async with _scheduler(_store_of(database)) as s:
        s.register("tick", tick)
        for index in range(jobs):
            s.add(tick, AGAIN, id=f"job-{index}")
        await s.flush()
        await asyncio.sleep(warm_s)
        begin, cpu, server_cpu = time.time(), cpu_s(), _server_cpu_s(database)
        made_before, commits = made, _commits(s)
        await asyncio.sleep(seconds)
        end, in_window = time.time(), made - made_before
        await s.flush()
        # Whatever ended until `end` is durable now, so the time that this took belongs to it.
        took = time.time() - begin
        cpu, server_cpu, commits = cpu_s() - cpu, _server_cpu_s(database) - server_cpu, _commits(s) - commits
        values = {"missed": s.statistics().missed, "peak_mib": peak_rss_mib()}
        s.stop(grace=0)
    values["run_us"] = cpu / max(1, made - made_before) * 1e6
    if database is not None:
        recorded, in_window = _recorded(database.store(), begin, end)
        values |= {"unrecorded": made - recorded, "runs_per_commit": in_window / max(1, commits)}
        if database.server_pid is not None:
            values["server_us"] = server_cpu / max(1, in_window) * 1e6
    return {"runs_per_s": in_window / took, **values}


def _recorded(store: Store, begin: float, end: float) -> tuple[int, int]:
    """How many records of successful runs the store holds when it is opened again, and of ends in the window."""
    store.open(int(time.time() * 1e6), lambda: None)
    ends = [tick.ended_us or 0 for tick in store.history(limit=ALL) if tick.outcome == Outcome.SUCCEEDED.value]
    store.close()
    return len(ends), sum(begin <= ended_us / 1e6 <= end for ended_us in ends)


async def _steady(store: Store | None, jobs: int, rounds: int) -> Values:
    phases = (phase(f"job-{index}", SECOND.interval).total_seconds() for index in range(jobs))
    grid = Grid(jobs, rounds, phases, sample_every=1)

    async def job(index: int) -> None:
        if now := grid.note(index):
            grid.late(now - current_run().due.timestamp())

    async with _scheduler(store) as s:
        s.register("job", job)
        for index in range(jobs):
            s.add(job, SECOND, id=f"job-{index}", args=(index,))
        await s.flush()
        values = await grid.observe()
        s.stop(grace=0)
        return values


async def _prepare(store: Store, jobs: int) -> None:
    starts = FirstStarts(jobs)
    async with _scheduler(store) as s:
        s.register("job", starts.job)
        _add_all(s, starts, jobs)
        await s.flush()
        s.stop(grace=0)


async def _restart(database: Database | None, jobs: int) -> Values:
    starts = FirstStarts(jobs)
    s = _scheduler(_store_of(database))
    s.register("job", starts.job)
    async with s:
        if database is None:
            _add_all(s, starts, jobs)
        loaded_s = starts.seconds()
        await starts.all_started()
        if len(s.jobs()) != jobs:
            raise RuntimeError(f"{len(s.jobs())} of {jobs} jobs came back")
        s.stop(grace=0)
    return {"loaded_s": loaded_s, **starts.values(), "peak_mib": peak_rss_mib()}


def _add_all(s: Scheduler, starts: FirstStarts, jobs: int) -> None:
    for index in range(jobs):
        if is_overdue(index):
            s.add(starts.job, SECOND, id=f"job-{index}", args=(index,), start="now")
        else:
            s.add(starts.job, HOUR, id=f"job-{index}", args=(index,))


async def _add_flush(database: Database | None, singles: int, jobs: int) -> Values:
    took = []
    async with _scheduler(_store_of(database)) as s:
        s.register("nothing", nothing)
        for index in range(singles):
            began = time.perf_counter()
            s.add(nothing, HOUR, id=f"single-{index}")
            await s.flush()
            took.append(time.perf_counter() - began)
        began = time.perf_counter()
        for index in range(jobs):
            s.add(nothing, HOUR, id=f"job-{index}")
        await s.flush()
        all_s = time.perf_counter() - began
        began = time.perf_counter()
        s.add_many(nothing, [(f"many-{index}", HOUR) for index in range(jobs)])
        await s.flush()
        many_s = time.perf_counter() - began
        s.stop(grace=0)
    if database is not None:
        _check_jobs(database.store(), singles + 2 * jobs)
    return {"single_ms": median(took) * 1e3, "single_max_ms": max(took) * 1e3, "all_s": all_s, "many_s": many_s}


def _check_jobs(store: Store, expected: int) -> None:
    store.open(int(time.time() * 1e6), lambda: None)
    found = sum(map(len, store.load()))
    store.close()
    if found != expected:
        raise RuntimeError(f"the store holds {found} jobs instead of {expected}")


async def nothing() -> None:
    """A job with nothing to do."""


def _scheduler(store: Store | None) -> Scheduler:
    return Scheduler(limit=ROOM, store=store)


def _store_of(database: Database | None) -> Store | None:
    return None if database is None else database.store()


def _server_cpu_s(database: Database | None) -> float:
    return 0.0 if database is None else database.server_cpu_s()


def _commits(s: Scheduler) -> int:
    store = s.statistics().store
    return 0 if store is None else store.commits
