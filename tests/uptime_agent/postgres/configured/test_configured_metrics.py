"""Metrics in PostgreSQL, as a file names them: a process, a server for its metrics, and what becomes of them."""

import json
from contextlib import closing
from itertools import pairwise

import psycopg
import pytest

import postgres_versions
from kit import until

pytestmark = pytest.mark.slow

EACH_SECOND = ("activity", "wal", "database")


@pytest.fixture(scope="module")
def anyio_backend():
    """Run on one backend: the agent is a process of its own, whatever loop the test has."""
    return "asyncio"


@pytest.fixture
def keeper():
    """Make a server for metrics that a test may trouble, not started yet."""
    try:
        with closing(postgres_versions.server(16, synchronous_commit="on")) as server:
            yield server
    except postgres_versions.Missing as error:
        pytest.skip(str(error))


class Kept:
    """What a server has of metrics, asked as anybody may."""

    def __init__(self, server):
        self.server = server

    def ask(self, question):
        """Return rows, or none while it is away or has no tables yet."""
        try:
            with psycopg.connect(self.server.dsn, connect_timeout=2) as connection:
                return connection.execute(question).fetchall()
        except (psycopg.OperationalError, psycopg.errors.UndefinedTable):
            return []

    def dues(self, probe):
        """Return the instants of a probe's records, in the order in which they were written."""
        found = self.ask(
            f"SELECT extract(epoch FROM due)::float8 FROM timerqueue_metrics.outcomes WHERE probe = '{probe}'"
            " ORDER BY (SELECT 1)"
        )
        return [due for (due,) in found]

    def count(self):
        """Return how many records there are."""
        return sum(len(self.dues(probe)) for probe in EACH_SECOND)


@pytest.fixture
def kept(keeper):
    return Kept(keeper)


@pytest.fixture
def file(tmp_path, postgres_of, keeper):
    """Write a file with one server whose probes run every second, and its metrics on another."""
    found = tmp_path / "fleet.toml"
    probes = ", ".join(f'{name} = "1s"' for name in EACH_SECOND)
    found.write_text(
        f"""
        [metrics]
        store = "postgresql:///postgres?host={keeper.folder}&user=postgres"
        [[postgres]]
        name = "main"
        host = "{postgres_of(18).folder}"
        user = "postgres"
        budget = 1.0
        databases = ["postgres"]
        probes = {{ {probes} }}
        """
    )
    return found


def spooled(file):
    """Return how many bytes wait on disk."""
    return sum(path.stat().st_size for path in file.with_suffix(".metrics.spool").glob("*.spool"))


async def ended(process):
    """End the agent, and return what it says of its metrics."""
    process.process.terminate()
    assert await process.end() == 0
    said = [json.loads(line) for line in process.lines]
    (told,) = [each["text"] for each in said if each["event"] == "notice" and "metrics at the end" in each["text"]]
    return told


def check_records(kept):
    """Each tick of each probe has one record, written in order: none is missing, none came twice."""
    for probe in EACH_SECOND:
        dues = kept.dues(probe)
        assert dues == sorted(dues)
        assert [round(after - before, 6) for before, after in pairwise(dues)] == [1.0] * (len(dues) - 1)


async def test_what_probes_find_lies_in_the_tables_of_the_server_that_the_file_names(started, file, keeper, kept):
    """A view for each probe, partitions made ahead; and at the end nothing is left over."""
    keeper.start()
    async with started("run", str(file), "--json") as process:
        await until(lambda: kept.count() > 6 and len(kept.ask("SELECT FROM timerqueue_metrics.wal")) > 2)
        told = await ended(process)
    assert "in the spool: 0 samples with 0 rows, 0 outcomes; dropped: 0 samples" in told
    ((target, count),) = kept.ask("SELECT sample_target, count(*) FROM timerqueue_metrics.wal GROUP BY 1")
    assert (target, count) == ("main", len(kept.dues("wal")))
    weeks = kept.ask(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'probe_wal_w%'"
        " AND relnamespace = 'timerqueue_metrics'::regnamespace"
    )
    assert len(weeks) == 3
    check_records(kept)
    assert spooled(file) == 0


async def test_while_the_store_is_killed_the_spool_takes_over_and_is_replayed_once(started, file, keeper, kept):
    """In order, and with a record for each tick of the time between."""
    keeper.start()
    async with started("run", str(file), "--json") as process:
        await until(lambda: kept.count() > 3)
        keeper.stop("immediate")
        await until(lambda: spooled(file) > 3_000)
        keeper.start()
        await until(lambda: kept.count() > 3 and not spooled(file))
        before = kept.count()
        await until(lambda: kept.count() > before)
        await ended(process)
    check_records(kept)


async def test_a_store_that_is_down_at_the_start_gets_everything_later(started, file, keeper, kept):
    """Also what an agent before this one has left in the spool, with which it ended."""
    async with started("run", str(file), "--json") as process:
        await until(lambda: spooled(file) > 2_000)
        told = await ended(process)
    assert "stored: 0 samples with 0 rows, 0 outcomes" in told
    keeper.start()
    async with started("run", str(file), "--json") as process:
        await until(lambda: kept.count() > 6 and not spooled(file))
        await ended(process)
    for probe in EACH_SECOND:
        dues = kept.dues(probe)
        assert dues == sorted(set(dues))
