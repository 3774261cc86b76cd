"""The agent that crash_loop.py kills: hundreds of jobs at work while others are added, removed, paused and changed.

It is told what to do by JSON on its command line, and by one line on stdin when to begin, so that its imports can be
over by then. What must outlive it goes to two files, each line by one write, which kill -9 does not undo:

    effects   round job due attempt fence        a run has begun
    changes   asked|done round number verb job argument instant
              found round job=milliseconds,paused ...       once per round: the jobs that changes are made to
"""
# ruff: noqa: T201 - it speaks to who started it

import json
import logging
import os
import random
import sys
import time
from contextlib import suppress
from datetime import timedelta
from itertools import count

import anyio

from schedule import Missed
from scheduler import Delivery, JobNotFound, Overlap, Retry, Scheduler, current_run
from scheduler._stored import Retention
from scheduler.stores.postgres import PostgresStore
from scheduler.stores.sqlite import SQLiteStore

CRASH_FLOOR = 0.2
CHANGERS = 4
CHURNED = 20
"""Jobs that come, change and go, for each changer."""

KINDS = {
    "plain": {},
    "all": {"missed": Missed.ALL, "catch_up": 5},
    "queue": {"overlap": Overlap.QUEUE, "missed": Missed.ALL, "catch_up": 3},
    "skip": {"missed": Missed.SKIP, "grace": "50ms"},
    "beside": {"overlap": Overlap.ALLOW, "max_running": 3},
    "again": {"delivery": Delivery.AT_LEAST_ONCE},
    "retried": {"delivery": Delivery.AT_LEAST_ONCE, "retry": Retry.exponential("30ms", max_retries=3)},
    "narrow": {"needs": "narrow"},
}
"""What the jobs that stay have for options; their ids begin so."""

INTERVALS = (0.2, 0.5, 1.0, 2.0)
EACH = 4
"""Jobs of each kind and interval."""


def store_of(spec):
    """Make the store that a dictionary describes."""
    options = dict(spec)
    return {"sqlite": SQLiteStore, "postgres": PostgresStore}[options.pop("kind")](**options)


def us_of(instant):
    """Return whole microseconds since 1970."""
    return round(instant.timestamp() * 1e6)


class Notes:
    """A file of lines that outlive this process."""

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, *words):
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


class Load:
    """The scheduler, its tasks, and those who change its jobs."""

    def __init__(self, config, number):
        self.number = number
        self.random = random.Random(f"{config['seed']} {number}")
        self.effects = Notes(config["effects"])
        self.changes = Notes(config["changes"])
        self.numbers = count()
        self.scheduler = Scheduler(
            limit=40,
            limits={"narrow": 3},
            store=store_of(config["store"]),
            crash_floor=CRASH_FLOOR,
            retention=Retention(per_job=None, age=None, total_bytes=None),
        )
        self.scheduler.register("work", self.work)

    async def work(self, mean, failing):
        run = current_run()
        self.effects.write(self.number, run.job_id, us_of(run.due), run.attempt, run.fence)
        await anyio.sleep(self.random.expovariate(1 / mean))
        if self.random.random() < failing:
            raise ValueError(failing)

    def add_those_that_stay(self):
        for kind, options in KINDS.items():
            mean = 0.05 if kind in {"queue", "narrow"} else 0.01
            failing = 0.3 if kind == "retried" else 0.05
            for interval in INTERVALS:
                for number in range(EACH):
                    name = f"{kind}-{interval:g}-{number}"
                    schedule = f"@every {interval:g}s"
                    self.scheduler.add("work", schedule, id=name, args=(mean, failing), on_conflict="keep", **options)
        for number in range(CHANGERS * 5):
            self.scheduler.add("work", "@every 300ms", id=f"toggled-0.3-{number}", args=(0.01, 0), on_conflict="keep")

    def tell_what_was_found(self):
        found = (
            f"{job.id}={job.schedule.interval // timedelta(milliseconds=1)},{job.error or '-'}".replace(" ", "_")
            for job in self.scheduler.jobs()
            if job.id.startswith(("churned", "toggled"))
        )
        self.changes.write("found", self.number, *found)

    async def free_those_in_quarantine(self):
        for job in self.scheduler.jobs():
            if (job.error or "").startswith("quarantined"):
                await self.change("resume", job.id)

    async def change(self, verb, name, argument="-"):
        """Do it, and write down before that it was asked for and after that it is durable."""
        number = next(self.numbers)
        line = (self.number, number, verb, name, argument)
        self.changes.write("asked", *line, time.time_ns() // 1000)
        with suppress(JobNotFound):
            self.carry_out(verb, name, argument)
        await self.scheduler.flush()
        self.changes.write("done", *line, time.time_ns() // 1000)

    def carry_out(self, verb, name, argument):
        match verb:
            case "put":
                self.scheduler.add("work", f"@every {argument}ms", id=name, args=(0.01, 0), on_conflict="update")
            case "update":
                self.scheduler.get(name).update(schedule=f"@every {argument}ms")
            case "remove":
                self.scheduler.get(name).remove()
            case "pause":
                self.scheduler.get(name).pause("by the load")
            case "resume":
                self.scheduler.get(name).resume()

    async def keep_changing(self, changer):
        churned = [f"churned-{changer}-{number}" for number in range(CHURNED)]
        toggled = [f"toggled-0.3-{changer * 5 + number}" for number in range(5)]
        while True:
            if self.random.random() < 0.2:
                await self.change(self.random.choice(("pause", "resume", "resume")), self.random.choice(toggled))
            else:
                verb = self.random.choice(("put", "put", "update", "remove", "pause", "resume"))
                milliseconds = self.random.choice((250, 500, 1000, 2000)) if verb in {"put", "update"} else "-"
                await self.change(verb, self.random.choice(churned), milliseconds)
            await anyio.sleep(self.random.expovariate(100))

    async def run(self, last_seconds):
        """Work until killed, or for so many seconds, and stop in order."""
        async with self.scheduler:
            self.tell_what_was_found()
            self.add_those_that_stay()
            await self.free_those_in_quarantine()
            await self.scheduler.flush()
            print("ready", flush=True)
            if last_seconds:
                for job in self.scheduler.jobs():
                    if job.is_paused:
                        await self.change("resume", job.id)
                await anyio.sleep(last_seconds)
                return
            async with anyio.create_task_group() as group:
                for changer in range(CHANGERS):
                    group.start_soon(self.keep_changing, changer)


if __name__ == "__main__":
    config = json.loads(sys.argv[1])
    logging.basicConfig(filename=config["log"], level=logging.ERROR)
    print("here", flush=True)
    number, last_seconds = sys.stdin.readline().split()
    anyio.run(Load(config, int(number)).run, float(last_seconds), backend=config["backend"])
