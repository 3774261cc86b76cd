"""A backlog that workers share through a beanstalkd: how long they take, beside the time that their room allows.

    python -m benchmarks.queued_backlog [--limits 1 60] [--jobs 600] [--takes 1.0] [--later 0]

All jobs are due at one moment, and each takes so many seconds. Each worker is a process, and runs at most as many at a
time as its limit says; the last one is started so many seconds later. It prints one JSON object: the seconds from when
all are there until the last run has ended, those of a fleet that wastes nothing, the one by the other, and how many
each has run.
"""

import argparse
import json
import logging
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "kit" / "servers"))

from beanstalkd_server import BeanstalkdServer
from postgres_server import PostgresServer
from scheduler import Scheduler
from scheduler.queues.beanstalkd import BeanstalkdQueue
from scheduler.stores.postgres import PostgresStore

ROOT = Path(__file__).resolve().parents[1]
LEAD = 6.0
"""Seconds within which all workers start and all jobs are added."""


async def work_off(given):
    """Run as one worker until our input is closed. It prints when each run has ended."""

    async def work():
        await anyio.sleep(given.takes)
        print(time.time(), flush=True)

    store, queue = PostgresStore(given.dsn, shared=True), BeanstalkdQueue(given.address)
    scheduler = Scheduler(store=store, queue=queue, limit=given.limit)
    scheduler.register("work", work)
    async with scheduler:
        print("begun", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)
        scheduler.stop(grace=0)


async def add(given, server, broker, due):
    """Add all jobs, and run none of them."""
    store, queue = PostgresStore(server.dsn, shared=True), BeanstalkdQueue(broker.address, reservers=0)
    async with Scheduler(store=store, queue=queue) as scheduler:
        scheduler.register("work", lambda: None)
        for number in range(given.jobs):
            scheduler.add("work", "@every 1d", id=f"job-{number}", start=datetime.fromtimestamp(due, UTC))
        await scheduler.flush()
        await anyio.sleep(1)  # until all of them stand in the queue


class Worker:
    """A worker in a process of its own, and when its runs have ended."""

    def __init__(self, given, server, broker, limit):
        command = [sys.executable, "-m", "benchmarks.queued_backlog", "--dsn", server.dsn, "--address", broker.address]
        command += ["--limit", str(limit), "--takes", str(given.takes)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._process.stdout.readline()  # it has begun
        self.ended = []
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self.ended.append(float(line))

    def close(self):
        """End it."""
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()


def measure(given):
    """Let all workers work the backlog off, on servers of their own, and return how long that took."""
    with PostgresServer(fsync=True) as server, BeanstalkdServer() as broker:
        workers = [Worker(given, server, broker, limit) for limit in given.limits[: -1 if given.later else None]]
        since = due = time.time() + LEAD
        anyio.run(add, given, server, broker, due)
        if given.later:
            time.sleep(due + given.later - time.time())
            workers.append(Worker(given, server, broker, given.limits[-1]))
            since = time.time()
        while sum(len(worker.ended) for worker in workers) < given.jobs:
            time.sleep(0.05)
        for worker in workers:
            worker.close()
    took = max(max(worker.ended, default=due) for worker in workers) - since
    left = given.jobs - sum(ended <= since for worker in workers for ended in worker.ended)
    ideal = left * given.takes / sum(given.limits)
    return {
        "took_s": round(took, 2),
        "ideal_s": round(ideal, 2),
        "ratio": round(took / ideal, 2),
        "runs": [len(worker.ended) for worker in workers],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limits", type=int, nargs="+", default=[1, 60])
    parser.add_argument("--jobs", type=int, default=600)
    parser.add_argument("--takes", type=float, default=1.0)
    parser.add_argument("--later", type=float, default=0.0)
    for name in ("--dsn", "--address"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    if given.dsn is None:
        print(json.dumps(measure(given)))
    else:
        anyio.run(work_off, given)


if __name__ == "__main__":
    main()
