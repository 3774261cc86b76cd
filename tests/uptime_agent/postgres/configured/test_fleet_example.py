"""examples/postgres.toml against examples/fleet.py: servers of each version break, and what is told of them is true.

One agent and one process of servers for all tests. Each round breaks all servers by the commands that a reader types,
waits until the agent has told of it, and mends them. The agent's file is the example with other ports, and with shorter
intervals. At the end the program of the servers is killed, which has to take them with it.
"""

import json
import re
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from kit import PATIENCE, wait_until
from programs import AGENT, Program, played_once

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # who asks for the play may wait for another worker's

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
SERVERS = ("pg15", "pg16", "pg17", "pg18")
SOONER = {
    'interval = "2s"': 'interval = "500ms"',
    'wal_files = "2s" }': 'wal_files = "2s", tables = "2s" }',
    '"2s"': '"1s"',
}
UNREACHABLE = "NAME: the server fails (connect): "
FAULTS = {
    "stopped": ("connection refused by 127.0.0.1", UNREACHABLE),
    "revoked": (None, "NAME: wal_files fails (permission): permission denied for function pg_ls_waldir (42501)"),
    "locked": ('role "timerqueue" is not permitted to log in', UNREACHABLE),
    "frozen": ("no answer from 127.0.0.1", None),
}
"""What is told of each: the error of the check, and the log of the probes; None: nothing, or not so soon."""

ENDS = {
    "stopped": "NAME: the server works again",
    "revoked": "NAME: wal_files works again",
    "locked": "NAME: the server works again",
}
ROUNDS = [
    dict.fromkeys(SERVERS, "stopped"),
    dict.fromkeys(SERVERS, "revoked"),
    dict(zip(SERVERS, ("locked", "frozen", "locked", "frozen"), strict=True)),
]


class Play:
    """The example as it runs.

    `told`, `mended`: the (server, fault)s that the agent has told of, and those of whose end it has. `doctor`: what
    `timerqueue doctor` said while the grant was revoked.
    """

    def __init__(self, folder):
        self.file, self.told, self.mended, self.doctor = folder / "postgres.toml", set(), set(), None
        self.fleet = Program(sys.executable, EXAMPLES / "fleet.py", "--elsewhere", self.file, cwd=folder)
        self.fleet.until("All of them work")
        self.missing = {f"pg{line.split()[1]}": line for line in self.fleet.lines if " is missing: " in line}
        self.servers = [name for name in SERVERS if name not in self.missing]
        text = self.file.read_text()
        for named, other in SOONER.items():
            assert named in text
            text = text.replace(named, other)
        self.file.write_text(text)
        self.agent = Program(*AGENT, "run", self.file, "--json", cwd=folder, stderr=subprocess.STDOUT)
        self.are_up = self._until([(name, "up", "") for name in self.servers], [], 0)

    def round(self, faults):
        """Break these servers, see what is told of them, mend them, and see that told as well."""
        faults = {name: how for name, how in faults.items() if name in self.servers}
        since = len(self.agent.lines)
        for name, how in faults.items():
            assert self.fleet.type(f"break {name} {how}").startswith(f"{name} is broken: {how} (")
        checks = [(name, "down", FAULTS[how][0]) for name, how in faults.items() if FAULTS[how][0]]
        logs = [FAULTS[how][1].replace("NAME", name) for name, how in faults.items() if FAULTS[how][1]]
        self.told |= set(faults.items()) if self._until(checks, logs, since) else set()
        if "revoked" in faults.values():
            self.doctor = self._doctor()
        since = len(self.agent.lines)
        assert self.fleet.type("mend").startswith("mended: ")
        checks = [(name, "up", "") for name in faults]
        logs = [ENDS[how].replace("NAME", name) for name, how in faults.items() if how in ENDS]
        self.mended |= set(faults.items()) if self._until(checks, logs, since) else set()

    def _doctor(self):
        command = [*AGENT, "doctor", self.servers[0], self.file]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def _until(self, checks, logs, since):
        """Wait for checks with (name, status, a part of the error), and for lines of the log; tell whether all came."""
        seen, is_found = -1, False

        def are_there():
            nonlocal seen, is_found
            if len(self.agent.lines) != seen:
                seen = len(self.agent.lines)
                is_found = look(self.agent.lines[since:seen])
            return is_found

        def look(new):
            events = [json.loads(line) for line in new if line.startswith("{")]
            found = [(each["name"], each["status"], each["error"] or "") for each in events if each["event"] == "check"]
            return all(any(text in line for line in new) for text in logs) and all(
                any(each[:2] == (f"{name} answers", status) and error in each[2] for each in found)
                for name, status, error in checks
            )

        with suppress(AssertionError):
            wait_until(are_there)
        return are_there()


def played(folder):
    """Play the whole example, and kill what runs the servers at the end."""
    play = Play(folder)
    try:
        for faults in ROUNDS:
            play.round(faults)
    finally:
        code = play.agent.end()
        play.fleet.end(is_killed=True)
    ports = [int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)\n", "".join(play.fleet.lines))]
    with suppress(AssertionError):  # which a test below tells
        wait_until(lambda: not any(map(is_served, ports)))
    return {
        "missing": play.missing,
        "servers": play.servers,
        "are_up": play.are_up,
        "told": [" ".join(fault) for fault in play.told],
        "mended": [" ".join(fault) for fault in play.mended],
        "lines": play.agent.lines,
        "doctor": [play.doctor.returncode, play.doctor.stdout],
        "store": str(folder / "postgres.metrics.db"),
        "left_over": [port for port in ports if is_served(port)],
        "code": code,
    }


def is_served(port):
    """Tell whether anybody listens on that port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    """Have the example played once, whichever workers these tests run on."""
    return SimpleNamespace(**played_once(tmp_path_factory, "fleet-example", played))


@pytest.mark.parametrize(("name", "how"), [pair for faults in ROUNDS for pair in faults.items()], ids=" ".join)
def test_a_server_that_breaks_is_told_with_its_class_of_error_and_so_is_its_end(play, name, how):
    """From outside, by a check, and from inside, by what its probes come to."""
    if name in play.missing:
        pytest.skip(play.missing[name])
    assert play.are_up
    assert f"{name} {how}" in play.told, "".join(play.lines)
    assert f"{name} {how}" in play.mended, "".join(play.lines)


def test_the_doctor_names_the_grant_that_was_revoked(play):
    """It was asked while the role was not in pg_monitor."""
    code, told = play.doctor
    (line,) = [line for line in told.splitlines() if line.startswith("wal_files: ")]
    assert code == 1
    assert line.startswith("wal_files: permission: ")
    assert "it needs a role in pg_monitor" in line


def test_what_went_wrong_and_what_was_found_lies_in_the_store_of_the_example(play):
    """Each failure by its class; and rows of every server, of every database that the file does not leave out."""
    with closing(sqlite3.connect(f"file:{play.store}?mode=ro", uri=True)) as store:
        failures = set(store.execute("SELECT target, failure FROM outcomes WHERE kind = 'failed'"))
        assert failures >= {(name, failure) for name in play.servers for failure in ("connect", "permission")}
        stored = set(store.execute("SELECT target, database FROM outcomes WHERE probe = 'tables' AND kind = 'stored'"))
    assert stored  # of those that were up when it was due
    assert stored == {(name, database) for name, _ in stored for database in ("postgres", "shop")}


def test_servers_do_not_outlive_the_program_that_is_killed(play):
    """They end although it had no time to end them. The agent has ended well before."""
    assert play.left_over == []
    assert play.code == 0
