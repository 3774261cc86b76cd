"""`timerqueue run` follows the PostgreSQL servers of its file."""

import sqlite3
from contextlib import closing

import pytest

from kit import until
from postgres_fleets import ours_on

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
