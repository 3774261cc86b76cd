"""One agent of a fleet, as a process that does what it is told: fleet_chaos.py starts, troubles and kills these.

    python fleet_agent.py '{"dsn": ..., "schema": ..., "log": ..., "jobs": {"once": 100}, "every": 1.0}'

What its tasks do goes to `log`, each line by one write, which kill -9 does not undo. Times are microseconds of
CLOCK_MONOTONIC, which is one for all processes of a machine, whatever their wall clocks say:

    b JOB DUE ATTEMPT FENCE AT      a run has begun
    e JOB DUE ATTEMPT FENCE AT      it has ended

It takes commands as lines of JSON on standard input, and answers each with a line once what it did is durable. It ends
in order when standard input ends. TIMERQUEUE_DEFECT in its environment plants a defect: see fleet_defects.py.
"""
# ruff: noqa: T201 - it speaks to who started it

import json
import logging
import os
import sys
import time

import anyio
from anyio.to_thread import run_sync

import fleet_defects
from schedule import Every, Missed
from scheduler import Delivery, Overlap, Scheduler, StoreDown, StoreUp, current_run
from scheduler.stores import Retention
from scheduler.stores.postgres import PostgresStore
from timerqueue import SystemClock

PATIENCE = 20.0
"""Seconds in which an agent that lost its row joins again, or ends and leaves it to who started it."""

KINDS = {
    "once": {},
    "again": {"delivery": Delivery.AT_LEAST_ONCE},
    "limited": {"needs": "narrow"},
    "edited": {},
}
"""What the jobs have for options whose ids begin so."""

ALL = {"missed": Missed.ALL, "catch_up": 1000, "overlap": Overlap.QUEUE}
"""No tick is passed over because its time has gone by, so that each has to be accounted for."""

TAKES = {"limited": 0.05, "again": 0.01}
"""Seconds that their runs take; others take none."""


def us_now():
    return time.monotonic_ns() // 1000


class SteppedClock(SystemClock):
    """The machine's clock, set by `offset` seconds."""

    __slots__ = ("offset", "wall")

    def __init__(self):
        super().__init__()
        self.offset = 0.0
        self.wall = lambda: time.time() + self.offset


class Agent:
    """The scheduler, its one task, and the commands."""

    def __init__(self, config, limit):
        self.log = os.open(config["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.every = config["every"]
        self.clock = SteppedClock()
        self.is_buried = anyio.Event()
        self.is_back = anyio.Event()
        self.scheduler = Scheduler(
            limit=1_000,
            limits={"narrow": limit},
            store=PostgresStore(config["dsn"], schema=config["schema"], shared=True),
            crash_floor="50ms",
            retention=Retention(per_job=None, age=None, total_bytes=None),
            clock=self.clock,
            poll="1s",
        )
        self.scheduler.register("work", self.work)
        self.scheduler.listen(self.note)

    def note(self, event):
        match event:
            case StoreDown(is_taken_over=True):
                self.is_back = anyio.Event()
                self.is_buried.set()
            case StoreUp():
                self.is_buried = anyio.Event()
                self.is_back.set()

    async def work(self, takes):
        run = current_run()
        self.write("b", run)
        if takes:
            await anyio.sleep(takes)
        self.write("e", run)

    def write(self, word, run):
        due = round(run.due.timestamp() * 1e6)
        os.write(self.log, f"{word} {run.job_id} {due} {run.attempt} {run.fence} {us_now()}\n".encode())

    def add(self, kind, ids, every):
        interval = Every(every)
        args = (TAKES.get(kind, 0),)
        self.scheduler.add_many(
            "work", [(id, interval, args) for id in ids], on_conflict="update", **ALL, **KINDS[kind]
        )

    async def carry_out(self, verb, id=None, every=None, offset=None, kind="edited", ids=()):
        """Do what a command says; return once it is durable."""
        match verb:
            case "add":
                self.add(kind, ids or [id], every)
            case "update":
                self.scheduler.get(id).update(schedule=Every(every))
            case "remove" | "pause" | "resume" | "run_now":
                getattr(self.scheduler.get(id), verb)()
            case "clock":
                self.clock.offset = offset
        if verb != "clock":
            await self.scheduler.flush()

    async def obey(self):
        """Carry out commands until there are no more."""
        while line := await run_sync(sys.stdin.readline, abandon_on_cancel=True):
            try:
                await self.carry_out(**json.loads(line))
                print(json.dumps({"done": True}), flush=True)
            except Exception as error:  # noqa: BLE001 - whatever it is, who asked wants to know
                print(json.dumps({"done": False, "why": repr(error)}), flush=True)
        self.scheduler.stop("5s")

    async def give_up(self):
        """End once it has been buried and does not join again."""
        while True:
            await self.is_buried.wait()
            with anyio.move_on_after(PATIENCE):
                await self.is_back.wait()
                continue
            os._exit(3)


def limit_of(config):
    """Return the limit that all agents have together, where they can have one."""
    try:
        from scheduler import fleet  # noqa: PLC0415 - it may not be there yet
    except ImportError:
        return config["limit"]
    return fleet(config["limit"])


async def main(config):
    logging.basicConfig(filename=config.get("told"), format=f"%(asctime)s {os.getpid()} %(name)s %(message)s")
    logging.getLogger("scheduler").setLevel("INFO")
    fleet_defects.plant(os.environ.get("TIMERQUEUE_DEFECT", ""))
    agent = Agent(config, limit_of(config))
    for kind, count in config.get("jobs", {}).items():
        agent.add(kind, [f"{kind}-{number}" for number in range(count)], config["every"])
    async with agent.scheduler, anyio.create_task_group() as tasks:
        tasks.start_soon(agent.give_up)
        await agent.scheduler.flush()
        print(json.dumps({"runs": True}), flush=True)
        await agent.obey()
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main, json.loads(sys.argv[1]))
