"""A night in simulation: thousands of monitors, all that befalls them, and an agent that is killed again and again.

    python tests/night.py --monitors 5000 --hours 9 --seed 1

Time is that of a ManualClock, so a night takes minutes. What is true of each target is drawn from the seed before the
night begins: outages, flapping, an hour in which the agent is offline, two steps of the clock, reloads of the
configuration. The agent is the whole one, over a store that survives its kills. A judge then compares what people
would have heard with what was true: an incident that nobody caused, one that was missed, told twice or never closed is
a violation. The same seed gives the same log.
"""
# ruff: noqa: T201 - it speaks to who started it

import argparse
import asyncio
import errno
import random
import sys
from collections import defaultdict
from contextlib import contextmanager
from hashlib import blake2b

import anyio
import pytest
from attrs import evolve, field, frozen

from schedule import Every
from scheduler.agent import app
from scheduler.agent.app import Plan
from scheduler.agent.checks.contract.result import Finding
from scheduler.agent.config.config import parse_config
from scheduler.agent.config.limits import Limits
from scheduler.agent.config.target import Target
from scheduler.agent.reload import Source
from scheduler.agent.text.url import Url, parse_url
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import ManualClock

MINUTE, HOUR = 60.0, 3600.0
INTERVAL, TIMEOUT, RETRY = MINUTE, 10.0, 5.0
TO_OPEN = INTERVAL + RETRY + TIMEOUT + 7.0
"""Seconds in which an outage is known: a check, its second attempt, their timeouts, and the grace for being late."""

KILLED_EVERY = 20 * MINUTE
AWAY = 20.0
"""Seconds from a kill to the next start."""

FLIP = 90.0
"""Seconds for which a flapping target is one or the other."""

ANSWERS_IN = 0.02


@frozen
class Stretch:
    """A stretch of time, in seconds since the night began."""

    begin: float
    end: float
    name: str = ""

    def holds(self, instant):
        return self.begin <= instant < self.end


@frozen
class Fate:
    """What is true of one target."""

    outages: tuple[Stretch, ...] = ()
    flapping: Stretch | None = None

    def is_down(self, name, instant):
        if any(each.holds(instant) for each in self.outages):
            return True
        return self.flapping is not None and self.flapping.holds(instant) and _coin(name, instant // FLIP)


def _coin(*parts):
    return blake2b(repr(parts).encode()).digest()[0] % 2 == 0


class World:
    """All that is true in one night, by its seed."""

    def __init__(self, seed, monitors, hours):
        draw = random.Random(seed)
        self.clock = ManualClock()
        self.began = self.clock.monotonic()
        self.seconds = hours * HOUR
        self.offline = Stretch(0.4 * self.seconds, 0.4 * self.seconds + min(HOUR, 0.12 * self.seconds))
        self.steps = [(0.2 * self.seconds, 137.0), (0.7 * self.seconds, -301.0)]
        self.names = [f"site-{number:04}" for number in range(monitors)]
        self.fates = {name: self._fate(draw) for name in self.names}

    def _fate(self, draw):
        outages, at = [], draw.uniform(0, self.seconds)
        while draw.random() < 0.5 and at < self.seconds:
            length = draw.uniform(3, 40) * MINUTE
            outages.append(Stretch(at, at + length))
            at += length + draw.uniform(20, 90) * MINUTE
        flapping = None
        if not outages and draw.random() < 0.1:
            flapping = Stretch(at, at + 15 * MINUTE)
        return Fate(tuple(outages), flapping)

    @property
    def now(self):
        """Seconds since the night began."""
        return self.clock.monotonic() - self.began

    def is_down(self, name, instant):
        return self.fates[name].is_down(name, instant)


@frozen(kw_only=True)
class Simulated:
    """A check of a target that is what its fate says."""

    url: Url
    world: World = field(eq=False, repr=False)
    secrets = frozenset()

    async def attempt(self, at):
        if self.world.offline.holds(self.world.now):
            raise OSError(errno.ENETUNREACH, "unreachable")
        with at.watch.measure("connect"):
            await self.world.clock.sleep(ANSWERS_IN)
        if self.world.is_down(self.url.user, self.world.now):
            raise OSError(errno.ECONNREFUSED, "refused")
        return Finding()


class Kept:
    """A store that survives the agent: each life gets another view of it, and the one before reaches it no more."""

    file = None
    secrets = frozenset()

    def __init__(self):
        self.store = MemoryStore()

    def make(self):
        self.store = self.store.another()
        return self.store

    def die(self):
        self.store = self.store.another()
        self.store.open(0, lambda: None)

    def __str__(self):
        return "the store of the night"


class Log:
    """A display, by which is known what people would hear. `lines`: what happened, in order, instants in whole ms."""

    refresh_every = None

    def __init__(self, world):
        self.world = world
        self.lines = []
        self.open = {}
        self.told = defaultdict(list)
        """By target: (id, when it opened, when it closed or None)."""
        self.violations = []
        self.checks = 0

    def started(self, view):
        self._write("started", len(view.targets))

    def remembered(self, target):
        self._compare(target)

    def checked(self, target, *, is_change):
        self.checks += 1
        if is_change:
            self._write(target.name, target.status.value)
        self._compare(target)

    def missed(self, target, event):
        pass

    def notice(self, text):
        self._write("notice", text)

    def refresh(self):
        pass

    def stopped(self, summary):
        self._write("stopped", summary.checks)

    def _compare(self, target):
        """Take note of an incident that has opened or closed."""
        before, now = self.open.get(target.name), target.incident
        if (before and before.id) == (now and now.id):
            return
        instant = self.world.now
        if before is not None:
            id, opened, _ = self.told[target.name][-1]
            self.told[target.name][-1] = (id, opened, instant)
            self._write(target.name, "closed", id)
        if now is not None:
            if now.id in {id for id, *_ in self.told[target.name]}:
                self.violations.append(f"{target.name}: {now.id} opened twice")
            self.told[target.name].append((now.id, instant, None))
            self._write(target.name, "opened", now.id)
        self.open[target.name] = now

    def _write(self, *words):
        self.lines.append((round(self.world.now * 1e3), *words))


class Night:
    """The lives of the agent, one after another."""

    def __init__(self, world):
        self.world = world
        self.kept = Kept()
        self.log = Log(world)
        self.lives = 0
        self.asked = None
        self.left_out = set()

    def config(self):
        base = parse_config('store = "memory"\n[[check]]\nurl = "tcp://127.0.0.1:1"\n', "night.toml", {})
        targets = tuple(self._target(name) for name in self.world.names if name not in self.left_out)
        return evolve(base, targets=targets, store=self.kept, limits=Limits(500.0, {"tcp": 200.0, "host:*": 1_000.0}))

    def _target(self, name):
        url = evolve(parse_url("tcp://127.0.0.1:1", {"tcp": None}), user=name)
        return Target(
            name=name,
            kind="tcp",
            check=Simulated(url=url, world=self.world),
            schedule=Every(INTERVAL),
            timeout=TIMEOUT,
            max_attempts=2,
            retry_interval=RETRY,
        )

    async def live(self):
        """Let one agent after another live until the night is over."""
        with _reading_at_once():
            async with anyio.create_task_group() as group:
                group.start_soon(_pass_time, self.world.clock)
                group.start_soon(self._befall)
                while self.world.now < self.world.seconds:
                    await self._one_life(min(KILLED_EVERY, self.world.seconds - self.world.now))
                    await self.world.clock.sleep(AWAY)
                group.cancel_scope.cancel()

    async def _one_life(self, seconds):
        self.lives += 1
        async with anyio.create_task_group() as group:
            source = Source(_NoFile(), self.config)
            group.start_soon(self._run, source)
            await self.world.clock.sleep(seconds)
            self.kept.die()
            group.cancel_scope.cancel()

    async def _run(self, source):
        await app.run(source.read(), self.log, Plan(), self.world.clock, source=source)

    async def _befall(self):
        """Set the clock, and change the configuration each half hour: every hundredth target is gone for a while."""
        due = sorted([*self.world.steps, *((at, None) for at in _halves(self.world.seconds))], key=lambda each: each[0])
        for at, step in due:
            await self.world.clock.sleep(max(at - self.world.now, 0))
            if step is not None:
                self.world.clock.step(step)
            else:
                self.left_out = set(self.world.names[7::100]) if not self.left_out else set()
                _NoFile.number += 1


async def _pass_time(clock):
    """Move the clock to the next wait whenever nothing is left to do now. On asyncio alone, which shows that."""
    ready = asyncio.get_running_loop()._ready
    while True:
        await asyncio.sleep(0)
        if not ready:
            clock._move_to(clock._next_wait())


def _halves(seconds):
    return [HOUR / 2 * number + 60.0 for number in range(1, int(seconds / (HOUR / 2)) + 1)]


class _NoFile:
    """Stands in for the file: it looks changed whenever its number is another one."""

    number = 0

    def stat(self):
        class Found:
            st_mtime_ns, st_size, st_ino = _NoFile.number, 0, 0

        return Found


@contextmanager
def _reading_at_once():
    """Read configurations without a thread: its real time is none of this clock's."""

    async def here(func, *args):
        return func(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scheduler.agent.reload.run_sync", here)
        yield


def judge(night):
    """Compare what was told with what was true. The violations, in words."""
    world, log = night.world, night.log
    found = list(log.violations)
    absences = [world.offline]
    gone = set(world.names[7::100])
    for name in world.names:
        told = log.told.get(name, [])
        for id, opened, _ in told:
            window = [opened - (TO_OPEN * step / 20) for step in range(21)]
            if not any(world.is_down(name, instant) for instant in window):
                found.append(f"{name}: false alarm {id} at {opened:.0f} s")
        if name in gone:  # an incident of it ends while it is not checked, and may come again
            continue
        for outage in world.fates[name].outages:
            if _seen_long_enough(outage, absences, world.seconds):
                found += [f"{name}: {each}" for each in _wrong_about(outage, told, world)]
    return found


def _wrong_about(outage, told, world):
    """What is wrong with what was told of an outage that the agent has seen."""
    within = [each for each in told if outage.begin <= each[1] <= outage.end + TO_OPEN]
    if len(within) != 1:
        yield f"{len(within)} incidents for the outage {outage.begin:.0f} to {outage.end:.0f} s"
    is_long_over = outage.end + 4 * INTERVAL + AWAY < world.seconds and not world.offline.holds(outage.end)
    yield from (f"{id} never closed" for id, _, closed in within if closed is None and is_long_over)


def _seen_long_enough(outage, absences, until):
    """Whether the agent had the time to see it: without the hour offline, a kill and what the night cuts off."""
    seen = min(outage.end, until) - outage.begin
    for absence in absences:
        seen -= max(min(outage.end, absence.end) - max(outage.begin, absence.begin), 0)
    return seen > 2 * TO_OPEN + 2 * AWAY + 10.0


async def play(seed, monitors, hours):
    """Live through a night. It has the log, and the violations that the judge found."""
    _NoFile.number = 0
    night = Night(World(seed, monitors, hours))
    await night.live()
    return night


def main(args):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--monitors", type=int, default=5_000)
    parser.add_argument("--hours", type=float, default=9.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(args)
    night = anyio.run(play, options.seed, options.monitors, options.hours)
    violations = judge(night)
    opened = sum(map(len, night.log.told.values()))
    outages = sum(len(each.outages) for each in night.world.fates.values())
    digest = blake2b(repr(night.log.lines).encode(), digest_size=8).hexdigest()
    print(f"{options.monitors:,} monitors, {options.hours:g} h, seed {options.seed}")
    print(f"lives of the agent {night.lives}, checks {night.log.checks:,}, outages {outages:,}, incidents {opened:,}")
    print(f"log: {len(night.log.lines):,} lines, digest {digest}")
    print(f"violations: {len(violations)}")
    for each in violations[:20]:
        print(f"  {each}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
