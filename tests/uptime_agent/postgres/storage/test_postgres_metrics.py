"""Metrics in PostgreSQL: weekly partitions, several agents, faults."""

import datetime as dt
import threading

import psycopg
import pytest
from hypothesis import given, strategies as st

from kit import wait_until
from metric_kit import DAY, SETTINGS, T0, make_probe, outcome, sample, times
from uptime_agent.postgres.contract import Column, StoreUnavailable, Type
from uptime_agent.postgres.storage import Retention, StoreUnusable, postgres_metrics
from uptime_agent.postgres.storage.weeks import Week

WEEK = 7 * DAY


@pytest.fixture
def schema(postgres_schema):
    return f"metrics_{postgres_schema}"


@pytest.fixture
def ask(postgres_server):
    """Ask the server, with the schema's name in the place of {}."""
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        yield lambda question, *asked: connection.execute(question, asked or None).fetchall()


@pytest.fixture
def opened(postgres_server, schema):
    """Open stores over the schema; they are closed at the end."""
    stores = []

    def opened(dsn="", **options):
        store = postgres_metrics(f"{postgres_server.dsn} {dsn}", schema=schema, **options)
        store.open()
        stores.append(store)
        return store

    yield opened
    for store in stores:
        store.close()


def partitions(ask, schema, table):
    """Return the suffixes of the partitions of a table."""
    asked = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass ORDER BY 1"
    return [name.rpartition("_")[2] for (name,) in ask(asked, f"{schema}.{table}")]


@pytest.mark.parametrize(
    ("day", "monday"),
    [
        ("2026-01-05T00:00:00", "2026-01-05"),
        ("2026-01-11T23:59:59.999999", "2026-01-05"),
        ("2026-01-12T00:00:00", "2026-01-12"),
        ("2026-01-01T00:00:00", "2025-12-29"),
        ("2025-12-31T23:59:59", "2025-12-29"),
        ("2027-01-03T12:00:00", "2026-12-28"),
        ("1969-12-31T00:00:00", "1969-12-29"),
    ],
)
def test_a_week_begins_on_monday_in_utc(day, monday):
    """Over the edge of a year as well."""
    week = Week.of(dt.datetime.fromisoformat(f"{day}+00:00").timestamp())
    assert str(week.monday) == monday
    assert week.bounds[0] == f"{monday} 00:00:00+00"
    assert Week.named(week.suffix) == week


@given(st.integers(-(10**9), 10**10))
def test_each_instant_lies_in_its_week_and_weeks_have_no_gaps(at):
    """The end of one is the beginning of the next."""
    week = Week.of(at)
    assert week.end - WEEK <= at < week.end
    assert list(week.and_next(1))[1] == Week.of(week.end)


def test_a_sample_lies_in_the_partition_of_its_week_whatever_the_zone_of_the_session(ask, opened, schema):
    """The last microsecond of a week and the first one of the next, from a server in Auckland."""
    store = opened("options='-c timezone=Pacific/Auckland'")
    monday = 4 * DAY
    store.write([sample(monday - 1e-6, ("a", 1)), sample(monday, ("a", 2))], [outcome(monday - 1e-6), outcome(monday)])
    for table in ("probe_wal", "sample", "outcome"):
        assert partitions(ask, schema, table) == ["w20251229", "w20260105"]
        for name in ("w20251229", "w20260105"):
            assert ask(f"SELECT count(*) FROM {schema}.{table}_{name}") == [(1,)]
    assert times(store) == [monday - 1e-6, monday]


def test_partitions_are_made_ahead(ask, opened, schema):
    """For this week and two more, of each table; a second time nothing is to be done."""
    store = opened()
    store.write([sample(0, ("a", 1))], [])
    for _ in range(2):
        store.maintain(T0)
        for table in ("probe_wal", "sample", "outcome"):
            assert partitions(ask, schema, table) == ["w20251229", "w20260105", "w20260112"]


def test_a_week_beyond_every_retention_is_dropped(ask, opened, schema):
    """As a whole; the newest snapshot keeps its week, and nothing else in it."""
    store = opened(retention=Retention(default=2 * WEEK, targets={("db2", "wal"): 4 * WEEK}))
    for week in range(8):
        at = week * WEEK
        store.write([sample(at, ("a", week), target=name) for name in ("db1", "db2")], [outcome(at)])
    store.write([sample(at, (str(at), "x"), probe=SETTINGS) for at in (0, 60)], [])
    store.maintain(T0 + 8 * WEEK)
    assert partitions(ask, schema, "probe_wal")[0] == "w20260126"
    assert partitions(ask, schema, "outcome")[0] == "w20260126"
    assert partitions(ask, schema, "probe_settings")[0] == partitions(ask, schema, "sample")[0] == "w20251229"
    assert ask(f"SELECT name FROM {schema}.probe_settings") == [("60",)]
    assert times(store, target="db1", probe="wal") == [week * WEEK for week in (6, 7)]
    assert times(store, target="db2") == [week * WEEK for week in range(4, 8)]


def test_rows_are_deleted_some_at_a_time(opened, monkeypatch):
    """No transaction of an upkeep grows with what there is to remove."""
    monkeypatch.setattr("uptime_agent.postgres.storage.postgres.upkeep.AT_A_TIME", 10)
    store = opened(retention=Retention(default=2 * DAY))
    store.write([sample(hour * 3600, *(("a", n) for n in range(7))) for hour in range(72)], [])
    store.maintain(T0 + 3 * DAY)
    assert times(store) == [hour * 3600 for hour in range(24, 72)]


def test_upkeep_leaves_it_to_the_agent_that_is_at_it(ask, opened, schema, postgres_server):
    """An advisory lock tells; the next round is soon enough."""
    store = opened()
    store.write([sample(0, ("a", 1))], [])
    with psycopg.connect(postgres_server.dsn) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('timerqueue metrics'), hashtext(%s))", [schema])
        store.maintain(T0 + WEEK)
        assert partitions(ask, schema, "probe_wal") == ["w20251229"]
    store.maintain(T0 + WEEK)
    assert len(partitions(ask, schema, "probe_wal")) == 4


def test_two_agents_that_meet_make_each_table_once(opened, ask, schema):
    """Both write the first samples of the same probes, targets and weeks; each sample is there once."""
    stores = [opened(retention=Retention(default=99 * WEEK)) for _ in range(2)]
    probes = [make_probe(f"probe{number}x", Column("a", Type.BIGINT)) for number in range(6)]
    errors = []

    def write(store):
        try:
            for number, probe in enumerate(probes):
                store.write([sample(number * WEEK, (number,), probe=probe)], [outcome(number * WEEK, probe=probe.name)])
                store.maintain(T0 + number * WEEK)
        except Exception as error:  # noqa: BLE001 - whatever it is
            errors.append(error)

    threads = [threading.Thread(target=write, args=[store]) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert times(stores[0]) == [number * WEEK for number in range(6)]
    assert ask(f"SELECT count(*) FROM {schema}.series") == [(6,)]


def test_a_column_that_another_agent_has_added_is_found(opened):
    """An agent of the new release beside one that has not been restarted."""
    old, new = opened(), opened()
    old.write([sample(0, ("a", 1))], [])
    wider = make_probe("wal", Column("name", Type.TEXT), Column("count", Type.BIGINT), Column("more", Type.BIGINT))
    new.write([sample(1, ("a", 2, 3), probe=wider)], [])
    old.write([sample(2, ("a", 4, 5), probe=wider), sample(3, ("a", 6))], [])
    assert [each.rows for each in old.samples()] == [
        (("a", 6, None),),
        (("a", 4, 5),),
        (("a", 2, 3),),
        (("a", 1, None),),
    ]


def test_people_ask_a_view_of_each_probe(opened, ask, schema):
    """With the names of target and database."""
    opened().write([sample(0, ("a", 1), database="app")], [outcome(0)])
    asked = f"SELECT sample_target, sample_database, sample_at AT TIME ZONE 'UTC', count FROM {schema}.wal"
    assert ask(asked) == [("db1", "app", dt.datetime(2026, 1, 1), 1)]
    assert ask(f"SELECT target, probe, kind FROM {schema}.outcomes") == [("db1", "wal", "stored")]


def test_the_schema_of_another_program_is_left_alone(opened, postgres_server, schema):
    """A wrong name costs nobody a table."""
    with psycopg.connect(postgres_server.dsn, autocommit=True) as other:
        other.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.bread (butter int)")
    with pytest.raises(StoreUnusable, match="another program"):
        opened()


def test_a_connection_that_was_ended_is_made_again(opened, ask):
    """The batch that it cost is refused as a whole, and can be written again."""
    store = opened()
    store.write([sample(0, ("a", 1))], [])
    ask("SELECT pg_terminate_backend(%s)", store._connection.info.backend_pid)
    wait_until(lambda: not ask("SELECT FROM pg_stat_activity WHERE pid = %s", store._connection.info.backend_pid))
    with pytest.raises(StoreUnavailable):
        store.write([sample(1, ("a", 1))], [])
    store.write([sample(1, ("a", 1))], [])
    assert times(store) == [0, 1]


def test_a_server_that_is_frozen_is_given_up(opened, postgres_server, monkeypatch, ask):
    """Nothing of TCP or of the server would ever end that wait."""
    monkeypatch.setattr("uptime_agent.postgres.storage.postgres.connection.PATIENCE", 3)
    store = opened()
    store.write([sample(0, ("a", 1))], [])
    with (
        postgres_server.frozen(store._connection.info.backend_pid),
        pytest.raises(StoreUnavailable, match="no answer"),
    ):
        store.write([sample(1, ("a", 1))], [])
    store.write([sample(1, ("a", 1))], [])
    assert times(store) == [0, 1]


def test_a_transaction_that_fails_at_any_statement_leaves_nothing(opened, monkeypatch):
    """The tables of a new probe included; afterwards the same batch is stored."""
    batch = [sample(0, ("a", 1), target="new"), sample(0, ("a", "x"), probe=SETTINGS)], [outcome(0)]
    store = opened()
    execute = type(store._connection).execute
    failed = 0
    for count in range(1, 100):
        left = [count]

        def failing(self, *args, left=left, **kwargs):
            left[0] -= 1
            if not left[0]:
                raise psycopg.OperationalError("the cable is out")
            return execute(self, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(type(store._connection), "execute", failing)
            try:
                store.write(*batch)
            except StoreUnavailable:
                failed += 1
            else:
                break
        assert (store.samples(), store.outcomes()) == ([], [])
    assert failed > 10
    assert len(store.samples()) == 2


def test_no_error_shows_a_password():
    """Where the place stands in a log."""
    store = postgres_metrics("host=/nowhere user=me password=hunter2")
    with pytest.raises(StoreUnavailable) as caught:
        store.open()
    assert "hunter2" not in f"{caught.value}{store!r}"
    with pytest.raises(ValueError, match="not what libpq understands") as wrong:
        postgres_metrics("postgresql://me:hunter2@[host")
    assert "hunter2" not in str(wrong.value)


def test_samples_of_one_probe_go_together_though_some_are_there_already(opened):
    """Parts of some thousand rows: what is new in them is written, and nothing else, whatever stands between."""
    store, rows = opened(), tuple((f"row {number}", number) for number in range(700))
    batch = [sample(at, *rows, target=f"db{at % 3}") for at in range(12)]
    other = [sample(at, (str(at), None), probe=make_probe("other", *sample().probe.columns)) for at in range(12)]
    store.write([each for number, each in enumerate(batch) if number % 4], [])
    mixed = [each for pair in zip(batch, other, strict=True) for each in pair]
    store.write([*mixed, sample(0, target="empty"), *mixed, sample(0, ("a", 1), target="empty")], [])
    assert {each.at - T0: each.rows for each in store.samples(probe="wal") if each.target != "empty"} == dict.fromkeys(
        range(12), rows
    )
    assert [each.rows for each in store.samples("empty")] == [()]
    assert times(store, probe="other") == list(range(12))
