"""The examples run as they stand, the demo above all."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name, *args):
    """Run an example to its end; return what it printed."""
    program = [sys.executable, EXAMPLES / name, *args]
    done = subprocess.run(program, capture_output=True, text=True, timeout=40, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_the_demo_shows_every_kind_of_state():
    """Up, down, slow, stuck and refused, each by a real server."""
    code, out = run("demo.py", "--once", "--json")
    found = {event["name"]: event for event in map(json.loads, out.splitlines()) if event["event"] == "check"}
    assert code == 1
    assert {name: event["status"] for name, event in found.items()} == {
        "website": "up",
        "shop": "down",
        "search": "degraded",
        "reports": "down",
        "flapping": "up",
        "database": "down",
        "echo": "up",
        "website, each minute": "up",
    }
    assert "no answer" in found["reports"]["error"]
    assert "refused" in found["database"]["error"]


@pytest.mark.slow
def test_the_demo_ends_when_told():
    """With exit code 0, and one line for everything that happened."""
    code, out = run("demo.py", "--for", "1s")
    assert code == 0
    assert "stopped after 1s" in out


@pytest.mark.parametrize(("name", "line"), [("quickstart.py", "hello grid"), ("subtasks.py", "part 5 done")])
def test_an_example_runs(name, line):
    """It prints what its reader expects."""
    code, out = run(name)
    assert code == 0
    assert line in out
