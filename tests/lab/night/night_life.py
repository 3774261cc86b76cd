"""One life of the agent in a night: what it checks, tells, remembers and shows, until it is killed."""

import errno
import stat
from collections import Counter, defaultdict
from hashlib import blake2b

import anyio
from attrs import field, frozen

from night_world import ANSWERS_IN, World
from scheduler.stores import StoreTakenOver
from scheduler.stores.memory import MemoryStore
from uptime_agent.checks.contract.result import Finding
from uptime_agent.notify import ChannelRoute, Undelivered
from uptime_agent.text.url import Url

CHANNELS = ("ops", "pager")
"""The second one is down for an hour."""

DELIVERS_IN = 0.05


@frozen(kw_only=True)
class Simulated:
    """A check of a target that is what its fate says."""

    url: Url
    name: str
    night: object = field(eq=False, repr=False)
    secrets = frozenset()

    async def attempt(self, at):
        world, life = self.night.world, self.night.life
        life.places.hold(self.name)
        began, room_until = world.now, life.places.room_until
        life.asked[self.name] = Asked(began, room_until)
        with at.watch.measure("connect"):
            await world.reach()
            await world.clock.sleep(ANSWERS_IN)
        trouble = world.fates[self.name].trouble(world.now)
        life.asked[self.name] = Asked(began, room_until, trouble is None)
        if trouble is None:
            return Finding()
        if trouble.is_silent:
            await anyio.sleep_forever()
        raise OSError(errno.ECONNREFUSED, "refused")


@frozen
class Asked:
    """What a target was asked last. `began`: seconds since the night began. `room_until`: until when there was room to
    begin before, so it need not have waited longer. `is_up`: None: we were offline.
    """

    began: float
    room_until: float
    is_up: bool | None = None


class Places:
    """Knows who is being checked in one life of the agent. `room_until`: until when there were fewer than may be. A
    place that is taken again in the instant in which it is left was never free.
    """

    def __init__(self, world):
        self._world = world
        self._held = set()
        self._changed = self.room_until = world.now

    def hold(self, name):
        """Have a target hold a place from now on."""
        self._look()
        self._held.add(name)

    def leave(self, name):
        """Have it hold none any more: the record of its check is there."""
        self._look()
        self._held.discard(name)

    def _look(self):
        now = self._world.now
        if len(self._held) < self._world.places and now > self._changed:
            self.room_until = now
        self._changed = now


@frozen(kw_only=True)
class Gateway:
    """What the agent asks to know whether it is online."""

    url: Url
    world: World = field(eq=False, repr=False)
    secrets = frozenset()

    async def attempt(self, at):
        with at.watch.measure("connect"):
            await self.world.reach()
        return Finding()


@frozen(eq=False)
class Post:
    """A channel of one life of the agent: who is behind it writes down what comes."""

    life: "Life"
    name: str
    kind = "post"
    place = "a receiver"
    secrets = frozenset()

    async def send(self, notification, means):
        world, log = self.life.night.world, self.life.night.log
        await world.clock.sleep(DELIVERS_IN)
        down = world.channel_down
        if self.name == "pager" and down.holds(world.now):
            log.in_vain += 1
            if world.now < (down.begin + down.end) / 2:
                raise Undelivered("it is not well")
            await anyio.sleep_forever()
        if not self.life.is_dead:
            log.take(self.name, notification, self.life.number)
        await world.clock.sleep(DELIVERS_IN)


class Store(MemoryStore):
    """The store as one life of the agent has it. It may die with a commit; the data live on."""

    def __init__(self, life, data):
        super().__init__()
        self._life, self._data = life, data

    def commit(self, batch):
        life = self._life
        if life.is_dead:
            raise StoreTakenOver("it is dead")
        death = life.death_in_this_commit()
        if death is not None and not death.is_durable:
            raise life.die()
        receipt = super().commit(batch)
        life.night.stored(batch)
        if death is not None:
            raise life.die()
        return receipt

    def history(self, job_id=None, *, limit=100, before_us=None):
        if job_id is None or before_us is not None:
            return super().history(job_id, limit=limit, before_us=before_us)
        ticks = self._data.ticks
        found = [ticks[job_id, due] for due in self._life.night.kept[job_id] if (job_id, due) in ticks]
        return sorted(found, key=lambda tick: -tick.due_us)[:limit]

    def prune(self, retention, now_us):
        return 0


class Place:
    """Where the agent's store is."""

    file = fleet = None
    secrets = frozenset()

    def __init__(self, night):
        self.night = night

    def make(self):
        return Store(self.night.life, self.night.data)

    def __str__(self):
        return "the store of the night"


class Log:
    """What happened, in order, instants in whole ms. `taken`: by channel and key, when and in which life each came."""

    def __init__(self, world):
        self.world = world
        self.lines = 0
        self.digest = blake2b(digest_size=8)
        self.words = Counter()
        self.taken = {name: defaultdict(list) for name in CHANNELS}
        self.messages = {}
        self.in_vain = 0
        self.wrong = []
        self.keeps = None

    def write(self, *words):
        line = (round(self.world.now * 1e3), *words)
        self.digest.update(f"{line}\n".encode())
        self.lines += 1
        if self.keeps is not None:
            self.keeps.append(line)

    def take(self, channel, notification, life):
        for message in notification.messages:
            self.taken[channel][message.key].append((self.world.now, life))
            self.messages[message.key] = message
            self.write("told", message.key)


class Life:
    """One life of the agent: what it is asked to show, and how it ends. `asked`: by target what was true when it was
    checked last.
    """

    refresh_every = None

    def __init__(self, night, number):
        self.night = night
        self.number = number
        self.asked = {}
        self.places = Places(night.world)
        self.is_dead = False
        self.death = None
        self.commits = 0
        self.scope = anyio.CancelScope()
        self.channels = {name: ChannelRoute(channel=Post(self, name)) for name in CHANNELS}

    def death_in_this_commit(self):
        if self.death is None:
            return None
        self.commits += 1
        return self.death if self.commits >= self.death.commits else None

    def die(self):
        """Have nothing of it reach the world any more. The error that it will not live to see."""
        self.is_dead = True
        self.night.log.write("dead", self.number)
        self.scope.cancel()
        return StoreTakenOver("it is dead")

    # -- a display

    def started(self, view):
        self._write("started", len(view.targets))
        self.night.follows()

    def remembered(self, target):
        self._write("remembered", target.name, target.status.value)

    def checked(self, target, *, is_change):
        if is_change:
            self._write(target.name, target.status.value)

    def missed(self, target, event):
        self._write(target.name, "missed", event.count, event.reason.value)

    def notice(self, text):
        self._write("notice", text)
        if text.startswith("configuration read again"):
            self.night.follows()

    def refresh(self):
        pass

    def stopped(self, summary):
        self._write("stopped", summary.checks)

    def _write(self, *words):
        if not self.is_dead:
            self.night.log.write(*words)
            self.night.log.words[words[0] if words[0] in ("started", "remembered", "notice") else words[1]] += 1


@frozen
class File:
    """Stands in for the configuration's file, which looks changed with each change."""

    world: World

    def stat(self):
        class Found:
            st_mtime_ns, st_size, st_ino, st_mode = self.world.changes, 0, 0, stat.S_IFREG

        return Found
