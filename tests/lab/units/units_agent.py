"""An agent with a limit of the fleet, as a process, whose tasks note when they begin and end, and nothing else.

    python units_agent.py '{"dsn": ..., "schema": ..., "name": ..., "log": ..., "jobs": 60, "fleet": 7, ...}'

Each line of the log is one write: "+" or "-", the agent, the job, and seconds of the machine's steady clock, which is
the same for all processes. With "window" the limit is a rate: so many in so many seconds. It says "runs" on standard
output once it runs, and stops when standard input ends. Without "shared" the limit is one of this agent alone.
"""
# ruff: noqa: T201 - it speaks to who started it

import json
import os
import sys
import time

import anyio
from anyio.to_thread import run_sync

from schedule import Every
from scheduler import Scheduler, fleet, rate
from scheduler.stores.postgres import PostgresStore


async def main(config):
    log = os.open(config["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    name, takes, size = config["name"], config.get("takes", 0.02), config["fleet"]

    def note(what, job):
        os.write(log, f"{what} {name} {job} {time.monotonic():.6f}\n".encode())

    async def work(job):
        note("+", job)
        try:
            await anyio.sleep(takes)
        finally:
            note("-", job)

    is_shared = config.get("shared", True)
    store = PostgresStore(config["dsn"], schema=config["schema"], shared=is_shared)
    size = rate(size, config["window"]) if "window" in config else size
    limits = {"http": fleet(size) if is_shared else size}
    s = Scheduler(store=store, poll="1s", crash_floor="50ms", limits=limits)
    s.register("work", work)
    every = Every(config.get("every", "100ms"))
    s.add_many(
        "work", [(f"job-{n}", every, (f"job-{n}",)) for n in range(config["jobs"])], needs="http", on_conflict="keep"
    )
    async with s:
        print("runs", flush=True)
        await run_sync(sys.stdin.read, abandon_on_cancel=True)
        s.stop("5s")


if __name__ == "__main__":
    anyio.run(main, json.loads(sys.argv[1]))
