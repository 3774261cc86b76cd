"""`timerqueue explain TARGET FILE`: which scope gives which value."""

import json

import pytest

from uptime_agent.config.config import parse_config
from uptime_agent.postgres import CATALOGUE
from uptime_agent.probing import explained, explained_in_json, server_of

TEXT = """
[probes]
activity = "5s"
locks = { enabled = false, age = "3d" }
[[postgres]]
name = "orders"
host = "db.example"
probes = { wal = { timeout = "2s" }, locks = true }
"""


@pytest.fixture
def orders():
    """Read a configuration; return it with its server."""
    config = parse_config(TEXT, "fleet.toml", {})
    return server_of(config, "orders"), config


def test_each_value_has_its_scope_beside_it_in_80_columns(orders):
    """A line for each probe of the catalogue, and one that says which scopes there are."""
    first, _, head, *lines = explained(*orders)
    assert first == "orders (db.example:5432), scopes from the innermost out: server, file, built-in"
    assert head.split() == ["probe", "on", "interval", "timeout", "retention"]
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows.keys() == CATALOGUE.keys()
    assert rows["activity"] == ["yes", "file", "5s", "file", "5s", "built-in", "28d", "built-in"]
    assert rows["locks"] == ["yes", "server", "1m", "built-in", "5s", "built-in", "3d", "file"]
    assert rows["wal"][4:6] == ["2s", "server"]
    assert max(map(len, [head, *lines])) <= 80


def test_programs_get_an_object_for_each_probe(orders):
    """Lengths of time are seconds."""
    found = {each["probe"]: each for each in map(json.loads, explained_in_json(*orders))}
    assert found.keys() == CATALOGUE.keys()
    assert found["locks"]["on"] == {"value": True, "scope": "server"}
    assert found["locks"]["retention"] == {"value": 259_200.0, "scope": "file"}
    assert found["activity"]["interval"] == {"value": 5.0, "scope": "file"}


@pytest.mark.slow
async def test_the_command_prints_it_and_names_the_servers_that_there_are(ran, tmp_path):
    """A name that is wrong ends it with 2."""
    file = tmp_path / "fleet.toml"
    file.write_text(TEXT)
    code, out, _ = await ran("explain", "orders", str(file), "--json")
    assert (code, len(out.splitlines())) == (0, len(CATALOGUE))
    code, _, error = await ran("explain", "order", str(file))
    assert (code, error) == (2, "there is no [[postgres]] with the name 'order', but: orders\n")
