"""APScheduler 4 with its SQLAlchemy store in a SQLite file: WAL and synchronous FULL, as ours has it.

The engine is a synchronous one with a single connection: SQLite has one writer, and this was faster than aiosqlite with
one connection and with several. Results of runs are kept for an hour, which is the history that ours keeps. The rest is
as in `aps4.py`.
"""

import asyncio
import json
import logging
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from aps4 import Current, at, hourly, nothing, run_grid
from apscheduler import AsyncScheduler
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from apscheduler.triggers.interval import IntervalTrigger
from child import Values, serve
from meters import cpu_s, peak_rss_mib
from sqlalchemy import create_engine, event
from workload import OVERDUE_S, FirstStarts, Grid, is_overdue

KEPT_S = 3600
MOST_JOBS = 200
MOST_SINGLES = 100
LONGEST_WAIT_S = 600
HOUR_US = 3_600_000_000


class Counts:
    """What the job functions count: this scheduler wants functions that can be imported by name."""

    made = 0
    starts: FirstStarts


async def tick() -> None:
    """A run of the closed loop."""
    Counts.made += 1


async def run_first(index: int) -> None:
    """A run after the restart."""
    await Counts.starts.job(index)


@contextmanager
def database() -> Iterator[str]:
    """The path of a file that is not there yet."""
    with tempfile.TemporaryDirectory(prefix="bench-aps4-") as folder:
        yield str(Path(folder) / "jobs.db")


@asynccontextmanager
async def ready(path: str, job: Callable[..., Any]) -> AsyncIterator[AsyncScheduler]:
    """A scheduler over the file that knows `job`, which may run many times at once. It has not been started."""
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    engine = create_engine(f"sqlite:///{path}", pool_size=1, max_overflow=0, pool_timeout=LONGEST_WAIT_S)
    event.listen(engine, "connect", _set_up)
    async with AsyncScheduler(data_store=SQLAlchemyDataStore(engine)) as s:
        await s.configure_task(job.__name__, func=job, max_running_jobs=None)
        yield s


def _set_up(connection: sqlite3.Connection, _: object) -> None:
    for pragma in ("journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")


def durable_sqlite(jobs: int, warm_s: float, seconds: float) -> Values:
    """It has no pause after a run, so few jobs ask each second for several times what it makes of them."""

    async def main(path: str) -> Values:
        async with ready(path, tick) as s:
            first = at(time.time())
            for index in range(min(jobs, MOST_JOBS)):
                trigger = IntervalTrigger(seconds=1, start_time=first)
                await s.add_schedule("tick", trigger, id=f"job-{index}", job_result_expiration_time=KEPT_S)
            await s.start_in_background()
            await asyncio.sleep(warm_s)
            began, cpu, before = time.time(), cpu_s(), _results(path)
            await asyncio.sleep(seconds)
            runs, took = _results(path) - before, time.time() - began
            return {
                "runs_per_s": runs / took,
                "run_us": (cpu_s() - cpu) / max(1, runs) * 1e6,
                "peak_mib": peak_rss_mib(),
            }

    with database() as path:
        return asyncio.run(main(path))


def _results(path: str) -> int:
    """How many ended runs another connection sees: those that are committed."""
    with closing(sqlite3.connect(path)) as connection:
        count: int = connection.execute("SELECT count(*) FROM job_results").fetchone()[0]
    return count


def durable_steady(jobs: int, rounds: int) -> Values:
    """Every job once a second, each at a phase of its own."""

    async def main(path: str) -> Values:
        async with ready(path, run_grid) as s:
            grid = Current.grid = Grid(jobs, rounds, sample_every=1)
            for index in range(jobs):
                trigger = IntervalTrigger(seconds=1, start_time=at(grid.next_due(index)))
                options = {"args": (index,), "id": f"job-{index}", "job_result_expiration_time": KEPT_S}
                await s.add_schedule("run_grid", trigger, **options)
            await s.start_in_background()
            return await grid.observe()

    with database() as path:
        return asyncio.run(main(path))


def restart(jobs: int) -> Values:
    """A file that another process has filled is opened. The jobs stay in it, so none is loaded."""

    async def main(path: str) -> Values:
        starts = Counts.starts = FirstStarts(jobs)
        async with ready(path, run_first) as s:
            await s.start_in_background()
            await starts.all_started()
            return {**starts.values(), "peak_mib": peak_rss_mib()}

    with database() as path:
        sizes = json.dumps({"jobs": jobs, "place": path})
        subprocess.run([sys.executable, "-E", "-s", __file__, "prepare", sizes], check=True, stdout=subprocess.DEVNULL)
        time.sleep(OVERDUE_S)
        return asyncio.run(main(path))


def prepare(jobs: int, place: str) -> Values:
    """What is overdue and one job of the hour are added, the others copied, because adding them takes long."""

    async def main() -> None:
        async with ready(place, run_first) as s:
            await s.add_schedule("run_first", hourly(), id="hourly", args=(1,), job_result_expiration_time=KEPT_S)
            for index in filter(is_overdue, range(jobs)):
                trigger = IntervalTrigger(seconds=1, start_time=at(time.time()))
                options = {"args": (index,), "id": f"job-{index}", "job_result_expiration_time": KEPT_S}
                await s.add_schedule("run_first", trigger, **options)

    asyncio.run(main())
    _copy_hourly(place, jobs - sum(map(is_overdue, range(jobs))) - 1)
    return {}


def _copy_hourly(place: str, copies: int) -> None:
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("CREATE TEMP TABLE copied AS SELECT * FROM schedules WHERE id = 'hourly'")
        numbers = "WITH RECURSIVE number (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM number WHERE n <= ?)"
        connection.execute(f"{numbers} INSERT INTO copied SELECT copied.* FROM copied, number", [copies])
        connection.execute(
            "UPDATE copied SET id = 'job-h' || rowid, next_fire_time = next_fire_time + rowid * ?",
            [HOUR_US // (copies + 1)],
        )
        connection.execute("DELETE FROM copied WHERE rowid = 1")
        connection.execute("INSERT INTO schedules SELECT * FROM copied")


def add_flush(singles: int, jobs: int) -> Values:  # noqa: ARG001 - there is no way to add many at once
    """Each `add_schedule` is durable when it returns."""

    async def main(path: str) -> Values:
        took = []
        async with ready(path, nothing) as s:
            for index in range(min(singles, MOST_SINGLES)):
                began = time.perf_counter()
                await s.add_schedule("nothing", hourly(), id=f"job-{index}")
                took.append(time.perf_counter() - began)
        return {"single_ms": median(took) * 1e3, "single_max_ms": max(took) * 1e3}

    with database() as path:
        return asyncio.run(main(path))


if __name__ == "__main__":
    serve(
        {
            "durable_sqlite": durable_sqlite,
            "durable_steady": durable_steady,
            "restart": restart,
            "prepare": prepare,
            "add_flush": add_flush,
        },
        distribution="APScheduler",
    )
