"""Runs that go through a beanstalkd, with their records in PostgreSQL: how many a second, and how late they begin.

    python -m benchmarks.queued_runs [--jobs 1000] [--every 1] [--seconds 10]

One scheduler with so many jobs, on servers of its own: PostgreSQL with fsync on a Unix socket, beanstalkd with a log.
Each run is put, reserved, taken, marked, ended
and deleted. It prints one JSON object: runs a second, lateness in milliseconds, and CPU of this process a run.
"""

import argparse
import json
import logging
import sys
import time
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from beanstalkd_server import BeanstalkdServer
from postgres_server import PostgresServer
from scheduler import Scheduler, current_run
from scheduler.queues.beanstalkd import BeanstalkdQueue
from scheduler.stores.postgres import PostgresStore

WARM = 3.0


async def measure(jobs, every, seconds):
    """Run, and return what was found."""
    late = []

    async def work():
        late.append(time.time() - current_run().due.timestamp())

    with PostgresServer(fsync=True) as server, BeanstalkdServer() as broker:
        store = PostgresStore(server.dsn, shared=True)
        scheduler = Scheduler(store=store, queue=BeanstalkdQueue(broker.address), limit=2_000, blocked_after=None)
        async with scheduler:
            scheduler.register("work", work)
            for number in range(jobs):
                scheduler.add("work", f"@every {every}s", id=f"job-{number}")
            await scheduler.flush()
            await anyio.sleep(WARM + every)
            late.clear()
            began, cpu = time.monotonic(), time.process_time()
            await anyio.sleep(seconds)
            took, cpu = time.monotonic() - began, time.process_time() - cpu
            found = sorted(late) or [float("nan")]
            statistics = scheduler.statistics().queue
            scheduler.stop(grace=1)
    return {
        "runs_per_s": round(len(found) / took),
        "asked_per_s": round(jobs / every),
        "late_ms": {name: round(1e3 * found[int(share * (len(found) - 1))], 1) for name, share in SHARES.items()},
        "cpu_us_per_run": round(1e6 * cpu / max(len(found), 1)),
        "taken": statistics.taken,
        "held": statistics.held,
        "dropped": dict(statistics.dropped),
    }


SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--every", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    print(json.dumps(anyio.run(measure, given.jobs, given.every, given.seconds)))


if __name__ == "__main__":
    main()
