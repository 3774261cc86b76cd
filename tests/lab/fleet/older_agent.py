"""An agent that has its store for itself, as a process: with this code, or with that of an older version.

    PYTHONPATH=OLDER/src python older_agent.py '{"dsn": ..., "schema": ..., "log": ..., "jobs": 20, "every": "200ms"}'

It uses nothing that the version before stores were shared did not have. Each run is one write to `log`: "older JOB
DUE", in microseconds. It says "runs" on standard output once it runs, and stops when standard input ends, or when
another agent has taken the store over. What the store refuses it says on standard error, and exits with 3.
"""
# ruff: noqa: T201 - it speaks to who started it

import json
import logging
import os
import sys
import threading

import anyio

from schedule import Every
from scheduler import Scheduler, SchedulerStarted, StoreDown, StoreError, current_run
from scheduler.stores.postgres import PostgresStore


async def main(config):
    log = os.open(config["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def work(name):
        os.write(log, f"older {name} {round(current_run().due.timestamp() * 1e6)}\n".encode())

    def hear(event):
        if isinstance(event, SchedulerStarted):
            print("runs", flush=True)
        elif isinstance(event, StoreDown) and event.is_taken_over:
            s.stop("5s")

    def until_told():
        sys.stdin.read()
        s.stop("5s")

    s = Scheduler(store=PostgresStore(config["dsn"], schema=config["schema"]), poll="100ms", crash_floor="50ms")
    s.register("work", work)
    s.listen(hear)
    for number in range(config["jobs"]):
        s.add("work", Every(config["every"]), id=f"job-{number}", args=(f"job-{number}",), on_conflict="keep")
    threading.Thread(target=until_told, daemon=True).start()
    try:
        await s.run()
    except StoreError as error:
        print(error, file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    anyio.run(main, json.loads(sys.argv[1]))
