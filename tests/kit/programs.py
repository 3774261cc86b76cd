"""Programs that run beside a test: where each lies, and the lines that it prints meanwhile."""

import fcntl
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from kit import PATIENCE, wait_until

AGENT = [sys.executable, "-m", "uptime_agent"]
TESTS = next(folder for folder in Path(__file__).resolve().parents if folder.name == "tests")


def path_of(name):
    """Return where the program of that name lies among the tests."""
    (found,) = TESTS.rglob(f"{name}.py")
    return found


class Program:
    """A program and its lines, so far. Pipes are as those of subprocess."""

    def __init__(self, *command, cwd, **pipes):
        self.lines = []
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True} | pipes
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen([*map(str, command)], cwd=cwd, env=environment, **pipes)
        self._reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True)
        self._reader.start()

    def until(self, text):
        """Wait until it has printed a line with that text. It fails at once if the program ends without it."""

        def is_there():
            has_ended = self.process.poll() is not None and not self._reader.is_alive()
            found = any(text in line for line in self.lines)
            assert found or not has_ended, "".join(self.lines)
            return found

        wait_until(is_there)

    def type(self, command, passing_over="\0"):
        """Give a command; return the next line that it prints, but for those that begin so."""
        before = len(self.lines)
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()

        def answers():
            return [line for line in self.lines[before:] if not line.startswith(passing_over)]

        wait_until(answers)
        return answers()[0]

    def end(self, *, is_killed=False):
        """End it, and return its exit code."""
        (self.process.kill if is_killed else self.process.terminate)()
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        return code


def played_once(tmp_path_factory, name, play):
    """Return what `play` gives, as JSON has it. Of all workers one calls it, with a folder, and the others wait."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = shared / f"{name}.json"
        if not file.exists():
            file.write_text(json.dumps(play(tmp_path_factory.mktemp(name))))
    return json.loads(file.read_text())


def events_of(kind, lines):
    """Return the events of that kind among lines of an agent that prints JSON."""
    return [event for event in map(json.loads, lines) if event["event"] == kind]
