"""Every probe on every version: it answers in the columns that it declares, of their types, whatever the version."""

import re

import psycopg
import pytest

from scheduler.agent.postgres.contract import NEWEST_PROVEN, OLDEST_SUPPORTED, Scope, Type, pick
from scheduler.agent.postgres.probes import CATALOGUE

THE_34 = (
    "connectivity node_role activity long_xacts blocking locks database database_size wraparound replication "
    "wal_receiver recovery slots slot_activity subscriptions wal wal_files archiver bgwriter checkpointer io slru "
    "conflicts progress tables table_io indexes relation_sizes vacuum_need sequences functions statements settings "
    "inventory"
).split()
ASKED = [name for name, probe in CATALOGUE.items() if probe.call is None]
OF_TYPE = {"int8": "BIGINT", "float8": "DOUBLE", "text": "TEXT", "bool": "BOOLEAN", "timestamptz": "TIMESTAMP"}
LACKING = {15: {"io", "buffercache", "aios"}, 16: {"aios"}, 17: {"aios"}, 18: set()}
NEED_MORE = {"file_rules", "file_settings"}


def test_all_34_are_there():
    """Those of the plan, on by default; what costs more or needs more rights is off."""
    assert set(THE_34) <= set(CATALOGUE)
    assert len(THE_34) == 34
    assert all(CATALOGUE[name].is_enabled for name in THE_34)


def test_each_version_has_its_variant(probed):
    """What a version cannot answer at all, it is not asked."""
    with probed.connect() as connection:
        lacking = {name for name in ASKED if probed.variant(CATALOGUE[name], connection) is None}
    assert lacking == LACKING[probed.major]


@pytest.mark.parametrize("name", ASKED)
def test_it_answers_in_its_columns(probed, name):
    """By name, in their order, of their types; a superuser may ask for all of them."""
    probe = CATALOGUE[name]
    if name in LACKING[probed.major]:
        return
    user = "postgres" if name in NEED_MORE else "monitor"
    with probed.connect(user) as connection:
        cursor = connection.execute(probed.variant(probe, connection).sql)
        types = {row[0]: row[1] for row in connection.execute("SELECT oid, typname FROM pg_type").fetchall()}
    found = [(column.name, OF_TYPE.get(types[column.type_code])) for column in cursor.description]
    assert found[-1:] == [("left_out", "BIGINT")] or all(column != "left_out" for column, _ in found)
    assert [each for each in found if each[0] != "left_out"] == [
        (column.name, column.type.name) for column in probe.columns
    ]


@pytest.mark.parametrize("name", ASKED)
def test_its_keys_tell_its_rows_apart(probed, name):
    """No two rows of one sample have the same."""
    probe = CATALOGUE[name]
    if name in LACKING[probed.major] or not any(column.is_key for column in probe.columns):
        return
    rows, names, _ = probed.run(probe, "postgres")
    keys = [tuple(row[names.index(column.name)] for column in probe.columns if column.is_key) for row in rows]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("probe", CATALOGUE.values(), ids=CATALOGUE)
def test_it_says_what_a_reader_needs(probe):
    """A purpose, no column twice, none called as a store calls its own, and a limit of rows in the SQL itself."""
    names = [column.name for column in probe.columns]
    assert probe.purpose
    assert len(set(names)) == len(names)
    assert not {"target", "database", "at", "left_out"} & set(names)
    assert not any(column.is_counter and column.is_key for column in probe.columns)
    for variant in probe.variants:
        assert variant.sql.startswith(f"/* timerqueue:{probe.name} */ ")
        assert "LIMIT" in variant.sql or not any(column.is_key for column in probe.columns)


@pytest.mark.parametrize(
    "probe", [probe for probe in CATALOGUE.values() if probe.variants], ids=lambda probe: probe.name
)
def test_a_newer_version_runs_the_newest_variant_unproven(probe):
    """19 as far as its notes say, and 20 as nobody knows."""
    for major in (NEWEST_PROVEN + 1, NEWEST_PROVEN + 2):
        assert not pick(probe, major * 10_000, "1.12").is_proven
    assert pick(probe, NEWEST_PROVEN * 10_000, "1.12").is_proven
    assert pick(probe, (OLDEST_SUPPORTED - 1) * 10_000, "1.12") is None


def test_nothing_waits_for_a_lock_of_an_alter_table(probed):
    """Each probe answers within its lock_timeout of 200 ms, which it never uses up: an error would say so."""
    altering = probed.held("ALTER TABLE plain ADD COLUMN more int", "ALTER TABLE parts ADD COLUMN more int")
    altering.execute("ALTER SEQUENCE steps INCREMENT 2")
    failed = {}
    for name in ASKED:
        if name in LACKING[probed.major]:
            continue
        try:
            probed.run(CATALOGUE[name], "postgres")
        except psycopg.Error as error:
            failed[name] = str(error)
    assert failed == {}


def test_what_waits_for_the_table_is_not_waited_for_either(probed):
    """A waiting ALTER stands before all that ask for the table after it; the probes ask for no table."""
    probed.held("SELECT count(*) FROM plain", "SELECT nextval('steps')")
    probed.waits("ALTER TABLE plain ADD COLUMN other int")
    for name in ("tables", "table_io", "indexes", "relation_sizes", "vacuum_need", "sequences", "blocking"):
        assert probed.run(CATALOGUE[name], "postgres")[0]


def test_what_is_said_of_rights_is_true(probed):
    """A role in pg_monitor alone can ask for all but what says that it needs a grant."""
    refused = refused_to(probed, "monitor")
    assert refused == NEED_MORE
    for name in NEED_MORE:
        assert CATALOGUE[name].grants.startswith("GRANT EXECUTE")


def test_a_role_with_no_right_is_refused_what_says_that_it_needs_one(probed):
    """And answered in the rest, with less in it."""
    refused = refused_to(probed, "nobody_special")
    assert all(CATALOGUE[name].grants for name in refused)
    assert refused >= {"wal_files", "archiver"}


def test_a_grant_is_enough_where_one_is_asked_for(probed):
    """As the words of `grants` have it."""
    with probed.connect() as connection, connection.transaction(force_rollback=True):
        for function, view in (
            ("pg_hba_file_rules", "pg_hba_file_rules"),
            ("pg_show_all_file_settings", "pg_file_settings"),
        ):
            connection.execute(f"GRANT EXECUTE ON FUNCTION {function}() TO monitor; GRANT SELECT ON {view} TO monitor")
        connection.execute("SET LOCAL ROLE monitor")
        for name in NEED_MORE:
            connection.execute(probed.variant(CATALOGUE[name], connection).sql)
            assert re.search(r"GRANT EXECUTE ON FUNCTION (\w+)\(\)", CATALOGUE[name].grants)


def refused_to(probed, user):
    """Return the names of the probes that this role may not run."""
    refused = set()
    for name in ASKED:
        if name in LACKING[probed.major]:
            continue
        try:
            probed.run(CATALOGUE[name], user)
        except psycopg.errors.InsufficientPrivilege:
            refused.add(name)
    return refused


def test_scopes_are_used_for_what_they_say():
    """What a server knows at once is asked once, and not once for each database."""
    of_databases = {name for name, probe in CATALOGUE.items() if probe.scope is Scope.DATABASE}
    assert of_databases == set(
        "tables table_io indexes relation_sizes vacuum_need sequences functions extensions".split()
    )


def test_lengths_of_time_are_seconds():
    """Whatever the views count in, a DOUBLE that grows is in seconds."""
    timed = [(p.name, c) for p in CATALOGUE.values() for c in p.columns if c.type is Type.DOUBLE and c.is_counter]
    assert timed
    assert {column.unit for _, column in timed} == {"s"}
