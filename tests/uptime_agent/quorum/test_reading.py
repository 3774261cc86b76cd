"""What a file says of agents that share a store and of those that check a target, and what is said of mistakes."""

import pytest

from scheduler.stores.postgres import PostgresStore
from uptime_agent.config.config import parse_config
from uptime_agent.quorum import FleetPlan, Quorum
from uptime_agent.toml import ConfigError

SERVER = 'store = "postgresql://me@localhost/up"\n'
CHECK = '[[check]]\nurl = "tcp://localhost:1"\n'


def read(text, **environment):
    """Read a file."""
    return parse_config(text, "up.toml", environment)


def mistakes(text, **environment):
    """Say what is wrong in a file."""
    with pytest.raises(ConfigError) as caught:
        read(text, **environment)
    return str(caught.value)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("", None),
        ('where = "region=eu, zone=a"', Quorum(where={"region": "eu", "zone": "a"})),
        ("agents = 3", Quorum(agents=3)),
        ('agents = "all"\nvotes = 2\nmin_agents = 4', Quorum(agents=None, votes=2, least=4)),
        ('agents = 2\napart = "rack"', Quorum(agents=2, apart="rack")),
    ],
)
def test_a_check_says_which_agents_make_it(keys, expected):
    """Without any of the keys it is the one that has the target."""
    (target,) = read(f"{SERVER}[fleet]\n{CHECK}{keys}").targets
    assert target.quorum == expected


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("agents = 0", '"all" or a whole number from 1 to 100'),
        ("agents = 2\nvotes = 3", "votes: more than there are: agents = 2"),
        ("votes = 2", "votes: more than there are: agents = 1 (the default)"),
        ("agents = 2\nmin_agents = 3", "min_agents: more than there are: agents = 2"),
        ('where = "eu"', 'labels such as "region=eu"'),
        ("where = 1", 'labels such as "region=eu"'),
        ('agents = 2\nretry_interval = "5s"', "retry_interval: agents that vote check at the same instants"),
        ('agents = 2\nfailing_interval = "5s"', "failing_interval: agents that vote check at the same instants"),
    ],
)
def test_a_mistake_is_told(keys, said):
    """With what to write in its place."""
    assert said in mistakes(f"{SERVER}[fleet]\n{CHECK}{keys}")


def test_only_agents_that_share_decide_together():
    """Alone there is nobody to ask."""
    assert "agents: is for agents that share a store: add [fleet]" in mistakes(f"{SERVER}{CHECK}agents = 2")


@pytest.mark.parametrize("store", ["", 'store = "memory"\n', 'store = "sqlite:///up.db"\n'])
def test_agents_share_a_store_in_postgresql(store):
    """A file is for one process, and so is its memory."""
    assert "[fleet]: agents share a store in PostgreSQL" in mistakes(f"{store}[fleet]\n{CHECK}")


@pytest.mark.parametrize("store", ['"postgresq://up/db"', "7", '{ env = "UP" }'])
def test_a_store_that_makes_no_sense_is_one_problem(store):
    """Nothing is said of the default, which nobody has asked for."""
    (line,) = mistakes(f"store = {store}\n[fleet]\n{CHECK}").splitlines()
    assert line.startswith("up.toml:1: store: ")


def test_what_an_agent_is_among_others_stands_in_the_file_or_in_the_environment():
    """The file may be the same on all machines."""
    text = SERVER + '[fleet]\nname = "one"\nlabels = { region = "eu" }\n' + CHECK
    assert read(text).store.fleet == FleetPlan(name="one", labels={"region": "eu"})
    there = {"TIMERQUEUE_FLEET_NAME": "two", "TIMERQUEUE_FLEET_LABELS": "region=us,zone=b"}
    assert read(text, **there).store.fleet == FleetPlan(name="two", labels={"region": "us", "zone": "b"})
    assert "TIMERQUEUE_FLEET_LABELS: " in mistakes(text, TIMERQUEUE_FLEET_LABELS="eu")
    assert 'labels such as { region = "eu"' in mistakes(SERVER + "[fleet]\nlabels = { zone = 1 }\n" + CHECK)


def test_the_store_of_agents_that_share_is_opened_as_they_do():
    """Without [fleet] it is for one agent alone."""
    assert read(SERVER + CHECK).store.fleet is None
    shared = read(f"{SERVER}[fleet]\n{CHECK}").store.make()
    assert isinstance(shared, PostgresStore)
    assert shared.sharing is not None


def test_what_targets_have_to_do_with_one_another_is_shared_too():
    """It was refused."""
    more = '[[check]]\nurl = "tcp://localhost:2"\ndepends_on = ["all"]\n[[group]]\nname = "all"\n'
    config = read(f'{SERVER}[fleet]\n{CHECK}{more}members = ["tcp://localhost:1"]\n')
    assert config.groups[0].name == config.targets[1].depends_on[0] == "all"
