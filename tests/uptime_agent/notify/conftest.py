"""What the tests of notifications share: a channel that can be troubled, processes that send over it, a receiver."""

import json
from contextlib import asynccontextmanager

import anyio
import pytest

from kit import T0, settle
from scheduler import ClockJumped, JobFinished, RunEnded, Scheduler, SchedulerStarted
from scheduler.stores.memory import MemoryStore
from uptime_agent.acts import no_acts
from uptime_agent.checks import Resolver, Status
from uptime_agent.notify import TASK, ChannelDeps, ChannelRoute, MessageDelivery, Outbox, Rules, Undelivered
from uptime_agent.standing import Closed, Incident, Opened


class Told:
    """A channel that keeps what it takes. `refuses`: so many attempts; `is_hung`: it says nothing at all."""

    kind = "told"
    place = "a list"
    secrets = frozenset()

    def __init__(self):
        self.taken = []
        self.refuses = 0
        self.is_hung = False
        self.attempts = 0
        self.before_answer = None

    async def send(self, notification, means):
        self.attempts += 1
        if self.is_hung:
            await anyio.sleep_forever()
        if self.refuses:
            self.refuses -= 1
            raise Undelivered("it is not well")
        self.taken.append(notification)
        if self.before_answer is not None:
            self.before_answer()

    @property
    def keys(self):
        """The keys of all messages that it has taken, those in digests among them."""
        return [message.key for notification in self.taken for message in notification.messages]

    @property
    def kinds(self):
        """The kinds of notifications that it has taken."""
        return [notification.kind for notification in self.taken]


class World:
    """Processes one after another, over one clock and one store, and the channels that they have."""

    def __init__(self, clock):
        self.clock = clock
        self.store = MemoryStore()
        self.ops = Told()
        self.channels = {"ops": self.ops}
        self.targets = {"shop": None}
        self.rules = Rules(digest=None)
        self.said = []
        self.ways = {}
        self.unstored = None
        self.acts_of = no_acts
        self.before = lambda outbox: None
        """What the outbox is told of before its process has read the store."""

    @asynccontextmanager
    async def process(self, *, dies=False, is_stored=True):
        """Let a process run until the end of the block: until it is stopped at once or, if it `dies`, is killed."""
        s = Scheduler(
            limits={"channel:*": 1}, clock=self.clock, store=self.store if is_stored else None, crash_floor="10s"
        )
        outbox = Outbox(
            s,
            self.channels,
            self.targets,
            self.rules,
            now=self.clock.wall,
            say=self.said.append,
            unstored=self.unstored,
            acts_of=lambda name: self.acts_of(name),  # noqa: PLW0108 - it changes
        )
        ways = {name: self.ways.get(name, ChannelRoute(channel=channel)) for name, channel in self.channels.items()}
        delivery = MessageDelivery(outbox, ways, ChannelDeps(Resolver({}), self.clock))
        s.register(TASK, delivery.run, without_store=True)
        s.listen(outbox.listen, RunEnded, JobFinished)
        s.listen(outbox.hear, ClockJumped)
        s.listen(lambda _: outbox.begin(), SchedulerStarted)
        self.before(outbox)
        async with s:
            await settle()
            yield Process(s, outbox, delivery, self.clock)
            if dies:
                self.store = self.store.another()
                self.store.open(0, lambda: None)
            s.stop(grace=0)


class Process:
    """One of them."""

    def __init__(self, scheduler, outbox, delivery, clock):
        self.scheduler = scheduler
        self.outbox = outbox
        self.delivery = delivery
        self.clock = clock

    def opens(self, target="shop", number=1, **changes):
        """An incident of the target begins."""
        incident = incident_of(target, number, began=self.clock.wall(), **changes)
        self.outbox.hear(Opened(incident))
        return incident

    def closes(self, incident, still=None):
        """The incident ends."""
        self.outbox.hear(Closed(incident, self.clock.wall(), still))

    @property
    def jobs(self):
        """The ids of all jobs, without what they begin with."""
        return sorted(job.id.removeprefix("notify:") for job in self.scheduler.jobs())


def incident_of(target="shop", number=1, *, began=T0, error="connection refused", **changes):
    """Make an incident."""
    return Incident(f"{target}-{number}", target, began, Status.DOWN, error, **changes)


@pytest.fixture
def world(clock):
    return World(clock)


@pytest.fixture
async def hook(serve):
    """Start a receiver: it keeps (first line, headers, body). Its answer: `status`, `phrase`, `headers` and `body`."""

    async def handler(server, stream):
        received = b""
        while b"\r\n\r\n" not in received:
            received += await stream.receive()
        head, _, body = received.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
        while len(body) < int(fields["content-length"]):
            body += await stream.receive()
        server.got.append((head.decode().split("\r\n")[0], fields, json.loads(body)))
        answer = (
            f"HTTP/1.1 {server.status} {server.phrase}\r\nContent-Length: {len(server.body)}\r\n{server.headers}\r\n"
        )
        await stream.send(answer.encode() + server.body)

    server = await serve(handler)
    server.got, server.status, server.phrase = [], 204, "X"
    server.headers, server.body = "", b""
    return server
