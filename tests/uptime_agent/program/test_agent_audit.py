"""`timerqueue audit`: an audit of a store from outside, for people and for programs."""

import json

import pytest
from click.testing import CliRunner
from psycopg import connect

from scheduler.stores import Batch, StoredJob, StoredState
from scheduler.stores.postgres import PostgresStore
from uptime_agent.cli import cli

FILE = """
store = "{url}"
[fleet]
name = "here"
[[check]]
url = "http://127.0.0.1:9/"
"""


@pytest.fixture
def store(postgres_server, postgres_schema):
    """The store of an agent that is there, and answers nothing. Two jobs are its own."""
    store = PostgresStore(postgres_server.dsn, schema=postgres_schema, shared=True, name="one")
    store.open(1_000_000, lambda: None)
    store.sharing.claim(range(1_024))
    states = {"late": StoredState("late", next_us=1_000_000), "far": StoredState("far", next_us=2**52)}
    store.commit(Batch(jobs={id: StoredJob(id, "t", "@every 1m") for id in states}, states=states))
    with connect(postgres_server.dsn, autocommit=True) as hand:  # however long the test takes
        hand.execute(f"UPDATE {postgres_schema}.lease SET until = now() + interval '1h'")
    yield store
    store.close()


def run(*words):
    return CliRunner().invoke(cli, ["audit", *words])


def test_it_says_what_it_found(store, url):
    """Exit code 1: something was wrong, or may be."""
    found = run(url, "--wait", "1ms")
    assert found.exit_code == 1, found.output
    assert found.stdout.splitlines() == [
        "2 jobs audited; 1 node has the store",
        "left: job 'late' was late, due 1970-01-01T00:00:01.000Z; its node was asked, and has not answered",
        "0 mended, 1 left",
    ]


def test_where_nothing_is_wrong_it_says_that(store, url):
    """Exit code 0."""
    store.commit(Batch(states={"late": StoredState("late", next_us=2**52)}))
    found = run(url)
    assert (found.exit_code, found.stdout.splitlines()[-1]) == (0, "all is well")


def test_programs_read_it_as_json(store, url, tmp_path):
    """One object, of the store of a file as well."""
    file = tmp_path / "uptime.toml"
    file.write_text(FILE.format(url=url))
    found = run(str(file), "--wait", "1ms", "--json")
    assert found.exit_code == 1, found.output
    said = json.loads(found.stdout)
    assert (said["jobs"], said["agents"], said["mended"], said["left"]) == (2, 1, 0, 1)
    assert said["findings"] == [
        {"job": "late", "doubt": "late", "due": "1970-01-01T00:00:01.000Z", "became": "not_answered", "reason": None},
    ]


def test_a_queue_that_is_not_there_is_said_so(store, url):
    """Nothing was audited in it: exit code 2."""
    found = run(url, "--queue", "unix:/nowhere")
    assert (found.exit_code, "/nowhere" in found.stderr) == (2, True)


def test_jobs_that_stand_in_a_queue_need_its_address(store, url, postgres_server, postgres_schema):
    """It is asked for."""
    with connect(postgres_server.dsn, autocommit=True) as hand:
        hand.execute(
            f"INSERT INTO {postgres_schema}.execution (job_id, due_us, status, schedule, made_us)"
            " VALUES ('far', 1, 'scheduled', '@every 1m', 1)"
        )
    found = run(url)
    assert (found.exit_code, "--queue ADDRESS" in found.stderr) == (2, True)


def test_a_file_is_for_one_process(tmp_path):
    """And it is said so, with what to do."""
    found = run(f"sqlite:///{tmp_path}/uptime.db")
    assert found.exit_code == 2
    assert "is for one process, and its agent audits it: name a store in PostgreSQL" in found.stderr
