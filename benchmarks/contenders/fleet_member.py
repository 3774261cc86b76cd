"""One agent of a fleet that is measured: it counts its runs and their lateness, and answers for a window.

`python fleet_member.py '{"dsn": ..., "jobs": 1000, "every": 20.0}'`: the agent that is told a number of jobs adds them.
`every` is in seconds; 0: each is due again a millisecond after its end. `paused`: they are until it reads "resume".
`room`: for so many runs at a time. It says a line when it runs, and answers each line on standard input with its
figures since the line before. It ends when standard input does.
"""

import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
from anyio.to_thread import run_sync

from schedule import After, Every, Schedule
from scheduler import Scheduler, current_run
from scheduler.stores.postgres import PostgresStore

ROOM = 10_000
LATER = 86_400
"""Seconds; an interval as long as that begins with a whole one."""


def schedule_of(every: float) -> Schedule:
    """Each job's."""
    return Every(every) if every else After("1ms")


async def main(config: dict[str, Any]) -> None:
    """The agent has run until it was told to end."""
    late: list[float] = []

    async def closed() -> None:
        late.append(0.0)

    async def timed() -> None:
        late.append(time.time() - current_run().due.timestamp())

    s = Scheduler(limit=config.get("room", ROOM), store=PostgresStore(config["dsn"], shared=True))
    s.register("job", timed if config["every"] else closed)
    schedule = schedule_of(config["every"])
    ids = range(config.get("jobs", 0))
    start = datetime.now(UTC) + timedelta(seconds=config["every"]) if config["every"] >= LATER else None
    options = {} if start is None else {"start": start}
    s.add_many("job", [(f"job-{number}", schedule) for number in ids], on_conflict="keep", **options)
    if config.get("paused"):
        s.pause()
    async with s:
        await s.flush()
        cpu = answered(late, time.process_time())
        while line := await run_sync(sys.stdin.readline, abandon_on_cancel=True):
            if line == "resume\n":
                s.resume()
            cpu = answered(late, cpu)
        s.stop("5s")


def answered(late: list[float], cpu: float) -> float:
    """Say what has been since then; the figures begin anew."""
    now = time.process_time()
    ordered = sorted(late)
    del late[:]
    p50, p99 = (ordered[int(share * (len(ordered) - 1))] if ordered else 0.0 for share in (0.5, 0.99))
    most = ordered[-1] if ordered else 0.0
    answer = {"runs": len(ordered), "cpu_s": now - cpu, "p50": p50, "p99": p99, "max": most, "pid": os.getpid()}
    print(json.dumps(answer), flush=True)
    return time.process_time()


if __name__ == "__main__":
    anyio.run(main, json.loads(sys.argv[1]))
