"""The doctor says of each probe whether it works on a target, what it cost, or what is missing."""

import anyio
import pytest

import postgres_versions
from kit import PATIENCE
from postgres_fleets import ours_on, probe, rows_on, server_of
from timerqueue import SystemClock
from uptime_agent.checks import Resolver
from uptime_agent.libpq import Server
from uptime_agent.postgres import CATALOGUE, PostgresTarget, examine
from uptime_agent.postgres.contract import Scope


async def diagnosed(server, *probes):
    """Examine a server; return what is said of each probe."""
    target = PostgresTarget(name="main", server=server)
    with anyio.fail_after(PATIENCE):
        return {each.probe: each for each in await examine(target, probes, Resolver(), SystemClock())}


async def test_a_probe_that_works_says_what_it_cost(postgres_of):
    """In rows and milliseconds; and nothing of ours stays on the server."""
    found = await diagnosed(server_of(postgres_of(18)), probe(), probe("each", scope=Scope.DATABASE))
    assert all(each.is_well for each in found.values())
    assert str(found["one"]).startswith("one: works: 1 rows, ")
    assert ours_on(postgres_of(18)) == 0


async def test_what_is_missing_is_named(postgres_of):
    """The grant, the extension, and the setting that is off."""
    server = postgres_of(18)
    if not rows_on(server, "SELECT 1 FROM pg_roles WHERE rolname = 'patient'"):
        rows_on(server, "CREATE ROLE patient LOGIN")
    found = await diagnosed(
        server_of(server, user="patient"),
        probe("files", "SELECT count(*) FROM pg_ls_waldir()", grants="pg_monitor"),
        probe("buffers", extension="pg_buffercache"),
        probe("pages", setting="full_page_writes"),
    )
    assert found["files"].text.startswith("permission: ")
    assert found["files"].text.endswith("it needs pg_monitor")
    assert found["buffers"].text.endswith("CREATE EXTENSION pg_buffercache")
    assert "full_page_writes is off" in found["pages"].text
    assert not any(each.is_well for each in found.values())


async def test_a_setting_that_must_have_a_value_is_named_until_it_has_it(postgres_of):
    """A server counts no calls of functions by itself. As an answer without rows, that looked well."""
    server = postgres_of(18)
    if not rows_on(server, "SELECT 1 FROM pg_roles WHERE rolname = 'counting'"):
        rows_on(server, "CREATE ROLE counting SUPERUSER LOGIN")
    missing = "; but track_functions is none, so there is little to see: it needs track_functions = pl or all"
    for value, told in (("none", missing), ("pl", ""), ("all", "")):
        rows_on(server, f"ALTER ROLE counting SET track_functions = '{value}'")
        found = (await diagnosed(server_of(server, user="counting"), CATALOGUE["functions"]))["functions"]
        assert (found.text.partition(" every 600 s")[2], found.is_well) == (told, not told)


@pytest.mark.parametrize("name", ["statements", "query_texts"])
async def test_a_library_that_is_loaded_is_not_missed(postgres_of, name):
    """Among others, however it is written."""
    server = postgres_of(18)
    loaded = rows_on(server, "SHOW shared_preload_libraries")[0][0]
    assert "pg_stat_statements" in loaded
    rows_on(server, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    found = (await diagnosed(server_of(server), CATALOGUE[name]))[name]
    assert (found.is_well, "shared_preload_libraries" in found.text) == (True, False)


@pytest.mark.parametrize(
    ("value", "is_told"),
    [("", True), ("auto_explain", True), ("auto_explain, pg_stat_statements", False), ('"$libdir/pg_one"', True)],
)
async def test_a_library_is_looked_for_among_all(postgres_of, value, is_told):
    """And an empty list is told as empty."""
    setting = "local.libraries = pg_stat_statements"
    server = postgres_of(18)
    if not rows_on(server, "SELECT 1 FROM pg_roles WHERE rolname = 'loading'"):
        rows_on(server, "CREATE ROLE loading LOGIN")
    rows_on(server, f"ALTER ROLE loading SET local.libraries = '{value}'")
    found = (await diagnosed(server_of(server, user="loading"), probe("one", setting=setting)))["one"]
    told = f"; but local.libraries is {value or 'empty'}, so there is little to see: it needs {setting}"
    assert (found.text.endswith(told), found.is_well) == (is_told, not is_told)


async def test_a_library_that_is_not_loaded_is_named():
    """Its extension alone answers nothing."""
    with postgres_versions.server(18, shared_preload_libraries="") as fresh:
        rows_on(fresh, "CREATE EXTENSION pg_stat_statements")
        found = await diagnosed(server_of(fresh), CATALOGUE["statements"], CATALOGUE["query_texts"])
    assert ["shared_preload_libraries" in each.text for each in found.values()] == [True, True]
    assert not any(each.is_well for each in found.values())


async def test_a_server_that_is_away_is_told_as_such(postgres_of):
    """Each probe says why."""
    found = await diagnosed(Server(host=str(postgres_of(18).folder), port=1, user="postgres"), probe())
    assert not found["one"].is_well
    assert "connect" in found["one"].text


async def test_the_command_examines_a_target_of_the_file(ran, postgres_of, tmp_path):
    """Every probe of the catalogue has its line."""
    file = tmp_path / "fleet.toml"
    file.write_text(f'[[postgres]]\nname = "main"\nhost = "{postgres_of(18).folder}"\nuser = "postgres"\n')
    _, out, error = await ran("doctor", "main", str(file))
    lines = out.splitlines()
    assert len(lines) >= 34, error
    assert next(line for line in lines if line.startswith("activity: ")).startswith("activity: works: ")
    code, _, error = await ran("doctor", "other", str(file))
    assert (code, "but: main" in error) == (2, True)
