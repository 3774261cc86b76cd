"""`timerqueue metrics`: what is stored, and what a probe has found, on a terminal and for programs."""

import json

import pytest
from attrs import evolve

from metric_kit import T0
from uptime_agent.postgres import CATALOGUE, IDENTITY, SqliteMetrics
from uptime_agent.postgres.contract import Sample, Type
from uptime_agent.postgres.storage import MemoryMetrics, postgres_metrics


@pytest.fixture(scope="module")
def anyio_backend():
    """Run on one backend: the command is a process of its own, whatever loop the test has."""
    return "asyncio"


def found_at(at, name="wal", target="main", database=None, **values):
    """Make a sample of a probe of the catalogue so many seconds after T0; what is not said has no value."""
    probe = IDENTITY if name == "identity" else CATALOGUE[name]
    return Sample(probe, target, database, T0 + at, (tuple(values.get(column.name) for column in probe.columns),))


WAL = [
    found_at(0, wal_records=100, wal_bytes=1_000),
    found_at(60, wal_records=400, wal_bytes=7_000),
    found_at(120, wal_records=100, wal_bytes=7_600),
    found_at(180, wal_records=220, wal_bytes=8_200),
]
STARTED = 1_767_225_000_000_000


@pytest.fixture
def file(tmp_path):
    """Write a file with a server, and metrics beside it."""
    found = tmp_path / "fleet.toml"
    found.write_text('[[postgres]]\nname = "main"\nhost = "localhost"\nuser = "me"\npassword = "hunter2"\n')
    return found


@pytest.fixture
def stored(file):
    """Store samples where the file says."""

    def stored(*samples):
        store = SqliteMetrics(file.with_suffix(".metrics.db"))
        store.open()
        store.write(samples, [])
        store.close()
        return str(file)

    return stored


async def test_the_stock_has_a_line_for_each_target_and_probe(ran, stored):
    """With how much there is, how large that is about, and when the last sample was due."""
    rows = [found_at(5, "database", datname=f"shop_{number}") for number in range(3)]
    database = evolve(rows[0], rows=tuple(each.rows[0] for each in rows))
    at = stored(*WAL, database, found_at(0, target="other", wal_records=1))
    code, out, _ = await ran("metrics", at)
    head, *lines = out.splitlines()
    assert (code, head.split()) == (0, ["target", "probe", "samples", "rows", "about", "last", "sample"])
    assert [line.split()[:4] for line in lines] == [
        ["main", "database", "1", "3"],
        ["main", "wal", "4", "4"],
        ["other", "wal", "1", "1"],
    ]
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "2026-01-01" in lines[1]
    code, out, _ = await ran("metrics", "main", at, "--json")
    said = [json.loads(line) for line in out.splitlines()]
    assert [(each["probe"], each["samples"], each["rows"], each["databases"]) for each in said] == [
        ("database", 1, 3, 0),
        ("wal", 4, 4, 0),
    ]
    assert all(each["bytes"] is None or each["bytes"] > 0 for each in said)


async def test_the_newest_sample_of_a_probe_stands_upright_with_its_rates(ran, stored):
    """A counter is growth in each second since the sample before."""
    code, out, _ = await ran("metrics", "main", "wal", stored(*WAL))
    lines = dict(line.split(maxsplit=1) for line in out.splitlines()[1:])
    assert code == 0
    assert lines["wal_records/s"] == "2"
    assert lines["wal_bytes/s"] == "10"
    assert all(len(line) <= 80 for line in out.splitlines())


async def test_a_window_has_each_sample_and_no_rate_over_a_reset(ran, stored):
    """Neither where a counter went back, nor where the server was started in between, though it has not gone back."""
    identities = [
        found_at(0, "identity", system_identifier=7, started=STARTED),
        found_at(170, "identity", system_identifier=7, started=STARTED + 10**9),
    ]
    at = stored(*WAL, *identities)
    code, out, _ = await ran("metrics", "main", "wal", at, "--last", "99999d", "--json")
    said = [json.loads(line)["per_second"] for line in out.splitlines()]
    assert code == 0
    assert [(each["wal_records"], each["wal_bytes"]) for each in said] == [
        (None, None),
        (5, 100),
        (None, 10),
        (None, None),
    ]
    _, out, _ = await ran("metrics", "main", "wal", at, "--last", "99999d")
    assert len([line for line in out.splitlines() if line.startswith("00:0")]) == 4
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "no room for: " in out


async def test_rows_are_followed_by_their_keys_and_in_their_database(ran, stored):
    """A table of one name in two databases is two."""
    names = [column.name for column in CATALOGUE["tables"].columns if column.is_key]
    counter = next(column.name for column in CATALOGUE["tables"].columns if column.is_counter)
    kinds = {column.name: column.type for column in CATALOGUE["tables"].columns}
    key = {name: "t" if kinds[name] is Type.TEXT else 1 for name in names}
    at = stored(
        *(
            found_at(at, "tables", database=name, **key, **{counter: at * step})
            for at in (0, 10)
            for name, step in (("a", 1), ("b", 3))
        )
    )
    _, out, _ = await ran("metrics", "main", "tables", at, "--json")
    assert [(json.loads(line)["database"], json.loads(line)["per_second"][counter]) for line in out.splitlines()] == [
        ("a", 1),
        ("b", 3),
    ]
    _, out, _ = await ran("metrics", "main", "tables", at, "--json", "--database", "b")
    assert len(out.splitlines()) == 1


async def test_what_is_not_there_is_told(ran, stored, file):
    """With exit code 1, or 2 if nothing could be; no secret is shown."""
    code, _, err = await ran("metrics", str(file))
    assert (code, "there are no metrics in" in err) == (2, True)
    at = stored(*WAL)
    for words in (["other"], ["main", "locks"]):
        code, _, err = await ran("metrics", *words, at)
        assert (code, f"there is nothing of {' '.join(words)}" in err) == (1, True)
    file.write_text('store = "memory"\n' + file.read_text())
    code, _, err = await ran("metrics", at)
    assert (code, err.strip()) == (2, "there are no metrics: memory ends with its process")
    file.write_text('metrics = "postgresql://me:hunter2@localhost:1/x"\n' + file.read_text())
    code, out, err = await ran("metrics", at)
    assert code == 2
    assert "cannot use the metrics" in err
    assert "hunter2" not in out + err


@pytest.mark.parametrize("kind", ["memory", "postgres"])
def test_every_store_knows_its_stock(kind, request):
    """By target and probe, with databases apart from the server itself."""
    if kind == "memory":
        store = MemoryMetrics()
    else:
        server, schema = map(request.getfixturevalue, ("postgres_server", "postgres_schema"))
        store = postgres_metrics(server.dsn, schema=f"stock_{schema}")
    store.open()
    store.write([*WAL, *(found_at(at, "tables", database=name) for at in (0, 9) for name in "ab")], [])
    found = [
        (each.target, each.probe, each.databases, each.samples, each.rows, each.last - T0) for each in store.stock()
    ]
    assert found == [("main", "tables", 2, 4, 4, 9), ("main", "wal", 0, 4, 4, 180)]
    assert all((each.bytes is None) == (kind == "memory") for each in store.stock())
    store.close()
