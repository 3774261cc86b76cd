"""The examples run as they stand, the demo above all."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from kit import PATIENCE, wait_until

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def checks_of_the_example():
    """Return the tables of uptime.toml."""
    return tomllib.loads((EXAMPLES / "uptime.toml").read_text("utf-8"))["check"]


def run(name, *args):
    """Run an example to its end; return what it printed."""
    program = [sys.executable, EXAMPLES / name, *args]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_the_demo_shows_every_kind_of_state():
    """Up, down, slow, stuck and refused, each by a real server."""
    code, out = run("demo.py", "--once", "--json")
    found = {event["name"]: event for event in map(json.loads, out.splitlines()) if event["event"] == "check"}
    assert code == 1
    held_up = {name for name, event in found.items() if "itself held up" in (event["error"] or "")}  # a busy machine
    expected = dict.fromkeys(found, "up") | {
        "website": "up",  # which flaps: its first two answers are good
        "gateway": "down",
        "shop": "down",
        "search": "degraded",
        "reports": "down",
        "mail": "down",
        "names": "down",
        "backup": "unknown",
    }
    assert found.keys() == {check["name"] for check in checks_of_the_example()}
    for name in expected.keys() - held_up - {"this machine"}:
        assert found[name]["status"] == expected[name]
    assert "no answer" in found["reports"]["error"]
    assert "refused" in found["gateway"]["error"]


def test_the_demo_ends_when_told():
    """With exit code 0, and one line for everything that happened."""
    code, out = run("demo.py", "--for", "1s")
    assert code == 0
    assert re.search(r"stopped after \d+s: ", out)  # a busy machine may take another second for it


def test_the_demo_says_first_what_is_broken_on_purpose():
    """Every check that is not up by its name, or one would look for the fault in the agent."""
    _, out = run("demo.py", "--once")
    intended, _, lines = out.partition("\n\n")
    assert "broken on purpose" in intended
    troubled = [line.split()[3] for line in lines.splitlines() if line.split()[2] in ("DOWN", "DEGRADED")]
    assert "gateway" in troubled
    assert {"website", *troubled} <= set(re.findall(r"\w+", intended))


HELD_UP = """
import runpy, sys, threading
import uptime_agent.__main__ as agent
sys.path.insert(0, sys.argv[1])
threading.Thread(target=threading.Event().wait).start()
if "--before-the-agent" in sys.argv:
    agent.run = threading.Event().wait
sys.argv = ["demo.py", *sys.argv[2:]]
runpy.run_path(sys.path[0] + "/demo.py", run_name="__main__")
"""


@pytest.fixture
def demo(tmp_path):
    """Start the demo, with a thread that never ends, in a process that keeps its temporary folder in tmp_path.

    With `--before-the-agent` it never gets as far as that.
    """
    started = []

    def start(*args):
        program = [sys.executable, "-c", HELD_UP, EXAMPLES, *args]
        environment = os.environ | {"TMPDIR": str(tmp_path)}
        started.append(subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment))
        return started[0]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_the_demo_leaves_nothing_behind(demo, tmp_path):
    """Neither its history nor its configuration, though a thread still lives when it leaves."""
    assert demo("--once").wait(timeout=PATIENCE) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("is_running", [False, True], ids=["as it starts", "while it runs"])
def test_a_signal_does_not_keep_the_demo_from_clearing_up(demo, tmp_path, number, is_running):
    """Whether it comes before the agent listens to signals or afterwards."""
    process = demo() if is_running else demo("--before-the-agent")
    wait_until(lambda: list(tmp_path.glob("timerqueue-demo-*")))
    if is_running:
        assert any("-> UP" in line for line in process.stdout)
    process.send_signal(number)
    assert process.wait(timeout=PATIENCE) == (0 if is_running else 128 + number)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "line"), [("quickstart.py", "hello grid"), ("subtasks.py", "part 5 done")])
def test_an_example_runs(name, line):
    """It prints what its reader expects."""
    code, out = run(name)
    assert code == 0
    assert line in out


@pytest.mark.parametrize(("name", "port"), [("servers.py", 18088), ("fleet.py", 15417)])
def test_a_port_that_is_taken_is_told_in_a_sentence(name, port):
    """With what to do about it; nothing has been started by then."""
    with ExitStack() as stack:
        with suppress(OSError):  # somebody else has taken it, which is as good
            stack.enter_context(socket.create_server(("127.0.0.1", port)))
        command = [sys.executable, EXAMPLES / name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("cannot serve on 127.0.0.1 port ")
    assert done.stderr.endswith(": address already in use; see --elsewhere\n")
