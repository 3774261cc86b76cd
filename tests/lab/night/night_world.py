"""The world of a night in simulation: what is true of each target and when, and how time passes in it.

All of it follows from the seed. The agent sees it through its checks and channels alone; the judge sees it as it is.
"""

import asyncio
import errno
import math
import random
import selectors

import anyio
from attrs import frozen

from timerqueue.testing import ManualClock

MINUTE, HOUR = 60.0, 3600.0

TIMEOUT, RETRY = 10.0, 5.0
ATTEMPTS = 2

PLACES = 200
"""Checks at a time: what the agent has for each kind unless the file says otherwise."""

GRACE, SHORTEST_GRACE = 0.1, 1.0
"""Of its interval, and in seconds."""

KILLED_EVERY, CHANGED_EVERY = 20 * MINUTE, 30 * MINUTE
"""A night that is shorter than two hours has as many kills and changes of the configuration as one of two."""

AWAY = 20.0
"""Seconds from a kill to the next start."""

FLIP = 90.0
"""Seconds for which a flapping target is one or the other."""

ANSWERS_IN = 0.02

SHARES = ((0.7, 1.0), (0.1, 0.5), (0.2, 5.0))
"""The mix of intervals: which share of the targets has how many times the usual one."""

RARE = 100
"""One target in so many is removed for a while, another one added, and a third changed."""

MOST_COMMITS = 30
"""A death strikes within so many commits after its time has come."""


@frozen
class Stretch:
    """A stretch of time, in seconds since the night began."""

    begin: float
    end: float
    is_silent: bool = False
    """What does not answer says nothing at all."""

    def holds(self, instant):
        return self.begin <= instant < self.end

    def within(self, begin, end):
        """Seconds of it that lie between two instants."""
        return max(min(self.end, end) - max(self.begin, begin), 0.0)


@frozen
class Fate:
    """What is true of one target, which is checked `every` so many seconds."""

    every: float
    outages: tuple[Stretch, ...] = ()
    flapping: Stretch | None = None
    flips: tuple[bool, ...] = ()

    def trouble(self, instant):
        """What keeps it from answering: a stretch. None: nothing does."""
        for each in self.outages:
            if each.begin <= instant < each.end:
                return each
        if self.flapping is None or not self.flapping.holds(instant):
            return None
        is_down = self.flips[int((instant - self.flapping.begin) // FLIP)]
        return self.flapping if is_down else None


@frozen
class Death:
    """A kill: once its time has come it strikes in the `commits`th commit, before that is durable or after."""

    at: float
    commits: int
    is_durable: bool


class World:
    """All that is true in one night. `seconds`: how long that is; in the last part of it nothing happens any more."""

    def __init__(self, seed, monitors, hours, every, places=PLACES):
        self.clock = ManualClock()
        self.began = self.clock.monotonic()
        self.seconds = hours * HOUR
        self.quiet = self.seconds - min(30 * MINUTE, 0.25 * self.seconds)
        self.every = every
        self.places = places
        hour = min(HOUR, 0.12 * self.seconds)
        self.offline = Stretch(0.4 * self.seconds, 0.4 * self.seconds + hour)
        self.channel_down = Stretch(0.6 * self.seconds, 0.6 * self.seconds + hour)
        self.steps = [(0.2 * self.seconds, 137.0), (0.7 * self.seconds, -301.0)]
        self.reloads = [at + 60.0 for at in self._each(CHANGED_EVERY)]
        self.names = [f"site-{number:04}" for number in range(monitors)]
        draw = random.Random(seed)
        self.fates = {name: self._fate(draw) for name in self.names}
        self.deaths = [Death(at, draw.randint(1, MOST_COMMITS), draw.random() < 0.5) for at in self._each(KILLED_EVERY)]

    def _each(self, seconds):
        """The instants of what happens every so many seconds, or oftener in a short night."""
        seconds = min(seconds, seconds * self.seconds / (2 * HOUR))
        return [seconds * number for number in range(1, math.ceil(self.quiet / seconds))]

    def _fate(self, draw):
        (times,) = draw.choices([times for _, times in SHARES], [share for share, _ in SHARES])
        outages, at = [], draw.uniform(0, self.quiet)
        while draw.random() < 0.5 and at < self.quiet:
            end = min(at + draw.uniform(3, 40) * MINUTE, self.quiet)
            outages.append(Stretch(at, end, is_silent=draw.random() < 0.5))
            at = end + draw.uniform(20, 90) * MINUTE
        if outages or draw.random() >= 0.1:
            return Fate(times * self.every, tuple(outages))
        flips = tuple(draw.random() < 0.5 for _ in range(10))
        return Fate(times * self.every, (), Stretch(at, min(at + len(flips) * FLIP, self.quiet)), flips)

    @property
    def now(self):
        """Seconds since the night began."""
        return self.clock.monotonic() - self.began

    @property
    def changes(self):
        """How often the configuration has changed."""
        return sum(at <= self.now for at in self.reloads)

    def is_configured(self, number, change):
        """Whether the target of that number stands in the configuration: some are gone for a while, some come later."""
        return not (number % RARE == 7 and change % 2) and not (number % RARE == 13 and change < 1)

    def every_of(self, number, change):
        """The interval of the target of that number: some change theirs."""
        every = self.fates[self.names[number]].every
        return every / 2 if number % RARE == 21 and change % 2 else every

    def grace_of(self, number, change):
        """Seconds by which a check of the target of that number may begin late and still say something."""
        return max(GRACE * self.every_of(number, change), SHORTEST_GRACE)

    async def reach(self):
        """Return when something can be reached: at once, unless we are offline. First there is no way; then silence."""
        offline = self.offline
        if not offline.holds(self.now):
            return
        if self.now < (offline.begin + offline.end) / 2:
            raise OSError(errno.ENETUNREACH, "unreachable")
        await self.clock.sleep(offline.end - self.now)


class _Idle(selectors.DefaultSelector):
    """Where the event loop would wait, time passes. Signals are looked for now and then."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.loop = None
        self._turns = 0

    def select(self, timeout=None):
        if timeout is None or timeout > 0:
            timers = self.loop._scheduled
            following = min(self.clock._next_wait(), timers[0]._when if timers else math.inf)
            assert self.clock.monotonic() < following < math.inf, "nobody waits for anything any more"
            self.clock._move_to(following)
        self._turns += 1
        return super().select(0) if self._turns % 1_000 == 0 else []


def play(clock, func, *args):
    """Run a coroutine function on an event loop whose time is the clock's. It passes when nothing is left to do now."""

    def make_loop():
        selector = _Idle(clock)
        loop = selector.loop = asyncio.SelectorEventLoop(selector)
        loop.time = clock.monotonic
        return loop

    return anyio.run(func, *args, backend="asyncio", backend_options={"loop_factory": make_loop})
