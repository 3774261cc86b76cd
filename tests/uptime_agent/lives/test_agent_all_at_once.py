"""The whole agent on SQLite: attempts, parents, groups and windows at once, and a kill -9 in the middle of it."""

import json
import signal
import socket
import sqlite3
from contextlib import closing

import anyio
import pytest

from held_ports import hold_port, number_of
from kit import until


@pytest.fixture(scope="module")
def anyio_backend():
    """The process under test has a loop of its own; which one the test uses makes no difference."""
    return "asyncio"


CONFIGURATION = """
[defaults]
interval = "200ms"
timeout = "2s"
[limits]
"host:*" = 20
[[check]]
name = "router"
url = "tcp://127.0.0.1:{router}"
notify = ["ops"]
[[check]]
name = "shop"
url = "tcp://127.0.0.1:{site}"
depends_on = ["router"]
max_attempts = 2
retry_interval = "100ms"
[[check]]
name = "mail"
url = "tcp://127.0.0.1:{site}"
depends_on = ["router"]
failing_interval = "100ms"
[[check]]
name = "alone"
url = "tcp://127.0.0.1:{site}"
notify = ["ops"]
max_attempts = 2
retry_interval = "100ms"
[[check]]
name = "repaired"
url = "tcp://127.0.0.1:{site}"
[[group]]
name = "behind"
members = ["shop", "mail"]
[[group]]
name = "all"
members = ["alone", "router"]
[[maintenance]]
name = "repair"
schedule = "0 * * * *"
duration = "1h"
targets = ["repaired"]
[[channel]]
name = "ops"
kind = "command"
command = ["/bin/sh", "-c", "cat >> {told}; echo >> {told}"]
"""


class Port:
    """A port at which somebody listens, or nobody."""

    def __init__(self, number):
        self.server = None
        self.number = number

    def open(self):
        self.server = socket.create_server(("127.0.0.1", self.number), backlog=1000)

    def close(self):
        if self.server is not None:
            self.server.close()
            self.server = None


@pytest.fixture
def ports():
    with hold_port() as one, hold_port() as other:
        router, site = Port(number_of(one)), Port(number_of(other))
        router.open()
        site.open()
        yield router, site
        router.close()
        site.close()


async def sees(command, *parts):
    """Wait for a line that contains all these, unless there has been one."""
    if not any(all(part in line for part in parts) for line in command.lines):
        await command.line_with(*parts)


async def test_all_relations_hold_through_a_kill(started, ran, tmp_path, ports):
    """Who is blamed is told once, and its end once; whoever is behind it, or in maintenance, is not told of at all."""
    router, site = ports
    told, file = tmp_path / "told", tmp_path / "uptime.toml"
    file.write_text(CONFIGURATION.format(router=router.number, site=site.number, told=told))

    def heard():
        """What the channel was told, by key: who kills a process while it tells has it told once more."""
        lines = told.read_text("utf-8").splitlines() if told.exists() else []
        keys = {each["key"]: each for each in map(json.loads, filter(None, lines))}
        return sorted((each["target"], each["kind"]) for each in keys.values())

    def nothing_runs():
        with closing(sqlite3.connect(tmp_path / "uptime.db")) as database:
            return database.execute("SELECT count(*) FROM tick WHERE outcome = 'running'").fetchone() == (0,)

    async with started("run", str(file), "--json") as command:
        for name in ("router", "shop", "mail", "alone"):
            for _ in range(3):  # it is well for long enough that a change is no flapping
                await command.line_with('"check"', f'"{name}"', '"status": "up"')
        await sees(command, '"notice"', "repaired is not checked: maintenance: repair")
        router.close()
        site.close()
        await sees(command, '"check"', '"shop"', "unreachable by router")
        await sees(command, '"notice"', "told ops", "alone is down")
        while command.process.send_signal(signal.SIGSTOP) or not nothing_runs():  # or it would rest for ten seconds
            command.process.send_signal(signal.SIGCONT)
            await anyio.sleep(0.01)
        command.process.send_signal(signal.SIGKILL)
        await command.process.wait()
    async with started("run", str(file), "--json") as command:
        for name in ("mail", "shop"):
            await sees(command, '"check"', f'"{name}"', "unreachable by router")
        await until(lambda: len(heard()) >= 3)
        router.open()
        site.open()
        wanted = [(name, kind) for name in ("all", "alone", "router") for kind in ("resolved", "trigger")]
        for name in ("alone", "shop", "mail"):
            await command.line_with('"check"', f'"{name}"', '"status": "up"')
        while heard() != wanted:
            assert len(heard()) < len(wanted)
            await command.line_with('"check"')
        command.process.send_signal(signal.SIGTERM)
        assert await command.end() == 0
    assert heard() == wanted
    code, shown, _ = await ran("history", "--config", str(file), "--json", "--limit", "5000")
    records = [json.loads(line) for line in shown.splitlines()]
    assert code == 0
    repaired = [each for each in records if each["name"] == "repaired" and each["outcome"] != "missed"]
    assert {(each["maintenance"], each["status"]) for each in repaired} == {("repair", None)}
    attempts = [(each["attempt"], each["is_final"]) for each in records if each["name"] == "alone" and each["attempt"]]
    assert (1, False) in attempts
    assert (2, True) in attempts
