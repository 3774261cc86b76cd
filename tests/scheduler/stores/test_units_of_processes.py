"""A limit of the fleet over three processes that are killed and cut off, judged by what their tasks wrote."""

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from kit import PATIENCE, wait_until
from proxy import Proxy

LIMIT = 7
PROGRAM = Path(__file__).parents[2] / "units_agent.py"


class Agents:
    """Processes that run the same jobs. `deaths`: when each name was killed."""

    def __init__(self, schema, log):
        self.schema, self.log = schema, log
        self.processes = {}
        self.deaths = {}

    def start(self, name, dsn):
        config = {"dsn": dsn, "schema": self.schema, "name": name, "log": str(self.log), "jobs": 40, "fleet": LIMIT}
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

    def begun(self, name=""):
        text = self.log.read_text() if self.log.exists() else ""
        return text.count(f"+ {name}")

    def until_more(self, name="", more=30):
        """Wait until that agent, or all together, have begun so many more runs."""
        goal = self.begun(name) + more
        wait_until(lambda: self.begun(name) >= goal)

    def most_at_once(self):
        """Count from the log alone how many runs went on at a time. Those of the dead end with their process."""
        changes, open_runs = [], {}
        for line in self.log.read_text().splitlines():
            what, name, job, at = line.split()
            if what == "+":
                open_runs[name, job] = open_runs.get((name, job), 0) + 1
                changes.append((float(at), 1))
            else:
                open_runs[name, job] -= 1
                changes.append((float(at), -1))
        changes += [(self.deaths[name], -count) for (name, _), count in open_runs.items() if count]
        now = most = 0
        for _, change in sorted(changes):
            now += change
            most = max(most, now)
        assert now == 0
        return most


@pytest.fixture
def agents(postgres_schema, tmp_path):
    agents = Agents(postgres_schema, tmp_path / "log")
    yield agents
    for process in agents.processes.values():
        process.kill()
        process.wait(PATIENCE)
        process.stdin.close()
        process.stdout.close()


@pytest.mark.slow
def test_three_processes_never_run_more_than_the_limit_of_the_fleet_through_kills_and_cuts(postgres_server, agents):
    """Each is killed and started again, and each is cut off for longer than its lease."""
    with ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(postgres_server.folder / ".s.PGSQL.5432")) for _ in range(3)]
        dsns = [proxy.dsn for proxy in proxies]
        for number, dsn in enumerate(dsns):
            agents.start(f"a{number}-0", dsn)
        agents.until_more(more=60)
        for number, dsn in enumerate(dsns):
            agents.kill(f"a{number}-0")
            agents.until_more()
            agents.start(f"a{number}-1", dsn)
            agents.until_more()
        for number, proxy in enumerate(proxies):
            proxy.black_hole()
            ended = time.monotonic() + 4.5
            wait_until(lambda ended=ended: time.monotonic() > ended)
            agents.until_more()
            proxy.pass_on()
            agents.until_more(f"a{number}-1", 5)
        agents.stop()
    assert agents.most_at_once() == LIMIT
