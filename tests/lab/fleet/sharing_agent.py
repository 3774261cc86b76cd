"""An agent that shares a store, as a process: it runs jobs until it is told to stop, and notes each run in a file.

    python sharing_agent.py '{"dsn": ..., "schema": ..., "name": ..., "log": ..., "jobs": 60, "every": "200ms"}'

`labels` are its own. `more`: options of further jobs, by their ids; it adds such a dict from standard input, too, where
each line is one.
Each line of the log is one write: the agent, the job, the tick in microseconds, how late it began in seconds. It says
"runs" on standard output once it runs, and stops when standard input ends.
"""
# ruff: noqa: T201 - it speaks to who started it

import json
import logging
import os
import sys
import time

import anyio
from anyio.to_thread import run_sync

from schedule import Every
from scheduler import Scheduler, current_run
from scheduler.stores.postgres import PostgresStore


async def main(config):
    log = os.open(config["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def work(name=""):
        run = current_run()
        due = run.due.timestamp()
        os.write(log, f"{config['name']} {name or run.job_id} {round(due * 1e6)} {time.time() - due:.6f}\n".encode())
        if config.get("takes"):
            await anyio.sleep(config["takes"])

    place = {"schema": config["schema"], "name": config["name"], "labels": config.get("labels")}
    store = PostgresStore(config["dsn"], shared=True, **place)
    s = Scheduler(store=store, poll="1s", crash_floor=config.get("crash_floor", "50ms"))
    s.register("work", work)
    every = Every(config["every"])
    s.add_many("work", [(f"job-{n}", every, (f"job-{n}",)) for n in range(config["jobs"])], on_conflict="keep")

    def add(jobs):
        for id, options in jobs.items():
            s.add("work", every, id=id, on_conflict="keep", **options)

    add(config.get("more", {}))
    async with s:
        print("runs", flush=True)
        while line := await run_sync(sys.stdin.readline, abandon_on_cancel=True):
            add(json.loads(line))
        s.stop("5s")


if __name__ == "__main__":
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    anyio.run(main, json.loads(sys.argv[1]))
