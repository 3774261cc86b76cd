"""The heartbeat: requests go out while the agent is well, and stop within the grace when it is not."""

from contextlib import asynccontextmanager

import anyio
import pytest
from hypothesis import given, strategies as st

from kit import settle, until
from notify_kit import MESSAGE
from timerqueue import SystemClock
from uptime_agent.app import RunPlan, run
from uptime_agent.checks import CheckResult, Status
from uptime_agent.config import parse_config
from uptime_agent.heartbeat.heart import LATE, Bounds, Heart
from uptime_agent.heartbeat.plan import Heartbeat
from uptime_agent.notify.backlog import Backlog
from uptime_agent.notify.entries import NEVER, Entries, OutboxEntry, instant_of
from uptime_agent.toml import ConfigError

CHECK = '[[check]]\nurl = "http://127.0.0.1"\n'
CANARY = "c4n4ry-s3cr3t"


def read(text, environment=None, **options):
    return parse_config(f'store = "memory"\n{CHECK}{text}', "uptime.toml", environment or {}, **options)


class Receiver:
    """A check of a receiver: when it was asked, and what it answers."""

    def __init__(self, clock):
        self.clock = clock
        self.asked = []
        self.error = None

    async def run(self):
        self.asked.append(self.clock.monotonic())
        return CheckResult(status=Status.DOWN if self.error else Status.UP, error=self.error)


class World:
    """A heart, what it looks at, and what it says."""

    def __init__(self, clock, interval=10.0, grace=30.0):
        self.clock = clock
        self.troubles = {"store": None}
        self.said = []
        self.receiver = Receiver(clock)
        plan = Heartbeat(check=None, interval=interval, grace=grace)
        self.heart = Heart(plan, self.receiver, lambda: self.troubles, clock, self.said.append)

    @asynccontextmanager
    async def beating(self):
        async with anyio.create_task_group() as group:
            group.start_soon(self.heart.run)
            await settle()
            yield
            group.cancel_scope.cancel()

    async def asked_within(self, seconds):
        """Count the requests within so many seconds."""
        before = len(self.receiver.asked)
        await self.clock.travel(seconds)
        return len(self.receiver.asked) - before


async def test_a_well_agent_asks_for_the_url_again_and_again(clock):
    """At once, and then after each interval."""
    world = World(clock)
    async with world.beating():
        assert len(world.receiver.asked) == 1
        assert await world.asked_within(100) == 10
    assert world.said == []


@pytest.mark.parametrize("name", ["store", "channel ops"])
async def test_trouble_that_lasts_ends_the_requests_within_the_grace(clock, name):
    """And they begin again with the next interval once it is over. Both are said once."""
    world = World(clock)
    async with world.beating():
        await clock.travel(55)
        world.troubles[name], began = "it does not answer", clock.monotonic()
        await clock.travel(200)
        assert world.receiver.asked[-1] <= began + 30
        world.troubles[name] = None
        assert await world.asked_within(30) == 3
    assert world.said == ["no heartbeat is sent: it does not answer", "heartbeats are sent again"]


async def test_trouble_that_ends_within_the_grace_changes_nothing(clock):
    """A store that is busy for a moment is no reason to wake anybody."""
    world = World(clock)
    async with world.beating():
        world.troubles["store"] = "it is busy"
        assert await world.asked_within(25) == 2
        world.troubles["store"] = None
        assert await world.asked_within(50) == 5
    assert world.said == []


async def test_a_loop_that_stood_still_for_longer_than_the_grace_sends_nothing_until_it_is_on_time(clock):
    """What a frozen process would have sent when it wakes says nothing good about it."""
    world = World(clock)
    async with world.beating():
        before = len(world.receiver.asked)
        clock.advance(300)
        await settle()
        assert len(world.receiver.asked) == before
        assert await world.asked_within(20) >= 1


async def test_a_loop_that_is_late_each_time_sends_nothing_more(clock):
    """As on a machine that has too much to do."""
    world = World(clock)
    async with world.beating():
        began = clock.monotonic()
        for _ in range(40):
            clock.advance(6 + LATE + 0.1)
            await settle()
        assert world.receiver.asked[-1] <= began + 30


async def test_a_receiver_that_takes_no_heartbeat_is_told_of_once(clock):
    """The person who set it up sees why it is silent."""
    world = World(clock)
    async with world.beating():
        world.receiver.error = "connection refused by 127.0.0.1"
        await clock.travel(30)
        world.receiver.error = None
        await clock.travel(30)
    assert world.said == ["the heartbeat is not taken: connection refused by 127.0.0.1", "the heartbeat is taken again"]


@given(st.lists(st.tuples(st.floats(0.1, 20), st.booleans()), min_size=1))
def test_trouble_is_lasting_exactly_if_nothing_was_well_within_the_grace(looks):
    """Whatever the looks were, and however far they lie apart."""
    bounds, now, well = Bounds(10.0), 0.0, None
    for after, is_well in looks:
        now += after
        troubles = {"store": None if is_well else "away"}
        bounds.look(now, troubles)
        well = now if is_well or well is None else well
        assert (bounds.trouble(now, troubles) is not None) is (now - well > 10.0)


# -- channels ----------------------------------------------------------------------------------------------------------


class Job:
    id = "notify:x"

    def __init__(self, next_start):
        self.next_start = next_start


NOW = 1e9


@pytest.mark.parametrize(
    ("next_in", "is_failing", "is_stuck"),
    [(None, False, True), (NEVER.total_seconds(), False, True), (20.0, False, False), (20.0, True, True)],
)
def test_a_channel_is_stuck_if_it_leaves_a_message_lying(next_in, is_failing, is_stuck):
    """A message that waits for the turn that the channel's rate gives it is not left lying."""
    entries = Entries()
    entries.put(OutboxEntry(MESSAGE, Job(None if next_in is None else instant_of(NOW + next_in))))
    backlog = Backlog(entries, {"ops"} if is_failing else set())
    assert backlog.stuck(["ops", "dev"], NOW) == {"ops": is_stuck, "dev": False}
    backlog.taken("ops")
    assert backlog.stuck(["ops"], NOW) == {"ops": False}  # it has taken something since
    assert backlog.stuck(["ops"], NOW) == {"ops": is_stuck}


# -- the configuration -------------------------------------------------------------------------------------------------


def test_the_url_interval_and_grace_stand_in_the_file():
    """Without a url there is no heartbeat."""
    heartbeat = read('[heartbeat]\nurl = "https://hc.example/ping/1"\ninterval = "10s"\ngrace = "20s"').heartbeat
    assert (heartbeat.check.url.host, heartbeat.interval, heartbeat.grace) == ("hc.example", 10.0, 20.0)
    assert read("").heartbeat is None


def test_a_url_given_by_reference_is_a_secret():
    """The path of such a URL is all that protects it."""
    text, there = '[heartbeat]\nurl = { env = "PING" }', {"PING": f"https://hc.example/{CANARY}"}
    config = read(text, there)
    assert f"/{CANARY}" in config.secrets
    assert CANARY not in repr(config.heartbeat.secrets - config.secrets)
    assert read(text, needs_secrets=False).heartbeat is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('interval = "10s"', "the key 'url' is missing"),
        ('url = "tcp://h:1"', "url: "),
        ('url = "http://h/"\ngrace = "10ms"', "expected a duration from 1 s"),
        ('url = "http://h/"\nevery = "10s"', "unknown key 'every'"),
    ],
)
def test_mistakes_are_told_with_their_line(text, said):
    """As in every table."""
    with pytest.raises(ConfigError, match=said):
        read(f"[heartbeat]\n{text}")


# -- in a whole agent --------------------------------------------------------------------------------------------------


async def test_an_agent_asks_for_its_url(serve, answers):
    """As long as it runs; one that only checks once does not."""
    server, receiver = await serve(answers.respond()), await serve(answers.respond(204))
    text = f'[[check]]\nurl = "http://127.0.0.1:{server.port}"\n'
    text += f'[heartbeat]\nurl = "http://127.0.0.1:{receiver.port}/ping/1"\ninterval = "1s"'
    config = parse_config(f'store = "memory"\n{text}', "uptime.toml", {})
    await run(config, Plain(), RunPlan(once=True), SystemClock())
    assert receiver.connections == 0
    async with anyio.create_task_group() as group:
        group.start_soon(run, config, Plain(), RunPlan(), SystemClock())
        await until(lambda: receiver.requests)
        group.cancel_scope.cancel()
    assert receiver.requests[0].startswith("GET /ping/1 HTTP/1.1\r\n")


class Plain:
    """A display that shows nothing."""

    refresh_every = None

    def __getattr__(self, name):
        return lambda *args, **options: None
