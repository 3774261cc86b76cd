"""The version before stores were shared, as a real process, beside this one on one database: both ways.

Either it hears that it has lost the store, or it is refused and told what to do. No tick runs twice, and none is lost.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from kit import PATIENCE, wait_until
from older_code import code_of
from programs import path_of
from scheduler.stores import rightful_owners

BEFORE = "416eaa3661ce0ec6c46362d2a62c0590928850d2"
"""The last commit before stores were shared."""

BEFORE_LABELS = "a39e5887f49ba68dbc5837a4bfc27fab45f59a2c"
"""The last commit before jobs could be for agents with some labels. It shares stores."""

BEFORE_PARTS = "8e15ae731b61130619e26204203ab0bb7488fa94"
"""The last commit before several agents could run one job. It knows labels."""

BEFORE_WAITED = "8cf674dfe5a0401a5a438c3f4942026bb6d969aa"
"""The last commit before records told what a run had waited for, and stores who changed what."""

JOBS = 20
EVERY_US = 200_000


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """Return where the code of that version is."""
    return code_of(BEFORE, tmp_path_factory.mktemp("older"))


class Agents:
    """Agents as processes, and what their tasks have written."""

    def __init__(self, dsn, schema, folder, older):
        self._config = {"dsn": dsn, "schema": schema, "log": str(folder / "runs"), "jobs": JOBS, "every": "200ms"}
        self._folder = folder
        self._older = older
        self._running = []

    def start(self, name, **more):
        """Start one: "older" of the old code, "newer" of this that shares the store, "sole" of this that does not, and
        "older-sharing" of old code that shares it.
        """
        program = "sharing_agent" if name in {"newer", "older-sharing"} else "older_agent"
        environment = os.environ | ({"PYTHONPATH": str(self._older)} if name.startswith("older") else {})
        config = json.dumps(self._config | {"name": name} | more)
        with (self._folder / name).open("a") as errors:
            process = subprocess.Popen(
                [sys.executable, path_of(program), config],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
        self._running.append(process)
        process.is_running = process.stdout.readline() == "runs\n"
        return process

    def started(self, name, **more):
        """Start one that begins to run jobs."""
        process = self.start(name, **more)
        assert process.is_running, self.said(name)
        return process

    def said(self, name):
        return (self._folder / name).read_text()

    def runs(self):
        log = Path(self._config["log"])
        return [line.split()[:3] for line in log.read_text().splitlines()] if log.exists() else []

    def wait_until_all_run(self, name):
        """Wait until that one has run each job since now."""
        since = len(self.runs())
        wait_until(lambda: len({job for by, job, _ in self.runs()[since:] if by == name}) == JOBS)

    def add(self, process, jobs):
        """Let an agent that shares the store add jobs, once nothing moves any more between it and the other one.

        Options of jobs by their ids. An older agent ends if it is reading a shard as a job comes that it cannot read.
        """
        wait_until(lambda: len(set(owners := self._owners())) == 2 and owners == rightful_owners(set(owners)))
        since = len(self.runs())
        wait_until(lambda: len({job for _, job, _ in self.runs()[since:]}) == JOBS)
        process.stdin.write(f"{json.dumps(jobs)}\n")
        process.stdin.flush()

    def _owners(self):
        """The owner of each shard."""
        with psycopg.connect(self._config["dsn"]) as connection:
            rows = connection.execute(f"SELECT owner FROM {self._config['schema']}.shard ORDER BY number")
            return [owner for (owner,) in rows]

    def end(self, process):
        process.communicate(timeout=PATIENCE)
        return process.returncode

    def check_ticks(self):
        """See that no tick has run twice, and that each from a job's first to its last has run, or has a record."""
        runs = Counter((job, int(due)) for _, job, due in self.runs())
        assert [tick for tick, count in runs.items() if count > 1] == []
        with psycopg.connect(self._config["dsn"]) as connection:
            schema = self._config["schema"]
            rows = connection.execute(f"SELECT job_id, due_us, coalesce(last_due_us, due_us) FROM {schema}.tick")
            known = {(job, due) for job, first, last in rows for due in range(first, last + 1, EVERY_US)}
        for number in range(JOBS):
            dues = [due for job, due in runs if job == f"job-{number}"]
            slots = {(f"job-{number}", due) for due in range(min(dues), max(dues) + 1, EVERY_US)}
            assert slots <= known | set(runs)

    def close(self):
        """Kill those that still run. What all have said is printed, for a test that fails."""
        for process in self._running:
            process.kill()
            process.communicate(timeout=PATIENCE)
        for name in ("older-sharing", "newer"):
            if (self._folder / name).exists():
                sys.stdout.write(f"{name} said:\n{self.said(name)}\n")


@pytest.fixture
def agents(postgres_server, postgres_schema, tmp_path, older):
    agents = Agents(postgres_server.dsn, postgres_schema, tmp_path, older)
    yield agents
    agents.close()


@pytest.mark.slow
def test_agents_that_share_take_the_store_over_from_an_older_one(agents):
    """It hears that with its next commit, and begins nothing more. If it starts again, it is told to be updated."""
    older = agents.start("older")
    agents.wait_until_all_run("older")
    newer = agents.started("newer")
    agents.wait_until_all_run("newer")
    assert agents.end(older) == 0
    assert "taken it over" in agents.said("older")
    assert {by for by, *_ in agents.runs()[-JOBS:]} == {"newer"}
    again = agents.start("older")
    assert not again.is_running
    assert agents.end(again) == 3
    assert "update timerqueue" in agents.said("older").splitlines()[-1]
    agents.wait_until_all_run("newer")
    agents.end(newer)
    agents.check_ticks()


@pytest.mark.slow
@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_agents_that_share_go_on_where_an_older_one_ended(agents, end):
    """However it ended. Their part was refused to them for good."""
    older = agents.start("older")
    agents.wait_until_all_run("older")
    if end == "killed":
        older.kill()
    agents.end(older)
    newer = agents.started("newer")
    agents.wait_until_all_run("newer")
    agents.end(newer)
    agents.check_ticks()


@pytest.mark.slow
def test_an_older_agent_is_refused_by_a_store_that_is_shared(agents):
    """It changes nothing, disturbs nobody, and says what to do."""
    newer = agents.start("newer")
    agents.wait_until_all_run("newer")
    older = agents.start("older")
    assert not older.is_running
    assert agents.end(older) == 3
    assert "and this timerqueue knows 3: update timerqueue" in agents.said("older")
    agents.wait_until_all_run("newer")
    agents.end(newer)
    agents.check_ticks()


@pytest.mark.slow
def test_one_agent_follows_an_older_one_as_ever(agents):
    """It takes the store over, brings it up to date, and the older one ends."""
    older = agents.start("older")
    agents.wait_until_all_run("older")
    sole = agents.started("sole")
    assert agents.end(older) == 0
    agents.wait_until_all_run("older")  # as its tasks call themselves, too
    agents.end(sole)
    agents.check_ticks()


@pytest.mark.slow
def test_an_older_agent_leaves_jobs_for_labels_alone(postgres_server, postgres_schema, tmp_path, tmp_path_factory):
    """It had the store when such jobs came, knows nothing of labels, and has a part of all other jobs. When a newer one
    is killed it does not take such jobs over, either.
    """
    agents = Agents(
        postgres_server.dsn, postgres_schema, tmp_path, code_of(BEFORE_LABELS, tmp_path_factory.mktemp("b"))
    )

    def of_labels(since=0):
        return {by for by, job, _ in agents.runs()[since:] if job.startswith("eu")}

    try:
        older = agents.start("older-sharing")
        agents.wait_until_all_run("older-sharing")
        newer = agents.started("newer", labels={"region": "eu"})
        agents.add(newer, {f"eu-{number}": {"where": "region=eu"} for number in range(JOBS)})
        wait_until(lambda: of_labels() and {by for by, *_ in agents.runs()[-4 * JOBS :]} == {"older-sharing", "newer"})
        assert of_labels() == {"newer"}
        newer.kill()
        agents.end(newer)
        since = len(agents.runs())
        agents.wait_until_all_run("older-sharing")
        assert of_labels(since) == set()
        assert agents.end(older) == 0
        again = agents.start("newer", labels={"region": "eu"})
        wait_until(lambda: of_labels(since) == {"newer"})
        agents.end(again)
    finally:
        agents.close()
    agents.check_ticks()


@pytest.mark.slow
def test_an_older_agent_leaves_jobs_of_several_agents_alone(
    postgres_server, postgres_schema, tmp_path, tmp_path_factory
):
    """To it the texts of their parts are labels that nobody has. Nor does it take over those of one that is killed."""
    agents = Agents(postgres_server.dsn, postgres_schema, tmp_path, code_of(BEFORE_PARTS, tmp_path_factory.mktemp("b")))
    many = {"some": {"agents": 2}, "all": {"agents": "all"}}

    def parts(since=0):
        return {(by, job) for by, job, _ in agents.runs()[since:] if "job" not in job}

    try:
        older = agents.start("older-sharing")
        agents.wait_until_all_run("older-sharing")
        newer = agents.started("newer")
        agents.add(newer, many)
        wait_until(
            lambda: len(parts()) == 2 and {by for by, *_ in agents.runs()[-4 * JOBS :]} == {"older-sharing", "newer"}
        )
        newer.kill()
        agents.end(newer)
        since = len(agents.runs())
        agents.wait_until_all_run("older-sharing")
        assert parts(since) == set()
        assert agents.end(older) == 0
    finally:
        agents.close()
    assert {by for by, _ in parts()} == {"newer"}
    assert {job for _, job in parts()} <= {"some#1", "some#2", "all@newer"}
    agents.check_ticks()


def test_the_code_of_that_version_is_what_runs(older):
    """And not this, which is installed beside it."""
    asked = "import scheduler, timerqueue, schedule; print(scheduler.__file__, timerqueue.__file__, schedule.__file__)"
    environment = os.environ | {"PYTHONPATH": str(older)}
    said = subprocess.run([sys.executable, "-c", asked], env=environment, capture_output=True, text=True, check=True)
    assert all(file.startswith(str(older)) for file in said.stdout.split())


@pytest.mark.slow
def test_an_older_agent_goes_on_while_newer_ones_keep_what_runs_waited_for(
    postgres_server, postgres_schema, tmp_path, tmp_path_factory
):
    """The newer one brings the tables up to date under it. Whichever is killed, the other goes on."""
    agents = Agents(
        postgres_server.dsn, postgres_schema, tmp_path, code_of(BEFORE_WAITED, tmp_path_factory.mktemp("b"))
    )

    def has_all_since(since):
        return {by for by, *_ in agents.runs()[since:]} == {"older-sharing", "newer"}

    try:
        older = agents.start("older-sharing")
        agents.wait_until_all_run("older-sharing")
        newer = agents.started("newer")
        since = len(agents.runs())
        wait_until(lambda: has_all_since(since))
        newer.kill()
        agents.end(newer)
        agents.wait_until_all_run("older-sharing")
        again = agents.started("newer")
        since = len(agents.runs())
        wait_until(lambda: has_all_since(since))
        older.kill()
        agents.end(older)
        agents.wait_until_all_run("newer")
        late = agents.start("older-sharing")
        assert not late.is_running
        assert agents.end(late) != 0
        assert "update timerqueue" in agents.said("older-sharing")
        agents.end(again)
    finally:
        agents.close()
    agents.check_ticks()
