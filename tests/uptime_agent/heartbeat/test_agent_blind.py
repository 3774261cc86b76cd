"""While nothing can be stored the agent checks on, tells people, and stores afterwards what it has kept."""

import json
import resource
import signal
import sqlite3
from contextlib import closing, contextmanager

import anyio
import pytest

from kit import until
from scheduler import StoreDown, StoreUp
from uptime_agent.heartbeat import OURS, StoreOutage
from uptime_agent.standing import Closed, Opened


@contextmanager
def locked(store, pid):
    """Let another process have a transaction open."""
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def away(store, pid):
    """Move the file away, and put it back."""
    elsewhere = store.rename(f"{store}.away")
    yield
    elsewhere.rename(store)


@contextmanager
def full(store, pid):
    """Let no file of the process grow."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class World:
    """A target that can be broken, and what a channel has been told."""

    def __init__(self, target, hook):
        self.target = target
        self.told = hook.told

    def has_told(self, kind, target):
        return [each for each in self.told if (each["kind"], each["target"]) == (kind, target)]


@pytest.fixture
async def world(serve):
    async def answer(server, stream):
        await stream.receive()
        await stream.send(f"HTTP/1.1 {server.status} X\r\nContent-Length: 0\r\n\r\n".encode())

    async def take(server, stream):
        received = b""
        while b"\r\n\r\n" not in received:
            received += await stream.receive()
        head, _, body = received.partition(b"\r\n\r\n")
        size = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        while len(body) < size:
            body += await stream.receive()
        server.told.append(json.loads(body))
        await stream.send(b"HTTP/1.1 204 X\r\nContent-Length: 0\r\n\r\n")

    target, hook = await serve(answer), await serve(take)
    target.status, hook.told = 200, []
    world = World(target, hook)
    world.text = f"""
        [[check]]
        name = "shop"
        url = "http://127.0.0.1:{target.port}"
        interval = "250ms"
        [[channel]]
        name = "ops"
        kind = "webhook"
        url = "http://127.0.0.1:{hook.port}"
    """
    return world


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [locked, away, full])
async def test_an_outage_is_told_though_nothing_can_be_stored(started, world, tmp_path, trouble):
    """So is the end of it, and that nothing can be stored. Afterwards each check is on record, once."""
    file, store = tmp_path / "uptime.toml", tmp_path / "uptime.db"
    file.write_text(world.text)
    async with started("run", file, "--json") as command:
        await command.line_with('"check"', '"up"')
        with trouble(store, command.process.pid):
            await command.line_with("nothing can be stored")
            world.target.status = 500
            await until(lambda: world.has_told("trigger", "shop"))
            world.target.status = 200
            await until(lambda: world.has_told("resolved", "shop"))
            await until(lambda: world.has_told("trigger", OURS))
        await command.line_with("the store works again")
        await until(lambda: world.has_told("resolved", OURS))
        await command.line_with('"check"', '"up"')
        command.process.send_signal(signal.SIGTERM)
        assert await command.end() == 0
    assert len({each["key"] for each in world.told}) == len(world.told) == 4
    checks = [line for line in map(json.loads, command.lines) if line["event"] == "check"]
    with closing(sqlite3.connect(store)) as connection:
        found = connection.execute(
            "SELECT json_extract(result, '$.status') FROM tick WHERE job_id = 'shop' AND outcome = 'succeeded'"
        ).fetchall()
        left = connection.execute("SELECT id FROM job WHERE id LIKE 'notify:%'").fetchall()
    statuses = [status for (status,) in found]
    assert statuses.count("down") == sum(line["status"] == "down" for line in checks) > 0
    assert len(statuses) == len(checks)
    assert left == []


# -- when it is told ---------------------------------------------------------------------------------------------------


async def test_an_outage_that_lasts_is_told_once_and_so_is_its_end(clock):
    """One of a few seconds is told to nobody."""
    told = []
    outage = StoreOutage(told.append, clock, is_shared=False)
    async with anyio.create_task_group() as group:
        group.start_soon(outage.run)
        outage.listen(StoreDown(clock.now(), "x.db: database is locked"))
        await clock.travel(9)
        outage.listen(StoreUp(clock.now(), 9.0))
        await clock.travel(30)
        assert told == []
        outage.listen(StoreDown(clock.now(), "x.db: database is locked"))
        await clock.travel(30)
        outage.listen(StoreUp(clock.now(), 30.0))
        await clock.travel(30)
        group.cancel_scope.cancel()
    opened, closed = told
    assert isinstance(opened, Opened)
    assert isinstance(closed, Closed)
    assert closed.incident == opened.incident
    assert opened.incident.error == "nothing can be stored, and checks go on in memory: x.db: database is locked"
