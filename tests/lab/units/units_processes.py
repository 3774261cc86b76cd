"""Processes with a limit of the fleet (units_agent.py), and what their tasks wrote: how many ran at once."""

import json
import subprocess
import sys
import time
from pathlib import Path

from kit import PATIENCE, wait_until

PROGRAM = Path(__file__).with_name("units_agent.py")


class Agents:
    """Processes that run the same jobs. `deaths`: when each name was killed."""

    def __init__(self, schema, log, **config):
        self.schema, self.log, self.config = schema, log, config
        self.processes = {}
        self.deaths = {}

    def start(self, name, dsn):
        config = {"dsn": dsn, "schema": self.schema, "name": name, "log": str(self.log), **self.config}
        process = subprocess.Popen(
            [sys.executable, PROGRAM, json.dumps(config)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "runs\n"
        self.processes[name] = process

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait(PATIENCE)
        self.deaths[name] = time.monotonic()
        process.stdin.close()
        process.stdout.close()

    def stop(self):
        for process in self.processes.values():
            process.stdin.close()
        for process in self.processes.values():
            process.wait(PATIENCE)
            process.stdout.close()
        self.processes.clear()

    def close(self):
        """End those that are still there, whatever they do."""
        for name in list(self.processes):
            self.kill(name)

    def begun(self, name=""):
        text = self.log.read_text() if self.log.exists() else ""
        return text.count(f"+ {name}")

    def until_more(self, name="", more=30):
        """Wait until that agent, or all together, have begun so many more runs."""
        goal = self.begun(name) + more
        wait_until(lambda: self.begun(name) >= goal)

    def notes(self):
        """Read the log: what, the agent, the job, and when, one after another."""
        for line in self.log.read_text().splitlines():
            what, name, job, at = line.split()
            yield what, name, job, float(at)

    def most_within(self, seconds):
        """Count from the log alone how many runs began within less than that."""
        begun = sorted(at for what, _, _, at in self.notes() if what == "+")
        return max(sum(0 <= at - first < seconds for at in begun) for first in begun)

    def most_at_once(self):
        """Count from the log alone how many runs went on at a time. Those of the dead end with their process."""
        changes, open_runs = [], {}
        for what, name, job, at in self.notes():
            if what == "+":
                open_runs[name, job] = open_runs.get((name, job), 0) + 1
                changes.append((at, 1))
            else:
                open_runs[name, job] -= 1
                changes.append((at, -1))
        changes += [(self.deaths[name], -count) for (name, _), count in open_runs.items() if count]
        now = most = 0
        for _, change in sorted(changes):
            now += change
            most = max(most, now)
        assert now == 0
        return most
