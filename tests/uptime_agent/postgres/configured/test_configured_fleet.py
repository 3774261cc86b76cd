"""[[postgres]] in a configuration: read strictly, and probed by `timerqueue run`."""

import re
import sqlite3
from contextlib import closing

import pytest

from kit import until
from uptime_agent.config import read_config
from uptime_agent.postgres import Choice
from uptime_agent.toml import ConfigError

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
    assert second.probes == {"activity": Choice(is_enabled=True, every=30.0), "locks": Choice(is_enabled=False)}
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


async def test_once_runs_each_probe_one_time_and_says_what_became_of_them(started, postgres_of, tmp_path):
    """Exit code 0 if none has failed: what does not concern this server was skipped, and that is no failure."""
    file = tmp_path / "fleet.toml"
    server = postgres_of(18)
    file.write_text(f'[[postgres]]\nname = "main"\nhost = "{server.folder}"\nuser = "postgres"\nlimit = 2\n')
    async with started("run", str(file), "--plain", "--once") as process:
        assert await process.end() == 0
    (line,) = (line for line in process.lines if "main: " in line)
    stored, skipped = (int(re.search(rf"([\d,]+) {kind}", line)[1]) for kind in ("stored", "skipped"))
    assert stored >= 30
    assert skipped >= 3
    assert "failed" not in line


async def test_once_stores_metrics_where_the_file_says(started, postgres_of, tmp_path):
    """Once is for cron, too: a store of their own is named so that they get there. No history comes with it."""
    file = tmp_path / "fleet.toml"
    server = f'[[postgres]]\nname = "main"\nhost = "{postgres_of(18).folder}"\nuser = "postgres"\n'
    file.write_text(f'{server}[metrics]\nstore = "sqlite:///m.db"\n')
    for _ in range(2):
        async with started("run", str(file), "--plain", "--once") as process:
            assert await process.end() == 0
    with closing(sqlite3.connect(f"file:{tmp_path / 'm.db'}?mode=ro", uri=True)) as connection:
        (probes,) = connection.execute("SELECT count(DISTINCT probe) FROM series").fetchone()
    assert probes >= 30
    assert not (tmp_path / "fleet.db").exists()


async def test_once_ends_with_1_where_a_probe_fails(started, postgres_of, tmp_path):
    """A server that nobody reaches, beside one that is well, and a line for each."""
    file = tmp_path / "fleet.toml"
    servers = f'host = "{postgres_of(18).folder}"', f'host = "{tmp_path}"\nprobes = {{ activity = "5s" }}'
    file.write_text(
        "".join(f'[[postgres]]\nname = "db{n}"\n{each}\nuser = "postgres"\n' for n, each in enumerate(servers))
    )
    async with started("run", str(file), "--plain", "--once") as process:
        assert await process.end() == 1
    assert any("db0: " in line and "failed" not in line for line in process.lines)
    assert any("db1: " in line and "failed" in line for line in process.lines)
