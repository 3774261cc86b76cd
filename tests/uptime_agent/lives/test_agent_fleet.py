"""`timerqueue fleet`: who shares a store, for people and for programs."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from importlib.metadata import version

import pytest
from click.testing import CliRunner
from psycopg import connect

from kit import PATIENCE
from scheduler.stores import Ask, Batch, StoredJob, StoredState, Wish
from scheduler.stores.postgres import PostgresStore
from uptime_agent.cli import cli


@pytest.fixture
def agent(postgres_server, postgres_schema):
    stores = []

    def agent(name, shared=True, **labels):
        dsn = postgres_server.dsn
        store = PostgresStore(dsn, schema=postgres_schema, shared=shared, name=name, labels=labels)
        store.open(1_000_000, lambda: None)
        stores.append(store)
        return store

    yield agent
    for store in stores:
        store.close()


@pytest.fixture
def command(tmp_path):
    """Run a command on the file of an agent that shares a store which is away. All that it checks is up."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        check = f'url = "tcp://127.0.0.1:{server.getsockname()[1]}"\n'
        file = tmp_path / "agent.toml"
        file.write_text(
            'store = "postgresql://nobody@127.0.0.1:1/none"\n[fleet]\nname = "one"\n[defaults]\ninterval = "100ms"\n'
            f'[[check]]\nname = "site"\n{check}[[check]]\nname = "shop"\n{check}depends_on = ["site", "both"]\n'
            f'[[check]]\nname = "mail"\n{check}[[group]]\nname = "both"\nmembers = ["site", "mail"]\n'
        )

        def command(*options):
            whole = [sys.executable, "-m", "uptime_agent", "run", str(file), *options]
            return subprocess.run(whole, capture_output=True, text=True, timeout=PATIENCE, check=False)

        yield command


def test_once_checks_everything_and_asks_no_other_agent(command):
    """Nor their store, though the targets belong together."""
    done = command("--once")
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 checks; targets: 3 up" in done.stdout


def test_another_store_is_shared_as_the_one_of_the_file(command, url):
    """`[fleet]` was left out of account: such an agent took the store for itself, or was refused beside others."""
    done = command("--store", url, "--for", "1s")
    assert done.returncode == 0, done.stderr
    assert "this agent shares the store, as one" in done.stdout


def test_an_agent_that_starts_while_the_server_is_away_waits_for_it(url, tmp_path, postgres_server):
    """It says so, and checks as soon as the server is there. It ended with an error."""
    file = tmp_path / "agent.toml"
    file.write_text(f'store = "{url}"\n[fleet]\n[[check]]\nname = "none"\nurl = "tcp://127.0.0.1:1"\n')
    file.chmod(0o600)
    postgres_server.stop()
    try:
        command = [sys.executable, "-m", "uptime_agent", "run", str(file)]
        environment = os.environ | {"TIMERQUEUE_FLEET_NAME": "one"}
        agent = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        guard = threading.Timer(PATIENCE, agent.kill)
        guard.start()
        waits = next((line for line in agent.stdout if "cannot be opened yet" in line), None)
    finally:
        postgres_server.start()
    checks = next((line for line in agent.stdout if "none" in line and "DOWN" in line), None)
    agent.terminate()
    rest = agent.communicate()[0]
    guard.cancel()
    assert waits, rest
    assert checks, rest
    assert agent.returncode == 0, rest


def run(*words):
    return CliRunner().invoke(cli, ["fleet", *words])


def run_while_all_live(agents, *words):
    """Run it within the leases of these, which last for three seconds: a machine may be held up for longer."""
    for _ in range(20):
        for each in agents:
            each.sharing.renew()
        found = run(*words)
        if found.exit_code == 0:
            break
    return found


def test_it_says_who_has_what(agent, url):
    """With leases, shards and jobs; and how far each is behind."""
    one, two = agent("one", region="eu"), agent("two")
    one.sharing.claim(range(1_024))
    one.commit(Batch(jobs={"a": StoredJob("a", "t", "@every 1m")}, states={"a": StoredState("a", next_us=1_000_000)}))
    found = run_while_all_live([one, two], url)
    assert found.exit_code == 0, found.output
    first, second = found.stdout.splitlines()
    assert first.startswith(f"one: incarnation {one.epoch}, for ")
    assert "1024 of 1024 shards with 1 jobs, format 2" in first
    assert " s behind, region=eu" in first
    assert f"two: incarnation {two.epoch}" in second
    assert "0 of 1024 shards with 0 jobs" in second
    assert "behind" not in second


def test_programs_read_it_as_json(agent, url):
    """One object for each agent."""
    one = agent("one", region="eu")
    [said] = map(json.loads, run_while_all_live([one], url, "--json").stdout.splitlines())
    assert said["name"] == "one"
    assert said["epoch"] == one.epoch
    assert said["labels"] == {"region": "eu"}
    assert 0 < said["left"] <= 3
    assert (said["shards"], said["jobs"], said["lag"]) == (0, 0, 0)


def test_it_says_how_many_jobs_wait_for_labels_that_no_agent_has(agent, url):
    """Those of labels that one has come to it in a moment."""
    one = agent("one", region="eu")
    wheres = {"a": "region=eu", "b": "region=us", "c": "region=us"}
    one.commit(
        Batch(jobs={id: StoredJob(id, "t", "@daily", options=f'{{"where": "{w}"}}') for id, w in wheres.items()})
    )
    assert "2 jobs wait: no node has region=us" in run(url).stdout.splitlines()
    assert json.loads(run(url, "--json").stdout.splitlines()[-1]) == {"waiting": {"where": "region=us", "jobs": 2}}


def test_it_says_whose_clock_is_off_and_which_version_each_has(agent, url):
    """By seconds from the server's clock. What has not been measured is left out."""
    one, two = agent("one"), agent("two")
    one.sharing.renew(-0.25)
    two.sharing.renew(7.5, is_off=True)
    first, second = run(url).stdout.splitlines()[:2]
    assert re.search(r", clock 0\.250 s behind, [1-4] connections?, timerqueue " + version("timerqueue"), first)
    assert re.search(r", clock 7\.500 s ahead: too far, so others have its shards, [1-4] connections?, timer", second)
    said = [json.loads(line) for line in run(url, "--json").stdout.splitlines()]
    assert [(each["skew"], each["is_off"], each["version"]) for each in said] == [
        (-0.25, False, version("timerqueue")),
        (7.5, True, version("timerqueue")),
    ]


def test_it_says_how_long_the_last_hand_overs_took(agent, url, postgres_server, postgres_schema):
    """From the last sign of life of one that died, and from the good-bye of one that left, to the last claim."""
    one, two, three = agent("one"), agent("two"), agent("three")
    one.sharing.claim(range(500))
    two.sharing.claim(range(500, 1_000))
    agent("none").sharing.leave()  # it had nothing to hand over
    one.sharing.leave()
    gone = run(url).stdout.splitlines()[-1]
    assert re.fullmatch(r"one \(incarnation 1\) left \d+ s ago, nobody has claimed its 500 shards yet", gone)
    three.sharing.claim(range(200))
    three.sharing.claim(range(200, 500))
    with connect(postgres_server.dsn, autocommit=True) as hand:
        hand.execute(f"UPDATE {postgres_schema}.lease SET until = now() - interval '9s' WHERE epoch = {two.epoch}")
    assert three.sharing.bury([two.epoch]) == [two.epoch]
    three.sharing.claim(range(500, 600))
    dead, left = [json.loads(line)["hand_over"] for line in run(url, "--json").stdout.splitlines() if "hand_o" in line]
    assert (left["name"], left["is_dead"], left["shards"], left["claimed"]) == ("one", False, 500, 500)
    assert (dead["name"], dead["is_dead"], dead["shards"], dead["claimed"]) == ("two", True, 500, 100)
    assert dead["seconds"] >= 12  # the lease is worth three seconds, and has ended nine ago
    assert left["seconds"] > 0
    lines = run(url).stdout
    assert re.search(r"one \(incarnation 1\) left \d+ s ago, 500 shards claimed [\d.]+ s later", lines)
    assert re.search(r"died \d+ s ago, 100 of its 500 shards claimed [\d.]+ s after its last sign of life", lines)


def test_it_says_who_has_units_of_the_limits_of_the_fleet(agent, url):
    """And how many wait for one."""
    one, two = agent("one"), agent("two")
    one.lending.declare({"http": 2}, {})
    two.lending.declare({"http": 2}, {})
    one.lending.round({"http": Ask(size=2, used=0, wishes=(Wish(1, 1), Wish(2, 1)))})
    one.lending.round({"http": Ask(size=2, used=2)})
    two.lending.round({"http": Ask(size=2, used=0, wishes=(Wish(3, 1), Wish(4, 1)))})
    said = run(url).stdout
    assert "limit http: one has 2 of 2 units" in said
    assert "limit http: two has 0 of 2 units, 2 wait" in said
    loans = [json.loads(line)["loan"] for line in run(url, "--json").stdout.splitlines() if "loan" in line]
    assert [(loan["agent"], loan["units"], loan["waiting"]) for loan in loans] == [("one", 2, 0), ("two", 0, 2)]


def test_a_lease_that_has_ended_is_an_exit_code(agent, url, postgres_server, postgres_schema):
    """So is a store that nobody has."""
    one = agent("one")
    with connect(postgres_server.dsn, autocommit=True) as hand:
        hand.execute(f"UPDATE {postgres_schema}.lease SET until = now() - interval '9s'")
    found = run(url)
    assert found.exit_code == 1
    assert "lease ended" in found.stdout
    one.sharing.leave()
    found = run(url)
    assert (found.exit_code, found.stdout.splitlines()[0]) == (1, "no node has the store")


def test_an_agent_may_have_a_store_for_itself(agent, url):
    """It needs no lease."""
    agent("one", shared=False)
    found = run(url)
    assert (found.exit_code, "has the store for itself" in found.stdout) == (0, True)


def test_a_file_is_for_one_process(tmp_path):
    """And it is said so."""
    found = run(f"sqlite:///{tmp_path}/uptime.db")
    assert found.exit_code == 2
    assert "is for one process: nodes share a store in PostgreSQL" in found.stderr


@pytest.mark.parametrize("command", ["fleet", "audit"])
def test_where_the_tables_stand_in_another_schema_it_says_the_command_that_works(agent, url, postgres_schema, command):
    """A program's store stands in one of its own name, and who asks has the agent's in mind."""
    agent("one")
    nothing = url.replace(postgres_schema, "nothing_here")
    found = CliRunner().invoke(cli, [command, nothing])
    assert found.exit_code == 2
    assert "schema 'nothing_here' holds no tables of timerqueue" in found.stderr
    assert "there are some in " in found.stderr  # of this test, and of others that use the same server
    works = re.search(r"timerqueue (\w+) '([^']+)'$", found.stderr.strip())
    assert works, found.stderr
    named = re.search(r"schema=(\w+)", works[2])[1]  # perhaps of another test, which has put anything there
    assert works.groups() == (command, nothing.replace("nothing_here", named))
    assert CliRunner().invoke(cli, [command, url]).exit_code < 2
