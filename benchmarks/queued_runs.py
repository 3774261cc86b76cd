"""Runs that go through a beanstalkd, with their records in PostgreSQL: how many a second, and how late they begin.

    python -m benchmarks.queued_runs [--agents 1] [--jobs 1000] [--every 1] [--seconds 10] [--memory]

So many agents, each a process, on servers of their own: PostgreSQL with fsync on a Unix socket, beanstalkd with a log.
Each run is put, reserved, taken, marked, ended and deleted. It prints one JSON object: runs a second of all agents,
lateness in milliseconds, and microseconds of CPU a run, of the agents, of PostgreSQL and of beanstalkd. A run begins
once its mark is durable; with --memory one agent keeps the records itself, so that the lateness is the queue's alone.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "kit" / "servers"))

from beanstalkd_server import BeanstalkdServer
from postgres_server import PostgresServer
from scheduler import Scheduler, current_run
from scheduler.queues.beanstalkd import BeanstalkdQueue
from scheduler.stores.memory import MemoryStore
from scheduler.stores.postgres import PostgresStore

ROOT = Path(__file__).resolve().parents[1]
WARM = 3.0
SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


async def agent(given):
    """Run as one agent, which may add the jobs, and return what it has found."""
    late = []

    async def work():
        late.append(time.time() - current_run().due.timestamp())

    store = MemoryStore() if given.memory else PostgresStore(given.dsn, shared=True)
    queue = BeanstalkdQueue(given.address, reservers=2)
    async with Scheduler(store=store, queue=queue, limit=2_000, blocked_after=None) as scheduler:
        scheduler.register("work", work)
        if given.adds:
            for number in range(given.jobs):
                scheduler.add("work", f"@every {given.every}s", id=f"job-{number}")
            await scheduler.flush()
        await anyio.sleep(WARM + given.every)
        late.clear()
        print("begun", flush=True)
        began, cpu = time.monotonic(), time.process_time()
        await anyio.sleep(given.seconds)
        found = {"late": list(late), "took": time.monotonic() - began, "cpu": time.process_time() - cpu}
        found["dropped"] = dict(scheduler.statistics().queue.dropped)
        scheduler.stop(grace=1)
    return found


def cpu_of(pid):
    """CPU seconds of a process and its children, so far; those that have ended count too."""
    stat = Path(f"/proc/{pid}")
    fields = (stat / "stat").read_text().rpartition(")")[2].split()
    ended = sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")  # cutime and cstime
    seconds = sum(int((task / "schedstat").read_text().split()[0]) for task in (stat / "task").iterdir()) / 1e9
    children = (stat / "task" / str(pid) / "children").read_text().split()
    return seconds + ended + sum(cpu_of(child) for child in children)


def measure(given):
    """Run all agents on servers of their own, and return what was found of all of them."""
    with PostgresServer(fsync=True) as server, BeanstalkdServer() as broker:
        command = [sys.executable, "-m", "benchmarks.queued_runs", "--dsn", server.dsn, "--address", broker.address]
        for name in ("jobs", "every", "seconds"):
            command += [f"--{name}", str(getattr(given, name))]
        command += ["--memory"] if given.memory else []
        adding = [["--adds"]] + [[]] * (given.agents - 1)
        agents = [subprocess.Popen([*command, *adds], cwd=ROOT, stdout=subprocess.PIPE) for adds in adding]
        for process in agents:
            process.stdout.readline()  # all are warm
        before = cpu_of(server.pid), cpu_of(broker.pid)
        time.sleep(given.seconds)
        after = cpu_of(server.pid), cpu_of(broker.pid)
        found = [json.loads(process.communicate()[0]) for process in agents]
    late = sorted(chain.from_iterable(each["late"] for each in found)) or [float("nan")]
    runs = len(late) / max(each["took"] for each in found)
    return {
        "runs_per_s": round(runs),
        "asked_per_s": round(given.jobs / given.every),
        "late_ms": {name: round(1e3 * late[int(share * (len(late) - 1))], 1) for name, share in SHARES.items()},
        "agents_us": round(1e6 * sum(each["cpu"] for each in found) / len(late)),
        "postgres_us": round(1e6 * (after[0] - before[0]) / given.seconds / runs),
        "beanstalkd_us": round(1e6 * (after[1] - before[1]) / given.seconds / runs),
        "dropped": [each["dropped"] for each in found],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--every", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--memory", action="store_true", help="keep the records in the agent's memory")
    for name in ("--dsn", "--address"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--adds", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    print(json.dumps(measure(given) if given.dsn is None else anyio.run(agent, given)))


if __name__ == "__main__":
    main()
