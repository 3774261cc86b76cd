"""`timerqueue fleet` and `timerqueue doctor` say what a failover of the store's server would lose."""

import json

import pytest
from click.testing import CliRunner
from psycopg import connect

from kit import no_hint, wait_until
from postgres_pair import Pair
from scheduler.stores import Standby, StoreServer
from scheduler.stores.postgres import PostgresStore
from uptime_agent.cli import cli
from uptime_agent.show import risks

STATES = "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
LOSES = "a failover loses the last commits, and ticks may run twice"


@pytest.fixture(scope="module")
def pair():
    """A server that has a store, and a standby."""
    with Pair() as pair, connect(pair.primary.dsn, autocommit=True) as hand:
        hand.execute("CREATE ROLE plain LOGIN")
        store = PostgresStore(pair.primary.dsn, shared=True)
        store.open(0, no_hint)
        hand.execute("GRANT USAGE ON SCHEMA timerqueue TO plain")
        hand.execute("GRANT SELECT ON ALL TABLES IN SCHEMA timerqueue TO plain")
        yield pair
        store.close()


@pytest.fixture
def told(pair):
    """Tell the primary which standbys its commits wait for, and how. Afterwards for none."""

    def told(state, names="", commit="on"):
        with connect(pair.primary.dsn, autocommit=True) as hand:
            hand.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
            hand.execute(f"ALTER SYSTEM SET synchronous_commit = '{commit}'")
            hand.execute("SELECT pg_reload_conf()")
            wait_until(lambda: hand.execute(STATES).fetchall() == [(state,)])

    yield told
    told("async")


def url(server, role="postgres"):
    return f"postgresql://{role}@/postgres?host={server.folder}&schema=timerqueue"


CHECK = '[[check]]\nname = "none"\nurl = "tcp://127.0.0.1:1"\n'


def run(*words):
    return CliRunner().invoke(cli, list(words))


def doctor(folder, server, role="postgres"):
    file = folder / "agent.toml"
    file.write_text(f'store = "{url(server, role)}"\n[fleet]\nname = "one"\n{CHECK}')
    file.chmod(0o600)
    return run("doctor", str(file))


def test_a_standby_that_commits_do_not_wait_for_is_told(pair, told, tmp_path):
    """The fleet goes on, but what it promises does not hold over a failover."""
    told("async")
    line = f"standby standby: commits do not wait for it (synchronous_standby_names): {LOSES}"
    assert run("fleet", url(pair.primary)).stdout.splitlines()[-1] == line
    server = json.loads(run("fleet", url(pair.primary), "--json").stdout.splitlines()[-1])["server"]
    assert server == {
        "is_standby": False,
        "synchronous_commit": "on",
        "standbys": [{"name": "standby", "state": "async"}],
        "is_safe": False,
    }
    found = doctor(tmp_path, pair.primary)
    lines = ["server: it takes commits", "standbys: standby (async)", "synchronous_commit: on", line]
    assert (found.exit_code, found.stdout.splitlines()) == (1, lines)


def test_a_standby_that_commits_wait_for_is_well(pair, told, tmp_path):
    """Nothing is to be said of it."""
    told("quorum", names="ANY 1 (standby)")
    assert "standby" not in run("fleet", url(pair.primary)).stdout
    found = doctor(tmp_path, pair.primary)
    lines = ["server: it takes commits", "standbys: standby (quorum)", "synchronous_commit: on"]
    assert (found.exit_code, found.stdout.splitlines()) == (0, lines)


def test_commits_that_wait_for_no_standby_are_told(pair, told, tmp_path):
    """Though there is one that they could wait for."""
    told("sync", names="standby", commit="local")
    line = f"synchronous_commit is local, so commits wait for no standby's disk: {LOSES}"
    assert run("fleet", url(pair.primary)).stdout.splitlines()[-1] == line
    found = doctor(tmp_path, pair.primary)
    assert (found.exit_code, found.stdout.splitlines()[-1]) == (1, line)


def test_a_server_whose_commits_are_off_is_well_for_ours_are_on(pair, told, tmp_path):
    """Our transactions turn it on."""
    told("sync", names="standby", commit="off")
    assert doctor(tmp_path, pair.primary).exit_code == 0


def test_a_role_that_may_not_see_standbys_is_told_what_it_lacks(pair, told, tmp_path):
    """That commits wait for none is seen without any right."""
    told("sync", names="standby")
    found = doctor(tmp_path, pair.primary, "plain")
    line = "standby standby: this role may not see whether commits wait for it: grant it pg_monitor"
    assert (found.exit_code, found.stdout.splitlines()[-1]) == (1, line)
    told("async")
    line = f"standby standby: commits do not wait for it (synchronous_standby_names): {LOSES}"
    assert run("fleet", url(pair.primary, "plain")).stdout.splitlines()[-1] == line


def test_a_server_that_is_a_standby_is_told(pair, tmp_path):
    """As where an address has not moved, or moved to the wrong one."""
    wait_until(lambda: run("fleet", url(pair.standby)).exit_code < 2)  # it has the tables
    line = "this server is a standby, which takes no commits: no node can work with it"
    assert run("fleet", url(pair.standby)).stdout.splitlines()[-1] == line
    found = doctor(tmp_path, pair.standby)
    assert (found.exit_code, found.stdout.splitlines()[0]) == (1, "server: a standby")
    assert found.stdout.splitlines()[-1] == line


def test_a_server_without_standbys_needs_to_wait_for_none():
    """There is nothing to fail over to."""
    assert StoreServer(is_standby=False, synchronous_commit="local").is_safe
    for state, is_safe in {"sync": True, "quorum": True, "potential": False, "async": False, None: False}.items():
        server = StoreServer(is_standby=False, synchronous_commit="remote_apply", standbys=(Standby("a", state),))
        assert server.is_safe is is_safe
        assert bool(list(risks(server))) is not is_safe


def test_the_doctor_names_what_it_cannot_look_at(tmp_path):
    """A file has no server, and one that is away is no defect of ours."""
    file = tmp_path / "agent.toml"
    file.write_text(f'store = "sqlite:///{tmp_path}/uptime.db"\n{CHECK}')
    found = run("doctor", str(file))
    assert (found.exit_code, "is for one process, and no server's: name a TARGET, too" in found.stderr) == (2, True)
    file.write_text(f'store = "postgresql://nobody@127.0.0.1:1/none"\n[fleet]\nname = "one"\n{CHECK}')
    found = run("doctor", str(file))
    assert (found.exit_code, "cannot use the store" in found.stderr) == (2, True)
    found = run("doctor", "a", "b", str(file))
    assert (found.exit_code, "give a TARGET and the FILE, or the FILE alone" in found.stderr) == (2, True)
