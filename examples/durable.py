"""Two jobs that are remembered in a file. This program is killed in the middle of their runs, and started again.

`python examples/durable.py jobs.db` is the program alone. Kill it and start it as often as you like.
"""

import logging
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio

from scheduler import Delivery, Scheduler, current_run
from scheduler.stores.sqlite import SQLiteStore


async def work(seconds: float) -> None:
    run = current_run()
    print(f"{run.job_id} begins, attempt {run.attempt}", flush=True)
    await anyio.sleep(seconds)


async def main(database: str) -> None:
    # A job whose process died under it rests for five minutes. Nobody wants to watch that.
    s = Scheduler(store=SQLiteStore(database), crash_floor="1s")
    s.register("work", work)  # the database holds this name, never the function
    for id, delivery in (("report", Delivery.AT_MOST_ONCE), ("backup", Delivery.AT_LEAST_ONCE)):
        s.add("work", "@every 1h", id=id, args=(0.3,), start="now", delivery=delivery, on_conflict="update")
    async with s:
        await anyio.sleep(2)
        for record in await s.history():
            print(f"{record.job_id}, attempt {record.attempt}: {record.outcome and record.outcome.value}", flush=True)


def demonstrate(database: Path) -> None:
    program = [sys.executable, __file__, str(database)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as first:  # noqa: S603 - this program
        for _ in range(2):
            print(first.stdout.readline(), end="")
        first.kill()  # kill -9
    print("killed", flush=True)
    subprocess.run(program, check=True)  # noqa: S603 - the same


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    if len(sys.argv) > 1:
        anyio.run(main, sys.argv[1])
    else:
        with tempfile.TemporaryDirectory(prefix="timerqueue-durable-") as folder:
            demonstrate(Path(folder, "jobs.db"))
