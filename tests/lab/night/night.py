"""A night in simulation: thousands of monitors, all that befalls them, and an agent that is killed again and again.

    python tests/lab/night/night.py --monitors 5000 --hours 9 --seed 1 --every 60

Time is that of a ManualClock, so a night takes minutes. Seven targets of ten are checked `every` so many seconds (60 is
what most people choose), one of ten twice as often, two of ten every fifth time. What is true of each is drawn from the
seed before the night begins (night_world.py): outages, refused or silent, and flapping; an hour in which the agent is
offline, an hour in which a channel is down, two steps of the clock, reloads that add, change and remove targets, and a
death of the agent every 20 minutes, in the middle of a commit: what was pending then is lost.

The agent has the `places` that it has unless the file says otherwise. Targets that say nothing hold one each until the
time-out, so others have to wait now and then. A check that waited beyond its grace must say "unknown", one that did not
must not, and none waits while there is room.

The agent is the whole one, over a store that survives its deaths (night_life.py). A model (night_model.py) says what
people should hear, and a judge (night_judge.py) compares it with what the channels have taken. Prints its counts and
the digest of its log, which is the same for the same seed; exits with 1 if anything is wrong.
"""
# ruff: noqa: T201 - it speaks to who started it

import argparse
import json
import random
import sys
from collections import Counter, defaultdict, deque
from contextlib import contextmanager
from unittest.mock import patch

import anyio
from attrs import evolve

from night_judge import judge
from night_life import File, Gateway, Life, Log, Place, Simulated
from night_model import Model
from night_world import ATTEMPTS, AWAY, PLACES, RETRY, TIMEOUT, World, play
from schedule import Every
from scheduler.stores import StoreError
from scheduler.stores.memory import MemoryStore
from uptime_agent import app
from uptime_agent.app import RunPlan
from uptime_agent.config.config import parse_config
from uptime_agent.config.limits import CheckLimits
from uptime_agent.config.network import Network
from uptime_agent.config.target import Target
from uptime_agent.notify import Rules
from uptime_agent.reload import Source
from uptime_agent.text.url import parse_url

REMINDERS = 1_800.0
KEEPS = 24
"""Records of each target that the store keeps."""


class Night:
    """The lives of the agent, one after another."""

    def __init__(self, world):
        self.world = world
        self.log = Log(world)
        self.data = MemoryStore()._data
        self.kept = defaultdict(deque)
        self.life = None
        self.lives = 0
        self.models = {name: Model() for name in world.names}
        self.numbers = {name: number for number, name in enumerate(world.names)}
        self.changes = 0
        self.changes_read = 0
        self.statuses = Counter()
        self.late_checks = 0
        self.base = parse_config('store = "memory"\n[[check]]\nurl = "tcp://127.0.0.1:1"\n', "night.toml", {})
        self.targets = {}

    # -- what the agent reads

    def config(self):
        self.changes_read = self.world.changes
        return evolve(
            self.base,
            targets=tuple(
                self._target(number, name)
                for number, name in enumerate(self.world.names)
                if self.world.is_configured(number, self.changes_read)
            ),
            store=Place(self),
            limits=CheckLimits(500.0, {"tcp": float(self.world.places), "host:*": 1_000.0}),
            network=Network((self._gateway(),), 2.0),
            channels=self.life.channels,
            rules=Rules(reminders=REMINDERS),
        )

    def _target(self, number, name):
        every = self.world.every_of(number, self.changes_read)
        if (name, every) not in self.targets:
            url = evolve(parse_url("tcp://127.0.0.1:1", {"tcp": None}), user=name)
            self.targets[name, every] = Target(
                name=name,
                kind="tcp",
                check=Simulated(url=url, name=name, night=self),
                schedule=Every(every),
                timeout=TIMEOUT,
                max_attempts=ATTEMPTS,
                retry_interval=RETRY,
            )
        return self.targets[name, every]

    def _gateway(self):
        check = Gateway(url=parse_url("tcp://127.0.0.1:2", {"tcp": None}), world=self.world)
        return Target(name="gateway", kind="tcp", check=check, schedule=Every(2.0), timeout=2.0)

    # -- what the judge is told

    def follows(self):
        """The agent goes on with what it has read last: tell the models of targets that are gone."""
        before, self.changes = self.changes, self.changes_read
        for number, name in enumerate(self.world.names):
            if self.world.is_configured(number, before) and not self.world.is_configured(number, self.changes):
                self.models[name].gone(self.world.clock.wall(), self.world.now)

    def stored(self, batch):
        """What is durable now: compare each check with the truth, tell the models, and keep the latest records."""
        for tick in batch.ended:
            if tick.job_id in self.models:
                self._checked(tick)
            self._keep(tick)
        for tick in (*batch.missed, *batch.marks):
            self._keep(tick)

    def _checked(self, tick):
        if tick.outcome != "succeeded":
            self.statuses[tick.outcome] += 1
            if tick.outcome not in ("crashed", "missed"):
                self._cut_off(tick)
            return
        self.life.places.leave(tick.job_id)
        found = json.loads(tick.result)
        status = found["status"]
        self.statuses[status] += 1
        name, now = tick.job_id, self.world.now
        asked = self.life.asked[name]
        if is_late := self._is_late(tick, status, asked):
            self.late_checks += 1
        if status == "unknown":
            if not is_late and not self.world.offline.within(asked.began, now + 1e-6):
                self.log.wrong.append(f"{name} at {now:.0f} s: unknown, though we were online: {found['error']}")
            return
        if (status == "up") is not asked.is_up:
            self.log.wrong.append(f"{name}: told {status} at {now:.0f} s, which was not so")
        if self.world.is_configured(self.numbers[name], self.changes):
            self.models[name].found(status == "up", tick.ended_us / 1e6, now)

    def _cut_off(self, tick):
        """Take in a check that ended without a word. It may if its target has been taken out meanwhile."""
        self.life.places.leave(tick.job_id)
        if tick.outcome != "cancelled" or self.world.is_configured(self.numbers[tick.job_id], self.changes_read):
            self.log.wrong.append(f"{tick.job_id}: a check has {tick.outcome}: {tick.error}")

    def _is_late(self, tick, status, asked):
        """Whether a check began too late to say anything, by its record. That may be while all places are held."""
        name, late = tick.job_id, (tick.started_us - tick.due_us) / 1e6
        if late <= self.world.grace_of(self.numbers[name], self.changes):
            return False
        begun = f"{name}: began {late:.3f} s late at {asked.began:.0f} s"
        if status != "unknown":
            self.log.wrong.append(f"{begun}, and yet told {status}")
        if asked.room_until > asked.began - late + 0.001:
            self.log.wrong.append(f"{begun}, though there was room until {asked.room_until:.3f} s")
        return True

    def _keep(self, tick):
        kept = self.kept[tick.job_id]
        if tick.due_us not in kept:
            kept.append(tick.due_us)
        if len(kept) > KEEPS and tick.job_id in self.models:
            self.data.ticks.pop((tick.job_id, kept.popleft()), None)

    # -- its course

    async def live(self):
        """Let one agent after another live until the night is over."""
        with _reproducible():
            async with anyio.create_task_group() as group:
                group.start_soon(self._befall)
                for death in (*self.world.deaths, None):
                    await self._one_life(death)
                    await self.world.clock.sleep(AWAY)
                group.cancel_scope.cancel()

    async def _one_life(self, death):
        self.lives += 1
        self.life = life = Life(self, self.lives)
        try:
            async with anyio.create_task_group() as group:
                if death is not None:
                    group.start_soon(self._kill, life, death)
                with life.scope:
                    await self._run(life, None if death is not None else self.world.seconds - self.world.now)
                group.cancel_scope.cancel()
        except* StoreError:
            if not life.is_dead:
                raise
        if death is not None and not life.is_dead:
            self.log.wrong.append(f"life {life.number} ended by itself")

    async def _kill(self, life, death):
        await self.world.clock.sleep(max(death.at - self.world.now, 0.0))
        life.death = death

    async def _run(self, life, seconds):
        source = Source(File(self.world), self.config)
        await app.run(source.read(), life, RunPlan(seconds=seconds), self.world.clock, source=source)

    async def _befall(self):
        for at, seconds in self.world.steps:
            await self.world.clock.sleep(at - self.world.now)
            self.world.clock.step(seconds)


@contextmanager
def _reproducible():
    """Read configurations without a thread, whose time is none of this clock's, and draw from one source of chance."""

    async def here(func, *args):
        return func(*args)

    with (
        patch("uptime_agent.reload.run_sync", here),
        patch("scheduler._scheduler.system_random", lambda: random.Random(0).random),
    ):
        yield


def live(seed, monitors, hours, every=60.0, places=PLACES, *, keeps=None):
    """Live through a night: it has the log, and what the judge needs. `keeps`: a list that gets the log's lines."""
    return live_in(World(seed, monitors, hours, every, places), keeps=keeps)


def live_in(world, *, keeps=None):
    """Live through a night in which that is so."""
    night = Night(world)
    night.log.keeps = keeps
    play(night.world.clock, night.live)
    return night


def main(args):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--monitors", type=int, default=5_000)
    parser.add_argument("--hours", type=float, default=9.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between checks of most targets")
    parser.add_argument("--places", type=int, default=PLACES, help="checks at a time")
    options = parser.parse_args(args)
    night = live(options.seed, options.monitors, options.hours, options.every, options.places)
    counts, violations = judge(night)
    print(f"{options.monitors:,} monitors, {options.hours:g} h, seed {options.seed}, every {options.every:g} s")
    for name, count in counts.items():
        print(f"{name} {count:,}")
    print(f"log: {night.log.lines:,} lines, digest {night.log.digest.hexdigest()}")
    print(f"violations: {len(violations)}")
    for each in violations[:20]:
        print(f"  {each}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
