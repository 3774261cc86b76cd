"""The agent that crash_loop.py kills: hundreds of jobs at work while others are added, removed, paused and changed.

It is told what to do by JSON on its command line, and by one line on stdin when to begin, so that its imports can be
over by then. What must outlive it goes to two files, each line by one write, which kill -9 does not undo:

    effects   round job due attempt fence        a run has begun
    changes   asked|done round number verb job argument instant   (of a pause of many: its scope in place of the job)
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
from scheduler.stores import Retention
from scheduler.stores.postgres import PostgresStore
from scheduler.stores.sqlite import SQLiteStore

CRASH_FLOOR = 0.2
CHANGERS = 4
CHURNED = 20
"""Jobs that come, change and go, for each changer."""

TAG = "tag"
SCOPES = {"everything": None, f"tag:{TAG}": TAG}
"""Of pauses of many, as the scheduler calls them."""

KINDS = {
    "plain": {},
    "all": {"missed": Missed.ALL, "catch_up": 5},
    "queue": {"overlap": Overlap.QUEUE, "missed": Missed.ALL, "catch_up": 3},
    "skip": {"missed": Missed.SKIP, "grace": "50ms"},
    "beside": {"overlap": Overlap.ALLOW, "max_running": 3},
    "again": {"delivery": Delivery.AT_LEAST_ONCE},
    "retried": {"delivery": Delivery.AT_LEAST_ONCE, "retry": Retry.exponential("30ms", max_retries=3)},
    "narrow": {"needs": "narrow"},
    "several": {"delivery": Delivery.AT_LEAST_ONCE, "overlap": Overlap.ALLOW, "max_running": 3},
    "tagged": {"delivery": Delivery.AT_LEAST_ONCE, "tags": [TAG]},
    "unknown": {"delivery": Delivery.AT_LEAST_ONCE},
    "moved": {"delivery": Delivery.AT_LEAST_ONCE},
}
"""What the jobs that stay have for options; their ids begin so. Not every agent knows the task of those that are
"unknown"; those that are "moved" have another schedule at each start.
"""

MEANS = {"queue": 0.05, "narrow": 0.05, "several": 0.2}
"""Seconds that their runs take in the mean; others take MEAN."""

MEAN = 0.01

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


def reason_of(job):
    """Return why the job itself is paused, as against all or those of its tag; "-": it is not."""
    return "-" if job.paused_by is None else job.paused_by.reason


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
        self.knows_all = config["knows_all"] or number % 3 != 1
        if self.knows_all:
            self.scheduler.register("rare", self.work)

    async def work(self, mean, failing):
        run = current_run()
        self.effects.write(self.number, run.job_id, us_of(run.due), run.attempt, run.fence)
        await anyio.sleep(self.random.expovariate(1 / mean))
        if self.random.random() < failing:
            raise ValueError(failing)

    def add_those_that_stay(self):
        for kind, options in KINDS.items():
            if kind == "unknown" and not self.knows_all:
                continue
            task = "rare" if kind == "unknown" else "work"
            on_conflict = "update" if kind == "moved" else "keep"
            args = (MEANS.get(kind, MEAN), 0.3 if kind == "retried" else 0.05)
            for interval in INTERVALS:
                for number in range(EACH):
                    name = f"{kind}-{interval:g}-{number}"
                    every = self.random.choice(INTERVALS) if kind == "moved" else interval
                    schedule = f"@every {every:g}s"
                    self.scheduler.add(task, schedule, id=name, args=args, on_conflict=on_conflict, **options)
        for number in range(CHANGERS * 5):
            self.scheduler.add("work", "@every 300ms", id=f"toggled-0.3-{number}", args=(0.01, 0), on_conflict="keep")

    def tell_what_was_found(self):
        found = (
            f"{job.id}={job.schedule.interval // timedelta(milliseconds=1)},{reason_of(job)}".replace(" ", "_")
            for job in self.scheduler.jobs()
            if job.id.startswith(("churned", "toggled"))
        )
        self.changes.write("found", self.number, *found)

    async def free_those_in_quarantine(self):
        for job in self.scheduler.jobs():
            if reason_of(job).startswith("quarantined"):
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
                self.scheduler.add(
                    "work",
                    f"@every {argument}ms",
                    id=name,
                    args=(MEAN, 0),
                    delivery=Delivery.AT_LEAST_ONCE,
                    on_conflict="update",
                )
            case "update":
                self.scheduler.get(name).update(schedule=f"@every {argument}ms")
            case "remove":
                self.scheduler.get(name).remove()
            case "pause":
                self.scheduler.get(name).pause("by the load")
            case "resume":
                self.scheduler.get(name).resume()
            case "hold":
                self.scheduler.pause(SCOPES[name], reason="by the load")
            case "let-go":
                self.scheduler.resume(SCOPES[name])

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

    async def keep_pausing(self):
        """Many at a time. What is paused when the agent is killed is so for the next one."""
        while True:
            for scope in SCOPES:
                if self.random.random() < 0.5:
                    await self.change("let-go", scope)
            await anyio.sleep(self.random.expovariate(5))
            await self.change("hold", self.random.choice(("everything", *[f"tag:{TAG}"] * 3)))
            await anyio.sleep(self.random.expovariate(20))

    async def run(self, last_seconds):
        """Work until killed, or for so many seconds, and stop in order."""
        async with self.scheduler:
            self.tell_what_was_found()
            self.add_those_that_stay()
            await self.free_those_in_quarantine()
            await self.scheduler.flush()
            print("ready", flush=True)
            if last_seconds:
                for scope in SCOPES:
                    await self.change("let-go", scope)
                for job in self.scheduler.jobs():
                    if job.paused_by is not None:
                        await self.change("resume", job.id)
                await anyio.sleep(last_seconds)
                return
            async with anyio.create_task_group() as group:
                group.start_soon(self.keep_pausing)
                for changer in range(CHANGERS):
                    group.start_soon(self.keep_changing, changer)


if __name__ == "__main__":
    config = json.loads(sys.argv[1])
    logging.basicConfig(filename=config["log"], level=logging.ERROR)
    print("here", flush=True)
    number, last_seconds = sys.stdin.readline().split()
    anyio.run(Load(config, int(number)).run, float(last_seconds), backend=config["backend"])
