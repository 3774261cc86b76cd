"""[[postgres]] in a configuration: read strictly, and probed by `timerqueue run`."""

import sqlite3
from contextlib import closing

import pytest

from kit import until
from scheduler.agent.config import read_config
from scheduler.agent.postgres import Choice
from scheduler.agent.toml import ConfigError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def anyio_backend():
    """Run on one backend: the agent is a process of its own, whatever loop the test has."""
    return "asyncio"


@pytest.fixture
def written(tmp_path):
    """Write a configuration and read it."""

    def write(text, **environment):
        file = tmp_path / "fleet.toml"
        file.write_text(text)
        return read_config(file, environment)

    return write


def test_a_server_has_parts_or_a_dsn_and_its_password_stands_elsewhere(written, tmp_path):
    """Neither is shown: a password is a secret of the configuration."""
    (tmp_path / "password").write_text("from a file\n")
    first, second = (
        config := written(
            """
            [[postgres]]
            name = "one"
            dsn = { env = "ONE" }
            [[postgres]]
            host = "db.example"
            user = "watcher"
            password = { file = "password" }
            databases = ["shop_*"]
            limit = 2
            budget = "2 %"
            probes = { activity = "30s", locks = false }
            """,
            ONE="postgresql://me:secret@db1.example:6000/app?sslmode=require",
        )
    ).postgres
    assert (first.server.host, first.server.port, first.server.database) == ("db1.example", 6000, "app")
    assert first.server.options == {"sslmode": "require"}
    assert (second.name, second.server.password) == ("watcher@db.example:5432", "from a file")
    assert (second.include, second.limit, second.budget) == (("shop_*",), 2, 0.02)
    assert second.probes == {"activity": Choice(every=30.0), "locks": Choice(is_enabled=False)}
    assert {"secret", "from a file"} <= config.secrets
    assert "secret" not in repr(first)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('probes = { activty = "30s" }', "there is no probe 'activty', did you mean 'activity'?"),
        ('probes = { activity = "10ms" }', "an interval of at least 1 s"),
        ("limit = 0", "a whole number from 1 to 100"),
        ("budget = 2", 'a share of one core such as "1 %" or 0.01'),
        ('password = { env = "NONE" }', "expected the environment variable NONE"),
        ('dsn = "postgresql://a,b/x"', "host: there is a dsn too: keep one of them"),
        ('databses = ["x"]', "unknown key 'databses' in [[postgres]] number 1, did you mean 'databases'?"),
    ],
)
def test_a_mistake_is_told_with_its_line(written, line, told):
    """Nothing is guessed, and nothing starts."""
    with pytest.raises(ConfigError) as raised:
        written(f'[[postgres]]\nhost = "localhost"\n{line}\n')
    assert told in str(raised.value)
    assert (":2:" if line.startswith("dsn") else ":3:") in str(raised.value)


async def test_the_agent_probes_what_its_file_names(started, postgres_of, tmp_path):
    """Every probe of the catalogue that is on has an outcome, and rows lie in a file beside that of the checks."""
    file = tmp_path / "fleet.toml"
    server = postgres_of(18)
    file.write_text(f'[[postgres]]\nname = "main"\nhost = "{server.folder}"\nuser = "postgres"\nbudget = 1.0\n')
    metrics = tmp_path / "fleet.metrics.db"

    def names():
        if not metrics.exists():
            return set()
        with closing(sqlite3.connect(f"file:{metrics}?mode=ro", uri=True)) as connection, connection:
            try:
                return {name for (name,) in connection.execute("SELECT DISTINCT probe FROM series")}
            except sqlite3.OperationalError:
                return set()

    async with started("run", str(file), "--plain") as process:
        await until(lambda: len(names()) >= 30)
        process.process.terminate()
        assert await process.end() == 0
