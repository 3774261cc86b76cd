"""`timerqueue run` follows the PostgreSQL servers of its file."""

import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

from kit import until
from postgres_fleets import ours_on, rows_on
from uptime_agent.cli import cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def anyio_backend():
    """Run on one backend: the agent is a process of its own, whatever loop the test has."""
    return "asyncio"


class File:
    """A configuration, and what the agent has stored by it."""

    def __init__(self, folder):
        self.path = folder / "fleet.toml"
        self.metrics = folder / "fleet.metrics.db"

    def write(self, *servers):
        """Write it as an editor does: the whole of it, in the place of the old one."""
        beside = self.path.with_suffix(".new")
        beside.write_text("\n".join(servers))
        beside.replace(self.path)

    def probes_of(self, target):
        """Return the probes that have outcomes."""
        if not self.metrics.exists():
            return set()
        with closing(sqlite3.connect(f"file:{self.metrics}?mode=ro", uri=True)) as connection, connection:
            try:
                asked = "SELECT DISTINCT probe FROM series WHERE target = ?"
                return {name for (name,) in connection.execute(asked, (target,))}
            except sqlite3.OperationalError:
                return set()


@pytest.fixture
def file(tmp_path):
    """Make a configuration."""
    return File(tmp_path)


def server(postgres, name, *more):
    """Write one server of a configuration. The first starts of "replica" come soon, as a hash of its name decides."""
    return "\n".join(
        ["[[postgres]]", f'name = "{name}"', f'host = "{postgres.folder}"', 'user = "postgres"', "budget = 1.0", *more]
    )


async def test_a_server_that_is_added_to_the_file_is_probed_and_one_that_is_removed_no_more(
    started, postgres_of, file, free_port
):
    """The agent has begun with a check alone. A file that is wrong changes nothing, and the agent says so."""
    postgres = postgres_of(18)
    check = f'[[check]]\nname = "a"\nurl = "tcp://127.0.0.1:{free_port}"\ninterval = "1h"\nstart = "now"\n'
    file.write(check)
    async with started("run", str(file.path), "--plain") as agent:
        await agent.line_with("DOWN")
        file.write(check, server(postgres, "replica", "probes = { locks = false }"))
        await agent.line_with("PostgreSQL: 1 added (replica)")
        await until(lambda: "activity" in file.probes_of("replica"))
        file.write(check, server(postgres, "replica", "limit = 0"))
        await agent.line_with("a whole number from 1 to 100, found the number 0")
        assert ours_on(postgres)
        file.write(check, server(postgres, "replica"))
        await agent.line_with("PostgreSQL: 1 changed (replica)")
        await until(lambda: "locks" in file.probes_of("replica"))
        file.write(check)
        await agent.line_with("PostgreSQL: 1 removed (replica)")
        await until(lambda: not ours_on(postgres))
        agent.process.terminate()
        assert await agent.end() == 0


@pytest.fixture
def tables(postgres_of):
    """Return a file's [probes] that names tables, in a schema of their own, which is gone after the test."""
    postgres = postgres_of(18)
    schema = "tables_of_a_test"
    yield f'[probes]\nfrom = "host={postgres.folder} user=postgres"\nschema = "{schema}"\nactivity = "2s"\n'
    rows_on(postgres, f"DROP SCHEMA IF EXISTS {schema} CASCADE")


async def test_servers_of_tables_are_probed_while_the_agent_runs_and_explained(started, ran, postgres_of, file, tables):
    """The tables are made by a command. A row is followed at once. A file that names none has their servers left."""
    postgres = postgres_of(18)
    file.write(tables)
    code, out, error = await ran("tables", str(file.path))
    assert (code, out.split(": ")[-1]) == (0, "made\n"), error
    assert (await ran("tables", str(file.path)))[1].endswith("they are there already\n")
    async with started("run", str(file.path), "--plain") as agent:
        await until(file.path.with_suffix(".probes.json").exists)
        rows_on(
            postgres,
            f"""INSERT INTO tables_of_a_test.servers (name, dsn, budget)
                VALUES ('replica', 'host={postgres.folder} user=postgres', 1);
            INSERT INTO tables_of_a_test.probe_configs (probe, interval) VALUES ('locks', '7 s')""",
        )
        await agent.line_with("the tables in tables_of_a_test", "1 added (replica)")
        await until(lambda: "activity" in file.probes_of("replica"))
        code, out, error = await ran("explain", "replica", str(file.path))
        assert "scopes from the innermost out: server, global, file, built-in" in out, error
        rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[2:]}
        assert rows["locks"][2:4] == ["7s", "global"]
        assert rows["activity"][2:4] == ["2s", "file"]
        rows_on(postgres, "UPDATE tables_of_a_test.servers SET is_enabled = false")
        await agent.line_with("1 removed (replica)")
        await until(lambda: ours_on(postgres) == 1)  # the connection that listens
        rows_on(postgres, "UPDATE tables_of_a_test.servers SET is_enabled = true")
        await agent.line_with("1 added (replica)")
        file.write(server(postgres, "north", "enabled = false"))
        await agent.line_with("PostgreSQL: 1 removed (replica)")
        await until(lambda: not ours_on(postgres))
        agent.process.terminate()
        assert await agent.end() == 0


def test_what_cannot_be_read_is_told_by_every_command(file, tables):
    """With the advice to make the tables; once counts it as a failure."""
    file.write(tables)
    run = CliRunner().invoke
    for command in (["explain", "replica"], ["doctor", "replica"]):
        done = run(cli, [*command, str(file.path)])
        assert (done.exit_code, "make them by `timerqueue tables FILE`" in done.output) == (2, True)
    done = run(cli, ["run", "--once", "--plain", str(file.path)])
    assert (done.exit_code, "make them by `timerqueue tables FILE`" in done.output) == (1, True)
    done = run(cli, ["tables", "--sql", str(file.path)])
    assert (done.exit_code, done.output.splitlines()[0]) == (0, 'CREATE SCHEMA IF NOT EXISTS "tables_of_a_test";')
    file.write('[[postgres]]\nhost = "localhost"\n')
    done = run(cli, ["tables", str(file.path)])
    assert (done.exit_code, "[probes] says nothing of tables: add from =" in done.output) == (2, True)
