"""What it costs to keep metrics: rows by COPY beside rows by INSERT, and the replay of a spool: `pytest benchmarks`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from uptime_agent.postgres.contract import Column, Probe, Sample, Scope, Type
from uptime_agent.postgres.storage import (
    MetricWriter,
    ReadableStore,
    Retention,
    SampleBatch,
    Spool,
    SqliteMetrics,
    postgres_metrics,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "kit" / "servers"))
from postgres_server import PostgresServer

NAMES = ("schema", "name")
COLUMNS = (
    *(Column(name, Type.TEXT) for name in NAMES),
    *(Column(f"count_{number}", Type.BIGINT) for number in range(8)),
    Column("ratio", Type.DOUBLE),
    Column("seen", Type.TIMESTAMP),
)
TABLES = Probe(name="tables", purpose="a benchmark", scope=Scope.DATABASE, every=300.0, columns=COLUMNS)
ROWS = tuple(
    ("public", f"table_{n}", *(n * k for k in range(8)), n * 1.5, 1_767_225_600_000_000 + n) for n in range(300)
)
SAMPLES = 67
TOTAL = SAMPLES * len(ROWS)
"""Rows of a round, about 20,000."""
START = 1_767_225_600.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A PostgreSQL that syncs."""
    with PostgresServer(fsync=True) as server:
        yield server


@pytest.fixture(params=["postgres", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ReadableStore]:
    """Each kind of store, open, with the probe's table made."""
    kept = Retention()
    if request.param == "sqlite":
        made: ReadableStore = SqliteMetrics(tmp_path / "metrics.db", kept)
    else:
        dsn = request.getfixturevalue("server").dsn
        made = postgres_metrics(dsn, kept, schema=f"m_{abs(hash(request.node.name))}")
    made.open()
    made.write(samples(0), [])
    yield made
    made.close()


def samples(number: int) -> list[Sample]:
    """So many rows of one probe from as many databases, at another instant each time."""
    return [Sample(TABLES, "db1", f"app{k}", START + 300 * number, ROWS) for k in range(SAMPLES)]


def tell(benchmark: BenchmarkFixture) -> None:
    """Add rows a second, by the median: to what is kept, and to the name that the table shows."""
    if benchmark.stats is None:  # several processes run the tests, and nothing is measured
        return
    rows = round(TOTAL / benchmark.stats.stats.median)
    benchmark.extra_info["rows_per_second"] = rows
    benchmark.stats.name += f": {rows:,} rows/s"


def test_twenty_thousand_rows_in_one_transaction(benchmark: BenchmarkFixture, store: ReadableStore) -> None:
    """As the writer sends them, until they are durable."""
    numbers = iter(range(1, 1_000))
    benchmark.pedantic(store.write, setup=lambda: ((samples(next(numbers)), []), {}), rounds=10)
    tell(benchmark)


def test_twenty_thousand_rows_by_insert(benchmark: BenchmarkFixture, server: PostgresServer) -> None:
    """The same rows into a table of the same shape, 100 in a statement, in one transaction: what COPY stands beside."""
    names = ", ".join(column.name for column in COLUMNS)
    row = f"(%s, %s, %s, {', '.join(['%s'] * 11)}, to_timestamp(%s / 1e6))"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        declared = ", ".join(f"{column.name} {column.type.value}" for column in COLUMNS)
        connection.execute(
            f"CREATE TABLE by_insert (series int, at timestamptz, row int, {declared}, PRIMARY KEY (series, at, row))"
        )

        def insert(found: list[Sample]) -> None:
            with connection.transaction():
                for series, sample in enumerate(found):
                    for first in range(0, len(sample.rows), 100):
                        some = sample.rows[first : first + 100]
                        values: list[Any] = []
                        for number, each in enumerate(some, first):
                            values += [series, sample.at, number, *each]
                        places = ", ".join([row.replace("%s, %s, %s", "%s, to_timestamp(%s), %s", 1)] * len(some))
                        connection.execute(f"INSERT INTO by_insert (series, at, row, {names}) VALUES {places}", values)

        numbers = iter(range(1, 1_000))
        benchmark.pedantic(insert, setup=lambda: ((samples(next(numbers)),), {}), rounds=5)
    tell(benchmark)


def test_the_replay_of_a_spool(benchmark: BenchmarkFixture, store: ReadableStore, tmp_path: Path) -> None:
    """Of twenty thousand rows in sixty-seven batches, from the disk into the store."""
    spool = Spool(tmp_path / "spool")
    writer = MetricWriter(store, spool)
    writer.open(0.0)
    numbers = iter(range(1, 1_000))

    def fill() -> None:
        for sample in samples(next(numbers)):
            spool.append(SampleBatch((sample,)))

    def replay() -> None:
        while writer.turn(0.0):
            pass

    benchmark.pedantic(replay, setup=fill, rounds=10)
    assert not spool.waiting
    tell(benchmark)
