"""What a command does not need it does not import: one waits for that each time."""

import subprocess
import sys

import pytest

from kit import PATIENCE

PROGRAM = """
import contextlib, io, sys
from uptime_agent.cli import cli
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    cli(sys.argv[1:], prog_name="timerqueue")
print(*sorted(sys.modules))
"""


def imported(*args):
    """Run a command in a process of its own; return the modules that it has imported."""
    program = [sys.executable, "-c", PROGRAM, *args]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["run", "--help"], ["next", "@every 5s"], ["next", "sun"]])
def test_what_checks_nothing_imports_no_checks(args):
    """Nor HTTP, nor what draws tables."""
    found = imported(*args)
    assert "uptime_agent.cli" in found
    assert not {"uptime_agent.checks", "uptime_agent.app", "h11", "rich"} & found


def test_help_imports_next_to_nothing_of_the_agent():
    """What a command needs comes when it runs."""
    ours = {name for name in imported("--help") if name.startswith("uptime_agent.")}
    commands = {
        "uptime_agent.cli",
        "uptime_agent.commands",
        "uptime_agent.commands.acts",
        "uptime_agent.commands.asking",
        "uptime_agent.commands.fleet",
        "uptime_agent.commands.jobs",
        "uptime_agent.commands.tokens",
        "uptime_agent.commands.worker",
    }
    commands |= {"uptime_agent.migration", "uptime_agent.migration.command"}
    assert ours == {*commands, "uptime_agent.instants", "uptime_agent.options", "uptime_agent.output"}
    assert not {"http.client", "ssl", "starlette"} & imported("--help")


@pytest.mark.parametrize("output", ["--json", "--plain"])
def test_lines_are_written_without_what_draws_tables(output):
    """A service has no terminal."""
    found = imported("watch", "tcp://127.0.0.1:1", "--for", "50ms", output)
    assert "uptime_agent.app" in found
    assert "rich" not in found
