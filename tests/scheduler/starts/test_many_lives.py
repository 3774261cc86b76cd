"""Processes that pause, resume, lose their store, stop and die at any moment give each slot of each job one record.

Each play draws its moves from a seed, so it is the same each time.
"""

import random
from collections import Counter
from datetime import timedelta

import anyio
import pytest
from anyio.lowlevel import checkpoint

from kit import examples, nothing
from schedule import Every, Missed
from scheduler import Overlap, Retry, Scheduler
from scheduler._starts.slices import SLICE
from scheduler.stores import RUNNING, Retention, StoredPause
from scheduler.stores.memory import MemoryStore
from scheduler.testing import FlakyStore
from timerqueue.testing import START, ManualClock

TEN_S = 10_000_000
MOVES = 60
OWING = {"delivery": "at_least_once"}
KINDS = {
    "plain": {},
    "again": OWING,
    "queue": {"overlap": Overlap.QUEUE, "missed": Missed.ALL, "catch_up": 3, **OWING},
    "all": {"missed": Missed.ALL, "catch_up": 5},
    "skip": {"missed": Missed.SKIP, "grace": "3s"},
    "allow": {"overlap": Overlap.ALLOW, "max_running": 3, **OWING},
    "replace": {"overlap": Overlap.REPLACE},
    "retried": {"retry": Retry.exponential("3s", max_retries=3), **OWING},
}
PAUSES = ["pause", "resume", "pause until", "pause tag", "resume tag", "tag until", "pause all", "resume all"]
EDITS = ["edit pause", "edit resume", "edit tag", "edit untag"]
ENDS = ["kill", "kill", "stop", "stop slowly"]
MIXES = {
    "all kinds": [
        *["travel"] * 8, *["turn"] * 2, *PAUSES, *EDITS, *ENDS * 2, "full", "free", "refuse", "lose answers", "heal"
    ],
    "owing alone": [*["travel"] * 8, *["pause tag", "resume tag"] * 2, "kill", "kill", "resume", "resume tag"],
}  # fmt: skip
"""What happens, and how often. In the second, to one job that rests after each death."""


class Play:
    """Some jobs of every 10 s, and processes over one store that live one after another until the moves are over."""

    def __init__(self, mix, seed):
        self.random = random.Random(seed)
        self.clock = ManualClock()
        self.clock.advance(0.37)
        self.store = MemoryStore()
        self.flaky = FlakyStore(self.store)
        self.jobs = ["again"] if mix == "owing alone" else self.random.sample(sorted(KINDS), 3)
        self.rows = {}
        self.moves = [self.random.choice(MIXES[mix]) for _ in range(MOVES)]

    async def work(self, failing):
        """Take some seconds, and fail at times."""
        await self.clock.sleep(self.random.choice([0, 0.5, 2, 7, 12, 25]))
        if self.random.random() < failing:
            raise ValueError(failing)

    def scheduler(self):
        """Make the next process. Pauses of many come to some of its jobs at once, or to all a turn later."""
        self.flaky = FlakyStore(self.store)
        s = Scheduler(
            store=self.flaky,
            clock=self.clock,
            limits={"room": self.random.choice([1, 2, 5])},
            crash_floor=self.random.choice(["1s", "12s", "25s", "25s"]),
            retention=Retention(per_job=None, age=None, total_bytes=None),
            random=self.random.random,
        )
        s.register("work", self.work)
        for _ in range(self.random.choice([0, SLICE - 1, SLICE])):
            s.add(nothing, "@every 1h", durable=False)
        return s

    def add_jobs(self, s):
        """Add the jobs, unless they are there."""
        for name in self.jobs:
            more = {"tags": ["tag"], "needs": "room", "on_conflict": "keep"}
            s.add("work", Every(10, anchor=START), id=name, args=(0.1,), **more, **KINDS[name])

    async def lives(self):
        """Play all moves."""
        async with self.scheduler() as s:
            self.add_jobs(s)
            await s.flush()
            self.rows = {row.id: row for chunk in self.store.load() for row, _ in chunk}
            s.stop(grace=0)
        while self.moves:
            await self.one_life()
            self.clock.advance(self.random.choice([0, 0, 0.05, 1, 7, 13, 40]))
        await self.last_life()

    async def one_life(self):
        """Be one process, until it stops or dies."""
        s = self.scheduler()
        if self.random.random() < 0.2:
            self.add_jobs(s)  # before the store was read
        async with s:
            verb = "stop"
            while self.moves and (verb := self.moves.pop()) not in ENDS:
                await self.act(s, verb)
            if verb == "kill":
                self.store = self.store.another()
                self.store.open(0, lambda: None)
                self.store.close()
            self.flaky.fail_on = ()
            s.stop(grace=0 if verb != "stop slowly" else self.random.choice([3, 30]))
            for _ in range(3 if verb == "stop slowly" else 0):
                await self.act(s, self.random.choice([*PAUSES, "turn"]))

    async def last_life(self):
        """End all pauses, and let all jobs run for long."""
        async with self.scheduler() as s:
            s.resize(limits={"room": 5})
            self.store.delete_pause("tag:tag")
            for _ in range(2):
                for name in self.jobs:
                    self.edit(name, None)
                    s.get(name).resume()
                s.resume("tag")
                s.resume()
                await self.clock.travel(200)
            await s.flush()
            s.stop(grace=0)

    async def act(self, s, verb):  # noqa: C901, PLR0912 - a list of moves
        """Make one move."""
        job = s.get(self.random.choice(self.jobs))
        until = self.clock.now() + timedelta(seconds=self.random.choice([0.5, 5, 30]))
        match verb.split():
            case ["travel"]:
                await self.clock.travel(self.random.choice([0.001, 0.3, 1, 3, 5, 9.999, 10, 11, 24]))
            case ["turn"]:
                for _ in range(self.random.randint(1, 4)):
                    await checkpoint()
            case ["pause"]:
                job.pause("why")
            case ["resume"]:
                job.resume()
            case ["pause", "until"]:
                job.pause("for a while", until=until)
            case ["tag", "until"]:
                s.pause("tag", until=until)
            case [("pause" | "resume") as what, ("tag" | "all") as whose]:
                getattr(s, what)("tag" if whose == "tag" else None)
            case ["edit", ("pause" | "resume") as what]:
                self.edit(job.id, "by hand" if what == "pause" else None)
            case ["edit", "tag"]:
                self.store.edit_pause(StoredPause("tag:tag", "by hand", 0, None))
            case ["edit", "untag"]:
                self.store.delete_pause("tag:tag")
            case ["full" | "free"]:
                s.resize(limits={"room": 1 if verb == "full" else 5})
            case _:
                self.flaky.before_or_after = "before" if verb == "refuse" else "after"
                self.flaky.fail_on = () if verb == "heal" else range(10**9)

    def edit(self, name, paused):
        """Pause or resume the job in its row, as anybody may who has a client for the database."""
        self.store.edit(self.rows[name]._replace(paused=paused))


def slots_of(tick):
    """Return the numbers of the slots that a record stands for."""
    start_us = round(START.timestamp() * 1e6)
    first, last = tick.due_us - start_us, (tick.last_due_us or tick.due_us) - start_us
    assert first % TEN_S == last % TEN_S == 0, f"not in the grid: {tick}"
    found = range(first // TEN_S, last // TEN_S + 1)
    assert len(found) == tick.count, f"it stands for {len(found)}: {tick}"
    return found


FOUND = [("owing alone", seed) for seed in (36, 54, 156, 203, 217)]
"""Plays that once gave a slot two records, or none."""


@pytest.mark.parametrize(
    ("mix", "seed"), [*FOUND, *((mix, seed) for mix in MIXES for seed in range(1_000, 1_000 + examples(60)))]
)
def test_each_slot_has_one_record_whatever_comes_between(quiet, mix, seed):
    """From the first: it ran, or the record says why not. None is counted twice."""
    play = Play(mix, seed)
    anyio.run(play.lives)
    for name in play.jobs:
        ticks = play.store.history(name, limit=10_000)
        assert RUNNING not in {tick.outcome for tick in ticks}
        counts = Counter(slot for tick in ticks for slot in slots_of(tick))
        assert counts == dict.fromkeys(range(1, max(counts) + 1), 1), name
