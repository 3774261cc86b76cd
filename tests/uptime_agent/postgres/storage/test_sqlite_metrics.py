"""Metrics in a SQLite file: bounds, owners, faults."""

import sqlite3
from contextlib import closing

import pytest

from metric_kit import DAY, SETTINGS, T0, outcome, sample, times
from uptime_agent.postgres.contract import StoreUnavailable
from uptime_agent.postgres.storage import SqliteMetrics, StoreUnusable


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.db"


def opened(path, **options):
    store = SqliteMetrics(path, **options)
    store.open()
    return store


def test_a_file_that_is_too_large_loses_its_oldest_samples(path):
    """And no newest snapshot; the file itself becomes smaller."""
    store = opened(path, most_bytes=400_000)
    store.write([sample(0, ("work_mem", "4MB"), probe=SETTINGS)], [])
    for hour in range(100):
        store.write([sample(hour * 3600, *((f"{n:50}", n) for n in range(100)))], [outcome(hour * 3600)])
    store.maintain(T0 + 101 * 3600)
    kept = times(store, probe="wal")
    assert 10 < len(kept) < 90
    assert kept == [hour * 3600 for hour in range(100 - len(kept), 100)]
    assert times(store, probe="settings") == [0]
    size = path.stat().st_size
    assert size < 450_000
    store.close()


def test_a_sweep_goes_in_small_transactions(path, monkeypatch):
    """So that writing never waits for long."""
    monkeypatch.setattr("uptime_agent.postgres.storage.sqlite.sweep.AT_A_TIME", 10)
    store = opened(path)
    store.write([sample(at, *(("a", n) for n in range(7))) for at in range(50)], [outcome(at) for at in range(50)])
    statements = []
    store._connection.set_trace_callback(statements.append)
    store.maintain(T0 + 28 * DAY + 40)
    assert times(store) == list(range(40, 50))
    assert len([each for each in statements if each.startswith("BEGIN")]) >= 40 * 7 / 17
    store.close()


def test_one_process_has_the_file(path):
    """Two writers would sweep what the other has just noted; readers are welcome."""
    store = opened(path)
    store.write([sample(0, ("a", 1))], [])
    with pytest.raises(StoreUnavailable, match="another agent"):
        opened(path)
    assert times(SqliteMetrics(path)) == [0]
    store.close()
    opened(path).close()


def test_the_file_is_for_its_owner_alone(path):
    """Queries and settings stand in it."""
    opened(path).close()
    assert path.stat().st_mode & 0o077 == 0


def test_a_database_of_another_program_is_left_alone(path):
    """A wrong path costs nobody a table."""
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE bread (butter)")
    other.close()
    with pytest.raises(StoreUnusable, match="another program"):
        opened(path)


def test_tables_of_a_later_version_are_left_alone(path):
    """This release would not know what they mean."""
    opened(path).close()
    with closing(sqlite3.connect(path)) as later, later:
        later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(StoreUnusable, match="version 99"):
        opened(path)


def test_a_file_that_is_no_database_is_told(path):
    """With what to do about it."""
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreUnusable, match="move it away"):
        opened(path)


def test_reading_what_is_not_there_makes_nothing(path):
    """The error says so."""
    with pytest.raises(StoreUnusable, match="there are no metrics"):
        SqliteMetrics(path).samples()
    assert not path.exists()


def test_a_store_that_is_not_open_says_so(path):
    """Instead of an error of a driver."""
    with pytest.raises(StoreUnavailable, match="not open"):
        SqliteMetrics(path).write([sample(0, ("a", 1))], [])


def test_a_transaction_that_fails_at_any_statement_leaves_nothing(path):
    """The tables of a new probe included; afterwards the same batch is stored."""
    batch = [sample(0, ("a", 1), target="new"), sample(0, ("a", "x"), probe=SETTINGS)], [outcome(0)]
    for count in range(1, 40):
        store = opened(path)
        fail_at(store._connection, count)
        try:
            store.write(*batch)
        except StoreUnavailable:
            store._connection.set_authorizer(None)
            assert (store.samples(), store.outcomes()) == ([], [])
            store.write(*batch)
            assert len(store.samples()) == 2
            store.close()
            path.unlink()
        else:
            assert count > 10
            store.close()
            break
    else:
        pytest.fail("the transaction never went through")


def fail_at(connection, count):
    """Let SQLite refuse the n-th thing that is to be written."""
    left = [count]

    def refuse(action, *_):
        is_one = action in {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE}
        left[0] -= is_one
        return sqlite3.SQLITE_DENY if is_one and left[0] == 0 else sqlite3.SQLITE_OK

    connection.set_authorizer(refuse)


def test_the_first_error_is_told_though_the_file_cannot_be_read_after_it(path, monkeypatch):
    """A second error took its place. Later the store reads again what it had noted, which was rolled back."""
    store = opened(path)

    def first(*_args):
        raise sqlite3.OperationalError("the first one")

    def second(*_args):
        raise sqlite3.OperationalError("another one")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_put_last", first)
        patch.setattr("uptime_agent.postgres.storage.sqlite.store.types_of", second)
        with pytest.raises(StoreUnavailable, match="the first one"):
            store.write([sample(0, ("a", 1))], [])
        with pytest.raises(StoreUnavailable, match="another one"):
            store.newest("main", "wal", None)
    store.write([sample(1, ("a", 1))], [])
    assert times(store) == [1]
    store.close()
