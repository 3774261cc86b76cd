"""Scopes of probes: each value comes from the innermost scope that sets it, and nothing is copied."""

import attrs
import pytest
from hypothesis import given, strategies as st

from kit import until
from postgres_fleets import MemoryMetrics, fleet_on, probe
from uptime_agent.config.config import parse_config
from uptime_agent.libpq import Server
from uptime_agent.postgres import CATALOGUE, Choice, Layer, PostgresTarget, origins
from uptime_agent.postgres.contract import Failure
from uptime_agent.toml import ConfigError

some = st.none() | st.floats(1, 1e6)
choices = st.builds(Choice, st.none() | st.booleans(), some, some, some)
layers = st.lists(st.none() | choices, max_size=5)


@given(layers)
def test_each_value_comes_from_the_innermost_scope_that_sets_it(said):
    """Without any it is what the probe says of itself; scopes that say nothing are as if they were not there."""
    one = probe("one")
    scopes = [Layer(f"scope {at}", {} if each is None else {"one": each}) for at, each in enumerate(said)]
    found = origins(one, scopes, 28.0)
    for key, built_in in (("is_enabled", True), ("every", one.every), ("timeout", one.timeout), ("retention", 28.0)):
        setting = [(getattr(each, key), at) for at, each in enumerate(said) if each and getattr(each, key) is not None]
        expected = (setting[0][0], f"scope {setting[0][1]}") if setting else (built_in, "built-in")
        assert (found[key].value, found[key].scope) == expected


def test_a_scope_that_is_disabled_disables_what_lies_within_it_unless_that_says_otherwise():
    """The disabled parent of the reference: inherited as disabled, without a copy that would outlive it."""
    everywhere, nowhere = Layer("file", {"locks": Choice(is_enabled=False)}), Layer("file")
    target = PostgresTarget(name="one", server=Server(), inherited=(everywhere,))
    assert not target.plan(CATALOGUE["locks"]).is_enabled
    own = attrs.evolve(target, probes={"locks": Choice(is_enabled=True)})
    assert own.plan(CATALOGUE["locks"]).is_enabled
    assert attrs.evolve(target, inherited=(nowhere,)).plan(CATALOGUE["locks"]).is_enabled


def servers(text):
    """Read a configuration."""
    return parse_config(text, "fleet.toml", {}).postgres


def test_probes_of_the_file_hold_for_all_servers_that_do_not_say_otherwise():
    """Each value by itself: a server that has its own interval keeps the retention of all."""
    one, two = servers(
        """
        [probes]
        activity = { interval = "5s", age = "3d" }
        locks = false
        [[postgres]]
        host = "one"
        probes = { activity = "20s", locks = { timeout = "2s" } }
        [[postgres]]
        host = "two"
        """
    )
    assert [each.plan(CATALOGUE["activity"]).every for each in (one, two)] == [20.0, 5.0]
    assert [each.retention for each in (one, two)] == [{"activity": 259_200.0}] * 2
    assert not one.plan(CATALOGUE["locks"]).is_enabled
    assert one.plan(CATALOGUE["locks"]).probe.timeout == 2.0


def test_samples_are_kept_as_the_scopes_of_their_server_say():
    """Each server by itself, also of a probe that is off: what was stored before goes as well."""
    config = parse_config(
        """
        [metrics.probes]
        wal = "7d"
        [probes]
        activity = { age = "3d" }
        [[postgres]]
        host = "one"
        probes = { activity = { enabled = false, age = "1d" }, locks = false }
        [[postgres]]
        host = "two"
        """,
        "fleet.toml",
        {},
    )
    kept = config.metrics.retention(config.store, config.postgres)
    days = {
        (server, probe): kept.keep(f"{server}:5432", probe) / 86_400
        for server in ("one", "two")
        for probe in ("activity", "wal", "locks")
    }
    assert days == {
        ("one", "activity"): 1,
        ("two", "activity"): 3,
        ("one", "wal"): 7,
        ("two", "wal"): 7,
        ("one", "locks"): 28,
        ("two", "locks"): 28,
    }


def test_an_interval_turns_a_probe_on_that_is_off_further_out():
    """Who sets one wants it to run; enabled = false beside it says no."""
    one, two = servers(
        """
        [probes]
        locks = false
        [[postgres]]
        host = "one"
        probes = { locks = "20s" }
        [[postgres]]
        host = "two"
        probes = { locks = { interval = "20s", enabled = false } }
        """
    )
    assert [each.plan(CATALOGUE["locks"]).is_enabled for each in (one, two)] == [True, False]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("activity = []", 'true, false, an interval such as "30s", or { interval = "30s", age = "90d" }'),
        ('activity = { every = "1s" }', "unknown key 'every' in [activity], did you mean 'interval'?"),
        ('activity = { timeout = "10m" }', "a timeout of at most 300 s"),
        ('activity = { enabled = "no" }', "true or false"),
        ('activity = { interval = "1ms" }', "an interval of at least 1 s"),
        ('activity = "1ms"', "an interval of at least 1 s"),
        ('actvity = "5s"', "there is no probe 'actvity', did you mean 'activity'?"),
    ],
)
def test_what_a_scope_says_is_read_strictly(line, told):
    """The line is told, and what would do."""
    with pytest.raises(ConfigError) as raised:
        servers(f'[probes]\n{line}\n[[postgres]]\nhost = "one"\n')
    assert told in str(raised.value)
    assert str(raised.value).startswith("fleet.toml:2:")


async def test_another_timeout_holds_from_the_next_run_on(postgres_of):
    """It goes to the server with each query."""
    store = MemoryMetrics()
    async with fleet_on(postgres_of(18), probe("one", "SELECT 1 FROM pg_sleep(0.02)"), store=store) as fleet:
        await until(lambda: store.samples)
        main = fleet.members["main"].target
        fleet.follow([attrs.evolve(main, probes={"one": Choice(timeout=0.01)})])
        await until(lambda: [each for each in store.outcomes if each.failure is Failure.TIMEOUT])
