"""One agent of a fleet, as a process that does what it is told: fleet_chaos.py starts, troubles and kills these.

    python fleet_agent.py '{"dsn": ..., "schema": ..., "log": ..., "jobs": {"once": 100}, "every": 1.0}'

What its tasks do goes to `log`, each line by one write, which kill -9 does not undo. Times are microseconds of
CLOCK_MONOTONIC, which is one for all processes of a machine, whatever their wall clocks say:

    b JOB DUE ATTEMPT FENCE AT      a run has begun
    e JOB DUE ATTEMPT FENCE AT      it has ended
    c JOB DUE ATTEMPT FENCE AT      it was cut off: its agent does not hold its lease for sure
    x EVENT AT                      its agent was taken for dead ("lost"), or could not prune history ("unpruned")

With a `broker`, the executions of the jobs that are "queued" stand in that beanstalkd. They have a scheduler and a
schema of their own in the same process, and fences that are higher than all others.

It takes commands as lines of JSON on standard input, and answers each with a line once what it did is durable. It ends
in order when standard input ends. TIMERQUEUE_DEFECT in its environment plants a defect: see fleet_defects.py.
"""
# ruff: noqa: T201 - it speaks to who started it

import contextlib
import json
import logging
import os
import sys
import time
from datetime import UTC, datetime, timedelta

import anyio
from anyio.to_thread import run_sync

from schedule import Every, Missed
from scheduler import AgentLost, Delivery, Overlap, Scheduler, StoreDown, StoreUp, current_run, fleet
from scheduler._fleet.queue import audit
from scheduler.queues.beanstalkd import BeanstalkdQueue
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
    "queued": {},
    "queued_edited": {},
    "many": {"agents": 2},
    "everywhere": {"agents": "all"},
    "long": {},
    "queued_long": {},
    "queued_burst": {},
}
"""What the jobs have for options whose ids begin so."""

ALL = {"missed": Missed.ALL, "catch_up": 1000, "overlap": Overlap.QUEUE}
"""No tick is passed over because its time has gone by, so that each has to be accounted for."""

QUEUED = "queued"
"""What the ids of jobs begin with whose executions stand in the broker."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Where the grid lies of jobs that are due all at once."""

SOON = timedelta(seconds=3)
"""After which a run begins that does not end."""

FENCES = 1 << 52
"""Higher than all fences of the agents that share shards: a fence is that much more for agents that share a queue."""

ASLEEP = "asleep"
"""What the ids of jobs begin with that are due next month: rows for a bulk edit by hand."""

ROOM = 60
"""How many runs an agent has room for whose executions stand in the broker, unless it is told otherwise."""

UNPRUNED = "could not be pruned"

TTR = 5
"""Seconds after which the broker gives to others what a silent agent has taken."""


def us_now():
    return time.monotonic_ns() // 1000


class SteppedClock(SystemClock):
    """The machine's clock, set by `offset` seconds."""

    __slots__ = ("offset", "wall")

    def __init__(self):
        super().__init__()
        self.offset = 0.0
        self.wall = lambda: time.time() + self.offset


class Warnings(logging.Handler):
    """What agents only log."""

    def __init__(self, log):
        super().__init__()
        self.log = log

    def emit(self, record):
        if UNPRUNED in str(record.msg):
            os.write(self.log, f"x unpruned {us_now()}\n".encode())


class Agent:
    """A scheduler, its one task, and the verbs. `queue`: where the executions of its jobs stand, if not with itself."""

    def __init__(self, config, log, clock, *, schema, queue=None, offset=0):
        self.log = log
        self.offset = offset
        self.takes = config.get("takes", {})
        self.is_buried = anyio.Event()
        self.is_back = anyio.Event()
        name = config.get("name")
        us = f"application_name={name}{'-queue' if queue else ''}" if name else ""
        dsn = " ".join((config["dsn"], config.get("login", ""), us))
        self.scheduler = Scheduler(
            limit=config.get("room", ROOM) if queue else 1_000,
            limits={} if queue else {"narrow": fleet(config["limit"])},
            store=PostgresStore(dsn, schema=schema, shared=True, name=name),
            queue=queue,
            crash_floor="50ms",
            retention=Retention(per_job=None, age=None, total_bytes=None),
            clock=clock,
            poll="1s",
        )
        self.scheduler.register("work", self.work)
        self.scheduler.listen(self.note)

    def note(self, event):
        match event:
            case StoreDown(is_taken_over=True):
                self.is_back = anyio.Event()
                self.is_buried.set()
            case AgentLost(is_us=True):
                os.write(self.log, f"x lost {us_now()}\n".encode())
            case StoreUp():
                self.is_buried = anyio.Event()
                self.is_back.set()

    async def work(self, takes):
        run = current_run()
        self.write("b", run)
        word = "c"
        try:
            if takes:
                await anyio.sleep(takes)
            word = "e"
        finally:
            self.write(word, run)

    def write(self, word, run):
        due, fence = round(run.due.timestamp() * 1e6), run.fence + self.offset
        os.write(self.log, f"{word} {run.job_id} {due} {run.attempt} {fence} {us_now()}\n".encode())

    def add(self, kind, ids, every):
        interval = Every(every, anchor=EPOCH) if kind == "queued_burst" else Every(every)
        if self.takes.get(kind, 0) > every:  # each of them goes on for as long as anybody looks
            interval = Every("1d", anchor=datetime.now(UTC) + SOON)
        args = (self.takes.get(kind, 0),)
        if "agents" in KINDS[kind]:
            for id in ids:
                self.scheduler.add("work", interval, id=id, args=args, on_conflict="update", **ALL, **KINDS[kind])
            return
        self.scheduler.add_many(
            "work", [(id, interval, args) for id in ids], on_conflict="update", **ALL, **KINDS[kind]
        )

    async def carry_out(self, verb, id, every=None, kind=None, ids=()):
        """Do what a command says; return once it is durable."""
        match verb:
            case "add":
                self.add(kind or id.partition("-")[0], ids or [id], every)
            case "update":
                self.scheduler.get(id).update(schedule=Every(every))
            case "remove" | "pause" | "resume" | "run_now":
                getattr(self.scheduler.get(id), verb)()
        await self.scheduler.flush()

    async def give_up(self):
        """End once it has been buried and does not join again."""
        while True:
            await self.is_buried.wait()
            with anyio.move_on_after(PATIENCE):
                await self.is_back.wait()
                continue
            os._exit(3)


class Process:
    """The agents of a process: one that shares shards, and one that shares a queue if there is a broker."""

    def __init__(self, config):
        self.config = config
        self.clock = SteppedClock()
        log = os.open(config["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        logging.getLogger("scheduler").addHandler(Warnings(log))
        self.agents = []
        if not config.get("has_only_queue"):
            self.agents.append(Agent(config, log, self.clock, schema=config["schema"]))
        if config.get("broker"):
            audit.AUDIT_S = config["audits"]
            queue = BeanstalkdQueue(config["broker"], ttr=TTR)
            schema = f"{config['schema']}_{QUEUED}"
            self.agents.append(Agent(config, log, self.clock, schema=schema, queue=queue, offset=FENCES))

    def agent_of(self, id):
        return self.agents[-1 if id.startswith(QUEUED) else 0]

    async def live(self):
        """Run until standard input ends."""
        for kind, count in self.config.get("jobs", {}).items():
            ids = [f"{kind}-{number}" for number in range(count)]
            self.agent_of(kind).add(kind, ids, self.config["every"])
        async with contextlib.AsyncExitStack() as stack:
            for agent in self.agents:
                await stack.enter_async_context(agent.scheduler)
            tasks = await stack.enter_async_context(anyio.create_task_group())
            for agent in self.agents:
                tasks.start_soon(agent.give_up)
                await agent.scheduler.flush()
            print(json.dumps({"runs": True}), flush=True)
            await self.obey()
            tasks.cancel_scope.cancel()

    async def obey(self):
        """Carry out commands until there are no more."""
        while line := await run_sync(sys.stdin.readline, abandon_on_cancel=True):
            try:
                await self.carry_out(json.loads(line))
                print(json.dumps({"done": True}), flush=True)
            except Exception as error:  # noqa: BLE001 - whatever it is, who asked wants to know
                print(json.dumps({"done": False, "why": repr(error)}), flush=True)
        for agent in self.agents:
            agent.scheduler.stop("5s")

    async def carry_out(self, command):
        if command["verb"] == "clock":
            self.clock.offset = command["offset"]
        else:
            await self.agent_of(command["id"]).carry_out(**command)


async def main(config):
    logging.basicConfig(filename=config.get("told"), format=f"%(asctime)s {os.getpid()} %(name)s %(message)s")
    logging.getLogger("scheduler").setLevel("INFO")
    if defects := os.environ.get("TIMERQUEUE_DEFECT"):
        import fleet_defects  # noqa: PLC0415 - it names much that another version of the source may not have

        fleet_defects.plant(defects)
    await Process(config).live()


if __name__ == "__main__":
    anyio.run(main, json.loads(sys.argv[1]))
