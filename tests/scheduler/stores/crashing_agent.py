"""Agents that die by SIGKILL exactly where they are told to. No production code knows of it.

This program imports what agents need, once, and then forks one for each line of JSON that it reads. It has one thread,
so that what it forks is sound. For each agent it writes two lines: its process id, and how it ended.

What a line says:

    store     kind, and the arguments of the store
    effects   file to which the agent notes, each with one write, what must outlive it
    point     where it dies; see `Point`
    passes    how often it comes past that point before
    takes     seconds of a run
    add       jobs: the arguments of Scheduler.add; those that are there are kept
    runs      how often each job runs before the agent goes on to its end
    attempts  which attempt at some tick has to succeed before that, too
    then      verbs for jobs after that: [["remove", "id"], ["pause", "id"], ["update", "id"]]
    full_disk after some runs no file can grow, until half a second after the scheduler has noticed
    stubborn  runs do not end by themselves: they are cut off when the agent stops
    limit     tasks at a time
    retention records that are kept for each job
    tells     a listener adds so many one-shots whenever it hears that a run has ended
"""
# ruff: noqa: T201 - it speaks to who started it

import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import anyio

from schedule import At, Missed
from scheduler import Overlap, RunEnded, RunStarted, Scheduler, StoreDown, current_run
from scheduler.stores import Retention
from scheduler.stores.postgres import PostgresStore
from scheduler.stores.sqlite import SQLiteStore

CRASH_FLOOR = 0.1
RUNS_BEFORE_TROUBLE = 4
SMALL = 10_000
"""Bytes: more than the agent's notes, less than any database."""
SOME_SLOTS = 0.2
PATIENCE = 60
"""Seconds after which an agent is ended by SIGALRM."""

FAR = datetime(2999, 1, 1, tzinfo=UTC)

STORES = {"sqlite": SQLiteStore, "postgres": PostgresStore}
NAMED = {"overlap": Overlap, "missed": lambda name: Missed[name.upper()]}
"""Options whose values are not those of JSON."""


def same(value):
    return value


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class Point:
    """Where to die: at a named place, or "before X" or "after X", where X is a verb or what a commit holds."""

    def __init__(self, text, passes):
        self.text = text
        self.passes = passes

    def reach(self, *places):
        if self.text not in places:
            return
        if not self.passes:
            die()
        self.passes -= 1


class CrashingStore:
    """The store, and the end of the process before or after one of its verbs."""

    is_immediate = False

    def __init__(self, store, point):
        self.store = store
        self.point = point
        self.is_stopping = False
        self.calls = 0

    def open(self, now_us, hint):
        return self._call("open", self.store.open, now_us, hint)

    def load(self):
        for rows in self.store.load():
            yield rows
            self.point.reach("while loading")

    def pauses(self):
        return self._call("pauses", self.store.pauses)

    def running(self):
        return self._call("running", self.store.running)

    def owed(self):
        return self._call("owed", self.store.owed)

    def commit(self, batch):
        holds = list(self.what_it_holds(batch))
        self.point.reach(*(f"before {what}" for what in holds))
        with self._calls_counted(is_of_an_end="end" in holds):
            receipt = self.store.commit(batch)
        self.point.reach(*(f"after {what}" for what in holds))
        return receipt

    @contextmanager
    def _calls_counted(self, *, is_of_an_end):
        """Die at the call of that number within a commit that holds an end. `calls`: how many the last one made."""
        word, _, number = (self.point.text or "").partition(" ")
        if word != "call" or not is_of_an_end:
            yield
            return
        self.calls = 0

        def count(frame, event, argument):
            if event in {"call", "c_call"}:
                self.calls += 1
                if self.calls == int(number):
                    die()

        sys.setprofile(count)
        try:
            yield
        finally:
            sys.setprofile(None)

    def changes(self):
        return self._call("changes", self.store.changes)

    def history(self, *args, **kwargs):
        return self.store.history(*args, **kwargs)

    def prune(self, retention, now_us):
        return self._call("prune", self.store.prune, retention, now_us)

    def close(self):
        self._call("close", self.store.close)

    def _call(self, name, verb, *args):
        self.point.reach(f"before {name}")
        answer = verb(*args)
        self.point.reach(f"after {name}")
        return answer

    def what_it_holds(self, batch):
        rows = batch.jobs.values()
        outcomes = {tick.outcome for tick in batch.ended}
        held = {
            "add": any(row is not None and row.paused is None for row in rows),
            "remove": any(row is None for row in rows),
            "pause": any(pause.paused is not None for pause in batch.paused.values()),
            "mark": batch.marks,
            "end": outcomes - {"crashed", "missed"} and not self.is_stopping,
            "crash": "crashed" in outcomes,
            "last end": "cancelled" in outcomes and self.is_stopping,
        }
        return (what for what, is_there in held.items() if is_there)


class Agent:
    """One life."""

    def __init__(self, config):
        self.config = config
        self.point = Point(config.get("point"), config.get("passes", 0))
        self.effects = os.open(config["effects"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        options = dict(config["store"])
        self.store = CrashingStore(STORES[options.pop("kind")](**options), self.point)
        self.scheduler = Scheduler(
            limit=config.get("limit", 500),
            store=self.store,
            crash_floor=CRASH_FLOOR,
            retention=Retention(per_job=config.get("retention")),
            blocked_after=None,
        )
        self.scheduler.register("work", self.work)
        self.scheduler.listen(self.hear)
        self.begun = Counter()
        self.ended = Counter()
        self.attempts = 1
        self.moved = anyio.Event()
        self.all_have_begun = anyio.Event()

    def note(self, *words):
        os.write(self.effects, (json.dumps(words) + "\n").encode())

    async def work(self):
        run = current_run()
        self.note("run", run.job_id, round(run.due.timestamp() * 1e6), run.attempt, run.fence, time.time())
        self.begun[run.job_id] += 1
        if len(self.begun) == len(self.config["add"]):
            self.point.reach("as the runs begin")
            self.all_have_begun.set()
        if self.point.text == "in the middle of the runs":
            await self.all_have_begun.wait()  # on a busy machine the first may have ended when the last begins
        await anyio.sleep(self.config.get("takes", 0.01))
        if len(self.begun) == len(self.config["add"]):
            self.point.reach("in the middle of the runs")
        if self.config.get("stubborn"):
            self.move(run.job_id)
            await anyio.sleep(SOME_SLOTS)
            self.point.reach("after some slots")
            await anyio.sleep_forever()
        if len(self.ended) == len(self.config["add"]) - 1 and run.job_id not in self.ended:
            self.point.reach("as the last run ends")
        self.attempts = max(self.attempts, run.attempt)
        self.move(run.job_id)

    def has_done_enough(self):
        return self.attempts >= self.config.get("attempts", 1) and all(
            self.ended[job["id"]] >= self.config["runs"] for job in self.config["add"]
        )

    def hear(self, event):
        """Tell of ends, if told to. Fill the disk after some runs, and make room when that was noticed for a while."""
        match event:
            case RunEnded():
                for number in range(self.config.get("tells", 0)):
                    told = f"told {round(event.due.timestamp() * 1e6)} {number}"
                    self.scheduler.add("work", At(FAR), id=told, delivery="at_least_once")
        match event:
            case StoreDown():
                self.note("down", event.error, self.begun.total())
        if not self.config.get("full_disk"):
            return
        match event:
            case StoreDown():
                self.scheduler.add(self.make_room, At(datetime.now(UTC) + timedelta(seconds=0.5)), durable=False)
            case RunStarted(job_id=job_id) if job_id in self.begun and self.begun.total() == RUNS_BEFORE_TROUBLE:
                limit_files(SMALL)

    async def make_room(self):
        self.note("up", self.begun.total())
        limit_files(resource.RLIM_INFINITY)

    def move(self, job_id):
        self.ended[job_id] += 1
        self.moved.set()
        self.moved = anyio.Event()

    async def live(self):
        async with self.scheduler:
            start = datetime.fromtimestamp(round(time.time() + 0.15, 2)).astimezone()
            for options in self.config["add"]:
                given = {name: NAMED.get(name, same)(value) for name, value in options.items()}
                self.scheduler.add("work", **{"start": start, "on_conflict": "keep", **given})
            await self.scheduler.flush()
            self.note("done", "add")
            while not self.has_done_enough():
                await self.moved.wait()
            for verb, job_id in self.config.get("then", ()):
                job = self.scheduler.get(job_id)
                {"remove": job.remove, "pause": lambda: job.pause("by hand"), "resume": job.resume}[verb]()  # noqa: B023
                await self.scheduler.flush()
                self.note("done", verb)
            self.store.is_stopping = True
            self.scheduler.stop(grace=0 if self.config.get("stubborn") else "5s")
        self.note("done", "stop", self.store.calls)


def limit_files(size):
    """From now on no file of this process may grow beyond that."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def live(config):
    signal.alarm(PATIENCE)
    anyio.run(Agent(config).live, backend=config.get("backend", "asyncio"))


def serve():
    """Fork an agent for each line."""
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            status = 1
            try:
                live(json.loads(line))
                status = 0
            except BaseException:  # noqa: BLE001 - nothing of the parent's must run in the child
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(status)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
