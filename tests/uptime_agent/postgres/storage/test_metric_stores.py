"""What every metric store does: in memory, in SQLite, in PostgreSQL."""

import datetime as dt
import math
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from metric_kit import DAY, EVERY_TYPE, SETTINGS, T0, WAL, make_probe, outcome, sample, times, with_column
from uptime_agent.postgres.contract import Column, Failure, OutcomeKind, Type
from uptime_agent.postgres.storage import Retention, Unstorable, fingerprint


def test_what_was_written_is_read_newest_first(store):
    """Two samples of one series, and one of another target."""
    store.write([sample(0, ("a", 1), ("b", 2)), sample(60, ("a", 3)), sample(30, ("c", 4), target="db2")], [])
    found = store.samples()
    assert [(each.target, each.at - T0, each.rows) for each in found] == [
        ("db1", 60, (("a", 3),)),
        ("db2", 30, (("c", 4),)),
        ("db1", 0, (("a", 1), ("b", 2))),
    ]
    assert found[0].columns == ("name", "count")
    assert [each.at - T0 for each in store.samples("db2")] == [30]
    assert store.samples("db1", "settings") == []
    assert len(store.samples(limit=2)) == 2


def test_a_sample_sent_again_is_stored_once(store):
    """The first one stays, in the same batch and in a later one."""
    store.write([sample(0, ("a", 1)), sample(0, ("a", 2)), sample(0, ("a", 1), database="app")], [outcome(0)])
    store.write([sample(0, ("a", 3)), sample(60, ("a", 4))], [outcome(0, OutcomeKind.FAILED), outcome(60)])
    assert [(each.at - T0, each.database, each.rows) for each in store.samples()] == [
        (60, None, (("a", 4),)),
        (0, None, (("a", 1),)),
        (0, "app", (("a", 1),)),
    ]
    assert [each.kind for each in store.outcomes()] == [OutcomeKind.STORED] * 2


def test_the_newest_of_one_database_are_not_crowded_out_by_others(store):
    """As many as are asked for, of that database."""
    names = (None, "app", *map(str, range(5)))
    store.write([sample(at, ("a", at), database=name) for at in range(3) for name in names], [])
    found = store.samples("db1", "wal", database="app", limit=2)
    assert [(each.database, each.at - T0) for each in found] == [("app", 2), ("app", 1)]
    assert len(store.samples("db1", "wal")) == 3 * len(names)
    assert store.samples(database="other") == []


def test_outcomes_come_back_whole(store):
    """Each figure, and what is not there."""
    told = [
        outcome(0, OutcomeKind.FAILED, database="app", failure=Failure.TIMEOUT, reason="5 s are over", lateness=0.25),
        outcome(60, OutcomeKind.PARTIAL, waited=0.5, executed=1.5, stored=2.5, rows=300, cost=0.75),
    ]
    store.write([], told)
    assert store.outcomes() == told[::-1]
    assert store.outcomes("db1", "wal", limit=1) == [told[1]]
    assert store.outcomes("db2") == []


def test_the_last_sample_is_the_last_one_that_was_answered(store):
    """A snapshot that had not changed was answered; a failure was not."""
    assert store.last("db1", "wal") is None
    store.write([sample(10, ("a", 1), database="x"), sample(5, ("a", 1))], [outcome(90, OutcomeKind.FAILED)])
    assert store.last("db1", "wal") == T0 + 10
    store.write([], [outcome(60), outcome(20)])
    assert store.last("db1", "wal") == T0 + 60
    assert store.last("db2", "wal") is None


def test_a_snapshot_that_has_not_changed_is_not_stored(store):
    """The order of its rows is no change, an empty one is, and so is a return to what was before."""
    one, two = ("a", "1"), ("b", "2")
    for at, rows in enumerate([(one, two), (two, one), (one,), (), (), (one, two)]):
        store.write([sample(at, *rows, probe=SETTINGS)], [])
    assert times(store) == [0, 2, 3, 5]
    assert store.newest("db1", "settings", None) == fingerprint(sample(0, one, two, probe=SETTINGS))
    assert store.newest("db1", "settings", "app") is None


def test_a_batch_of_snapshots_is_compared_in_its_order(store):
    """One batch is like many."""
    store.write([sample(at, (value, None), probe=SETTINGS) for at, value in enumerate("aabbba")], [])
    assert times(store) == [0, 2, 5]


def test_a_replay_stores_nothing_that_was_left_out(store):
    """An older snapshot is compared with the one before it, not with the newest."""
    batch = [sample(at, (value, None), probe=SETTINGS) for at, value in enumerate("aab")]
    store.write(batch, [])
    for each in batch:
        store.write([each], [])
    assert times(store) == [0, 2]


def test_the_fingerprint_of_the_store_is_that_of_the_contract(store):
    """Whoever asks before it writes compares what `Sample.fingerprint` says."""
    now = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    columns = [Column("at", Type.TIMESTAMP), Column("size", Type.NUMERIC), Column("part", Type.DOUBLE)]
    snapshot = sample(0, (now, Decimal("1.50"), 2), probe=make_probe("mixed", *columns, on_change=True))
    store.write([snapshot], [])
    assert store.newest("db1", "mixed", None) == snapshot.fingerprint()


ODD_ROW = {
    Type.BIGINT: [(0, 0), (2**63 - 1, 2**63 - 1), (-(2**63), -(2**63)), (True, 1), (Decimal("5.00"), 5)],
    Type.DOUBLE: [(1.5, 1.5), (math.nan, None), (math.inf, math.inf), (7, 7.0), (dt.timedelta(minutes=1), 60.0)],
    Type.TEXT: [("", ""), ("a\tb\nc\\N\r", "a\tb\nc\\N\r"), ("ä\0\ud800", "ä\ufffd\ufffd"), ({"b": 1}, '{"b": 1}')],
    Type.BOOLEAN: [(True, True), (False, False), (1, True)],
    Type.TIMESTAMP: [(dt.datetime(1969, 12, 31, 23, 59, 59, 1, dt.UTC), -999_999), (5, 5)],
    Type.NUMERIC: [(Decimal("1e30"), 10**30), (-(10**30), -(10**30)), (Decimal("0.5000"), "0.5"), (1.25, "1.25")],
}


@pytest.mark.parametrize(("type_", "given_", "found"), [(t, *pair) for t, pairs in ODD_ROW.items() for pair in pairs])
def test_a_value_comes_back_in_the_form_of_its_column(store, type_, given_, found):
    """Whatever the driver has made of it; beside it a column without a value."""
    probe = make_probe("odd", Column("value", type_), Column("none", type_))
    store.write([sample(0, (given_, None), probe=probe)], [])
    assert store.samples()[0].rows == ((found, None),)
    assert type(store.samples()[0].rows[0][0]) is type(found)


VALUES = {
    Type.BIGINT: st.integers(-(2**63), 2**63 - 1),
    Type.DOUBLE: st.floats(allow_nan=False).map(lambda value: value + 0.0),
    Type.TEXT: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    Type.BOOLEAN: st.booleans(),
    Type.TIMESTAMP: st.integers(-(10**15), 10**17),
    Type.NUMERIC: st.integers(-(10**40), 10**40),
}
ROWS = st.lists(st.tuples(*(st.none() | VALUES[each] for each in Type)), min_size=1, max_size=5)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10**9), rows=ROWS)
def test_what_is_in_the_form_of_storage_comes_back_as_it_is(store, at, rows):
    """For each type of column."""
    store.write([sample(at, *rows, probe=EVERY_TYPE, target=repr((at, rows)).replace("\0", ""))], [])
    assert store.samples(repr((at, rows)).replace("\0", ""))[0].rows == tuple(rows)


@pytest.mark.parametrize(
    "bad",
    [
        sample(0, ("a", "many")),
        sample(0, ("a", 2**63)),
        sample(0, ("a", 0.5)),
        sample(0, ("a", 1, 2)),
        sample(0, ("a",)),
        sample(0, ("a",), probe=make_probe("naive", Column("at", Type.TIMESTAMP))),
        sample(0, (dt.datetime(2026, 1, 1),), probe=make_probe("naive", Column("at", Type.TIMESTAMP))),
        sample(0, (Decimal("1e9999"),), probe=make_probe("huge", Column("size", Type.NUMERIC))),
        sample(0, (2,), probe=make_probe("truth", Column("is_on", Type.BOOLEAN))),
        sample(0, (1,), probe=make_probe('x"; DROP', Column("a", Type.BIGINT))),
        sample(0, (1,), probe=make_probe("series", Column("a", Type.BIGINT))),
        sample(0, (1,), probe=make_probe("own", Column("sample_at", Type.BIGINT))),
        sample(0, (1, 2), probe=make_probe("twice", Column("a", Type.BIGINT), Column("a", Type.BIGINT))),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_whole_batch(store, bad):
    """The error says what; nothing of the batch is there, and the store goes on."""
    with pytest.raises(Unstorable, match=bad.probe.columns[0].name if bad.probe.name == "own" else bad.probe.name[:3]):
        store.write([sample(0, ("a", 1)), bad], [outcome(0)])
    assert (store.samples(), store.outcomes()) == ([], [])
    store.write([sample(0, ("a", 1))], [])
    assert times(store) == [0]


def test_a_probe_may_gain_a_column_and_lose_one(store):
    """Older rows have no value there; the table follows while it is in use."""
    store.write([sample(0, ("a", 1))], [])
    newer = with_column(WAL, Column("order", Type.DOUBLE), Column("seen", Type.TIMESTAMP))
    store.write([sample(60, ("a", 2, 0.5, 7), probe=newer), sample(120, ("a", 3))], [])
    assert [each.rows for each in store.samples()] == [
        (("a", 3, None, None),),
        (("a", 2, 0.5, 7),),
        (("a", 1, None, None),),
    ]


def test_a_column_cannot_change_its_type(store):
    """What was stored would change its meaning."""
    store.write([sample(0, ("a", 1))], [])
    changed = make_probe("wal", Column("name", Type.TEXT), Column("count", Type.DOUBLE))
    with pytest.raises(Unstorable, match="count of probe wal is double precision, and was bigint"):
        store.write([sample(60, ("a", 1.5), probe=changed)], [])
    assert times(store) == [0]


def test_what_is_older_than_its_retention_goes(store):
    """By target and probe, samples and outcomes alike."""
    store.retention = Retention(default=10 * DAY, probes={"short": DAY}, targets={("db2", "wal"): 20 * DAY})
    short = make_probe("short", Column("a", Type.BIGINT))
    days = range(30)
    store.write([sample(day * DAY, ("a", day), target=name) for day in days for name in ("db1", "db2")], [])
    store.write([sample(day * DAY, (day,), probe=short) for day in days], [outcome(day * DAY) for day in days])
    store.maintain(T0 + 29.5 * DAY)
    assert times(store, target="db1", probe="wal") == [day * DAY for day in range(20, 30)]
    assert times(store, target="db2") == [day * DAY for day in range(10, 30)]
    assert times(store, probe="short") == [29 * DAY]
    assert [each.due - T0 for each in store.outcomes()] == [day * DAY for day in range(29, 19, -1)]
    assert [each.rows for each in store.samples("db2")][-1] == (("a", 10),)


def test_of_a_series_that_is_too_old_there_is_no_stock(store):
    """Its target may have been removed long ago."""
    store.write([sample(0, ("a", 1), target="gone"), sample(29 * DAY, ("a", 2))], [outcome(0, target="gone")])
    store.maintain(T0 + 9_999 * DAY)
    assert (store.stock(), store.samples(), store.outcomes()) == ([], [], [])


def test_the_newest_snapshot_of_each_series_stays_for_ever(store):
    """It says how things stand, however long ago they changed."""
    for name, database in (("db1", None), ("db1", "app"), ("db2", None)):
        store.write([sample(at, (str(at), "x"), probe=SETTINGS, target=name, database=database) for at in range(3)], [])
    store.maintain(T0 + 9_999 * DAY)
    assert [(each.target, each.database, each.at - T0, each.rows) for each in store.samples()] == [
        ("db1", None, 2, (("2", "x"),)),
        ("db1", "app", 2, (("2", "x"),)),
        ("db2", None, 2, (("2", "x"),)),
    ]
    store.maintain(T0 + 9_999 * DAY)
    assert len(store.samples()) == 3


def test_an_empty_batch_and_an_empty_sample_are_harmless(store):
    """Nothing found is a finding."""
    store.write([], [])
    store.write([sample(0)], [outcome(0)])
    assert [(each.rows, each.columns) for each in store.samples()] == [((), ("name", "count"))]


def test_the_number_of_rows_left_out_is_kept(store):
    """So that a graph can say that it is not whole."""
    store.write([sample(0, ("a", 1), left_out=7)], [])
    assert store.samples()[0].left_out == 7


def test_hundreds_of_rows_keep_their_order(store):
    """More than one statement takes."""
    rows = [(f"row {number}", number) for number in range(1_333)]
    store.write([sample(0, *rows)], [])
    assert store.samples()[0].rows == tuple(rows)


@pytest.mark.parametrize("keep", [0, -1.0, math.nan])
def test_a_retention_is_positive(keep):
    """Nothing would ever be kept."""
    with pytest.raises(ValueError, match="positive number of seconds"):
        Retention(default=keep)


def test_a_store_that_is_opened_again_has_everything(place):
    """Also the tables of probes, and what was newest."""
    first = place()
    first.open()
    first.write([sample(0, ("a", "1"), probe=SETTINGS), sample(0, ("a", 1))], [outcome(0)])
    first.close()
    first.close()
    second = place()
    second.open()
    second.write([sample(1, ("a", "1"), probe=SETTINGS), sample(1, ("a", 2))], [])
    assert (times(second, probe="settings"), times(second, probe="wal")) == ([0], [0, 1])
    assert second.last("db1", "wal") == T0 + 1
    second.close()
