"""Hostile PostgreSQL servers: checks and probes of them end in words, within bounds of memory, and others go on."""

import logging
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

import hostile_postgres
from kit import PATIENCE
from timerqueue import SystemClock
from uptime_agent.checks import Resolver, Status
from uptime_agent.checks.postgres import POSTGRES, PostgresCheck
from uptime_agent.libpq import Connection, Query, Server, Unreachable
from uptime_agent.libpq.wire import BESIDES, SLICE
from uptime_agent.postgres import CATALOGUE, PostgresTarget
from uptime_agent.postgres.doctor import examine
from uptime_agent.text import parse_url

pytestmark = pytest.mark.slow

NAMES = [each.__name__ for each in hostile_postgres.MALICE]
SOON = 4.0
SLOW = {"silence", "a_login_without_end", "an_end_without_ready"}
"""Those that say nothing wrong: time alone bounds them."""

MOST_MEMORY = 100 * 1024
"""KiB that checks of all of them may take at once."""


@contextmanager
def started(*files):
    """Start them; their ports by name."""
    program = [sys.executable, hostile_postgres.__file__, *map(str, files)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield {name: int(process.stdout.readline()) for name in NAMES}
        finally:
            process.kill()


@pytest.fixture(scope="module", params=["plain", "tls"])
def ports(request):
    """Ports of servers that speak TLS, or do not."""
    files = request.getfixturevalue("certificate") if request.param == "tls" else ()
    with started(*files) as ports:
        yield ports


@pytest.fixture
def checked(target_check):
    """Check a port."""

    async def check(port, within=SOON):
        url = parse_url(f"postgresql://me:canary@127.0.0.1:{port}/d", POSTGRES.schemes)
        return await target_check(PostgresCheck(url=url), timeout=within).run()

    return check


@pytest.mark.parametrize("name", NAMES)
async def test_a_hostile_server_is_down_in_words(name, ports, checked):
    """It is the server's fault, whatever it sends. Where it sends too much, that ends the check before its time."""
    with anyio.fail_after(PATIENCE):
        result = await checked(ports[name], within=0.5 if name in SLOW else PATIENCE)
    assert result.status is Status.DOWN
    assert result.error.isprintable()
    assert len(result.error) < 1200
    assert ("no answer" in result.error or "did not end" in result.error) is (name in SLOW)


async def test_all_of_them_at_once_take_little_memory(ports, checked):
    """A gibibyte that is announced is not kept, nor are rows without end."""
    before = forget_most_memory()
    async with anyio.create_task_group() as group:
        for port in ports.values():
            group.start_soon(checked, port)
    assert most_memory() - before < MOST_MEMORY


def forget_most_memory():
    """Begin to look at how much memory this process has at most; return how much it has."""
    peak = Path("/proc/self/clear_refs")
    if not peak.exists():
        pytest.skip("only Linux says how much memory a process has had at most")
    peak.write_text("5")
    return most_memory()


def most_memory():
    """KiB of memory that this process had at most since somebody began to look."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


@pytest.mark.parametrize("name", ["endless_rows", "rows_of_nothing", "notices_without_end", "a_field_of_a_gibibyte"])
async def test_others_go_on_after_each_slice(name, ports):
    """As many turns of the event loop as slices, at least."""
    turns = 0

    async def others():
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    connection = Connection(Server(host="h", port=ports[name], user="me"), "127.0.0.1", SystemClock().monotonic)
    async with anyio.create_task_group() as group:
        await connection.connect()
        group.start_soon(others)
        with pytest.raises(Unreachable, match="the server sends more than"):
            await connection.fetch(Query(b"SELECT 1", PATIENCE, most_bytes=1_000_000))
        group.cancel_scope.cancel()
    assert turns >= BESIDES // SLICE
    await seen_off(connection)


async def test_a_server_that_goes_on_sending_is_left_all_the_same(ports):
    """Though it never closes its side."""
    connection = Connection(Server(host="h", port=ports["endless_rows"]), "127.0.0.1", SystemClock().monotonic)
    await connection.connect()
    with pytest.raises(Unreachable):
        await connection.fetch(Query(b"SELECT 1", PATIENCE, most_rows=1))
    await seen_off(connection)


async def seen_off(connection):
    """Leave, as those do who count the connections of a server."""
    from uptime_agent.libpq import gone  # noqa: PLC0415

    with anyio.fail_after(PATIENCE):
        await connection.give_up()
        left = connection.leave()
        if left is not None:
            with left:
                await gone(left)


@pytest.mark.parametrize("name", ["copy_in", "ready_at_once", "columns_no_utf8", "an_sqlstate_no_utf8", "endless_rows"])
async def test_a_probe_of_a_hostile_server_fails_in_words(name, caplog):
    """It is no defect of ours, and no traceback is logged."""
    caplog.set_level(logging.WARNING)
    probes = [CATALOGUE[each] for each in ("node_role", "statements")]
    with started() as ports, anyio.fail_after(PATIENCE):
        target = PostgresTarget(name="x", server=Server(host="127.0.0.1", port=ports[name], user="me"), wait=2.0)
        found = await examine(target, probes, Resolver(), SystemClock())
    assert not any("defect of ours" in each.text for each in found)
    assert caplog.records == []
