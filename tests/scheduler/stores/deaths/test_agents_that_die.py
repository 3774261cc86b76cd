"""Agents as processes, which are killed, frozen, or stop: the others go on with their jobs, and no tick runs twice."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from debian_servers import PgBouncer
from kit import PATIENCE, wait_until
from programs import path_of

AGENT = path_of("sharing_agent")
JOBS = 60


class Fleet:
    """Processes, and what their tasks have written."""

    def __init__(self, dsn, schema, folder):
        self._config = {"dsn": dsn, "schema": schema, "log": str(folder / "runs"), "jobs": JOBS, "every": "200ms"}
        self._folder = folder
        self.agents = {}

    def start(self, name, **more):
        config = json.dumps(self._config | {"name": name} | more)
        with (self._folder / name).open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, AGENT, config], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.agents[name] = process
        assert process.stdout.readline() == "runs\n"

    def runs(self):
        return [line.split() for line in Path(self._config["log"]).read_text("utf-8").splitlines()]

    def said(self, name):
        return (self._folder / name).read_text("utf-8")

    def wait_until_all_run(self, agents):
        """Wait until each job has run once more, and only on these agents since."""
        since = len(self.runs())

        def all_run():
            runs = self.runs()[since:]
            return len({job for agent, job, *_ in runs if agent in agents}) == JOBS

        wait_until(all_run)
        return Counter(agent for agent, *_ in self.runs()[since:])

    def twice(self):
        return [tick for tick, count in Counter((job, due) for _, job, due, _ in self.runs()).items() if count > 1]

    def kill(self, name):
        process = self.agents.pop(name)
        process.kill()
        process.communicate(timeout=PATIENCE)

    def stop(self, name):
        self.agents.pop(name).communicate(timeout=PATIENCE)

    def close(self):
        for name in list(self.agents):
            self.kill(name)


@pytest.fixture
def way():
    """Say how agents reach the server: "direct" or "pooler"."""
    return "direct"


@pytest.fixture
def fleet(way, postgres_server, postgres_schema, tmp_path):
    pooler = PgBouncer(postgres_server, connections=20) if way == "pooler" else None
    fleet = Fleet(postgres_server.dsn if pooler is None else pooler.dsn, postgres_schema, tmp_path)
    yield fleet
    fleet.close()
    if pooler is not None:
        pooler.close()


EU = "region=eu"


@pytest.mark.slow
def test_jobs_for_labels_go_on_where_these_are(fleet):
    """When an agent with them is killed, on the other one; when that is killed too, nowhere, until one comes."""
    eu, us = {"labels": {"region": "eu"}}, {"labels": {"region": "us"}}

    def runners(since):
        return {agent for agent, job, *_ in fleet.runs()[since:] if job.startswith(EU)}

    def wait_until_all_of_eu_run(agents):
        since = len(fleet.runs())
        wait_until(lambda: len({job for by, job, *_ in fleet.runs()[since:] if job.startswith(EU)}) == JOBS)
        assert runners(since) <= agents

    fleet.start("one", **eu)
    fleet.start("two", **eu)
    fleet.start("us", **us, more={f"{EU}-{number}": {"where": EU} for number in range(JOBS)})
    wait_until_all_of_eu_run({"one", "two"})
    fleet.kill("one")
    wait_until(lambda: {agent for agent, job, *_ in fleet.runs()[-JOBS:] if job.startswith(EU)} == {"two"})
    wait_until_all_of_eu_run({"two"})
    fleet.kill("two")
    since = len(fleet.runs())
    fleet.wait_until_all_run({"us"})
    assert runners(since) == set()
    fleet.start("three", **eu)
    wait_until_all_of_eu_run({"three"})
    assert runners(0) == {"one", "two", "three"}
    assert fleet.twice() == []


@pytest.mark.slow
def test_another_takes_the_part_of_a_killed_agent(fleet):
    """Where so many are wanted; where all are it waits for its agent. The others go on as they did."""
    many = {"some": {"agents": 2}, "all": {"agents": "all"}}
    for number in range(1, 4):
        fleet.start(f"a{number}", jobs=0, more=many, labels={"zone": str(number)})

    def runners(since, job):
        ticks = defaultdict(set)
        for agent, part, due, _ in fleet.runs()[since:]:
            if part.startswith(job):
                ticks[due].add(agent)
        return list(ticks.values())

    def wait_until_run_by(job, agents):
        since = len(fleet.runs())
        wait_until(lambda: runners(since, job).count(agents) >= 3)

    wait_until_run_by("all", {"a1", "a2", "a3"})
    wait_until(lambda: any(len(agents) == 2 for agents in runners(0, "some")[-10:]))
    chosen = next(agents for agents in reversed(runners(0, "some")) if len(agents) == 2)
    killed = min(chosen)
    left = {"a1", "a2", "a3"} - {killed}
    fleet.kill(killed)
    wait_until_run_by("some", left)
    wait_until_run_by("all", left)
    fleet.start(killed, jobs=0, more=many, labels={"zone": killed[1]})
    wait_until_run_by("all", left | {killed})
    parts = {job for _, job, *_ in fleet.runs()}
    assert parts == {"some#1", "some#2", "all@a1", "all@a2", "all@a3"}
    assert fleet.twice() == []


@pytest.mark.slow
@pytest.mark.parametrize("way", ["direct", "pooler"])
def test_the_jobs_of_a_killed_agent_go_on_elsewhere(fleet):
    """What it had marked is a crash, and nothing runs twice."""
    fleet.start("one")
    fleet.start("two")
    fleet.wait_until_all_run({"one", "two"})
    fleet.kill("one")
    assert set(fleet.wait_until_all_run({"two"})) == {"two"}
    fleet.start("one")
    wait_until(lambda: "one" in {agent for agent, *_ in fleet.runs()[-JOBS:]})
    assert fleet.twice() == []


@pytest.mark.slow
@pytest.mark.parametrize("way", ["pooler"])
def test_a_frozen_agent_loses_its_jobs_and_joins_again_when_it_goes_on(fleet):
    """What it had in hand when it was frozen it does not begin then, and it says that others have its jobs."""
    fleet.start("one")
    fleet.start("two")
    fleet.wait_until_all_run({"one", "two"})
    os.kill(fleet.agents["one"].pid, signal.SIGSTOP)
    fleet.wait_until_all_run({"two"})
    os.kill(fleet.agents["one"].pid, signal.SIGCONT)
    wait_until(lambda: "has lost its part of the store, and joins again" in fleet.said("one"))
    since = len(fleet.runs())
    wait_until(lambda: "one" in {agent for agent, *_ in fleet.runs()[since:]})
    assert fleet.twice() == []


@pytest.mark.slow
def test_an_agent_that_stops_leaves_no_crash(fleet):
    """The others have its jobs, and each tick that had begun has its end."""
    fleet.start("one")
    fleet.start("two")
    fleet.wait_until_all_run({"one", "two"})
    fleet.stop("one")
    assert set(fleet.wait_until_all_run({"two"})) == {"two"}
    fleet.stop("two")
    assert "the process died under it" not in fleet.said("one") + fleet.said("two")
    assert fleet.twice() == []
