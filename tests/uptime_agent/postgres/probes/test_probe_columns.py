"""Every probe on every version: it answers in the columns that it declares, of their types, whatever the version."""

import re

import psycopg
import pytest

from uptime_agent.postgres.contract import NEWEST_PROVEN, OLDEST_SUPPORTED, Scope, Type, pick
from uptime_agent.postgres.probes import CATALOGUE

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


def test_each_probe_answers_in_its_columns(probed):
    """By name, in their order, of their types; a superuser may ask for all of them."""
    wrong = {}
    with probed.connect("postgres") as connection:
        types = dict(connection.execute("SELECT oid, typname FROM pg_type").fetchall())
        for name in asked_of(probed):
            cursor = connection.execute(probed.variant(CATALOGUE[name], connection).sql)
            found = [(column.name, OF_TYPE.get(types[column.type_code])) for column in cursor.description]
            declared = [(column.name, column.type.name) for column in CATALOGUE[name].columns]
            if found not in (declared, [*declared, ("left_out", "BIGINT")]):
                wrong[name] = found
    assert wrong == {}


def test_keys_tell_the_rows_of_a_probe_apart(probed):
    """No two rows of one sample have the same; a probe without keys has one row at most."""
    double = {}
    for name in asked_of(probed):
        rows, names, _ = probed.run(CATALOGUE[name], "postgres")
        keys = [names.index(column.name) for column in CATALOGUE[name].columns if column.is_key]
        found = [tuple(row[key] for key in keys) for row in rows]
        if len(set(found)) < len(found):
            double[name] = found
    assert double == {}


def asked_of(probed):
    """Return the names of the probes that this version can answer."""
    return [name for name in ASKED if name not in LACKING[probed.major]]


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


NINETEEN = """
    CREATE SCHEMA nineteen;
    CREATE VIEW nineteen.pg_stat_lock AS SELECT 'relation'::text AS locktype, 1::bigint AS waits,
        1500::double precision AS wait_time, 2::bigint AS fastpath_exceeded, now() AS stats_reset;
    CREATE FUNCTION nineteen.pg_get_multixact_stats(OUT num_mxids bigint, OUT num_members bigint,
        OUT members_size bigint, OUT oldest_multixact xid) LANGUAGE sql AS $$ SELECT 1, 2, 3, '4'::xid $$;
    CREATE VIEW nineteen.pg_stat_database_conflicts AS SELECT *, now() AS stats_reset FROM pg_stat_database_conflicts;
    CREATE VIEW nineteen.pg_stat_replication_slots AS
        SELECT *, 7::bigint AS mem_exceeded_count FROM pg_stat_replication_slots;
    CREATE VIEW nineteen.pg_stat_subscription_stats AS SELECT subid, subname, apply_error_count,
        sync_error_count AS sync_table_error_count, 0::bigint AS sync_seq_error_count, confl_insert_exists,
        confl_update_origin_differs, confl_update_exists, confl_update_missing, confl_delete_origin_differs,
        confl_delete_missing, confl_multiple_unique_conflicts, stats_reset FROM pg_stat_subscription_stats;
    CREATE VIEW nineteen.pg_stat_wal AS SELECT *, 5::bigint AS wal_fpi_bytes FROM pg_stat_wal;
    CREATE VIEW nineteen.pg_stat_user_tables AS SELECT *, now() AS stats_reset FROM pg_stat_user_tables;
    CREATE VIEW nineteen.pg_stat_user_indexes AS SELECT *, now() AS stats_reset FROM pg_stat_user_indexes;
    CREATE VIEW nineteen.pg_stat_progress_vacuum AS
        SELECT *, 'manual'::text AS started_by, 'normal'::text AS mode FROM pg_stat_progress_vacuum;
    CREATE VIEW nineteen.pg_stat_progress_analyze AS
        SELECT *, 'manual'::text AS started_by FROM pg_stat_progress_analyze;
    CREATE VIEW nineteen.pg_stat_progress_basebackup AS
        SELECT *, 'full'::text AS backup_type FROM pg_stat_progress_basebackup;
    CREATE VIEW nineteen.pg_stat_progress_repack AS SELECT * FROM pg_stat_progress_cluster;
"""


def test_what_is_written_for_19_is_sound(probed):
    """No 19 runs here: its views are built on 18 as its notes have them, and each variant for it is run on those."""
    if probed.major != NEWEST_PROVEN:
        return
    with probed.connect() as connection, connection.transaction(force_rollback=True):
        for statement in filter(str.strip, NINETEEN.split(";\n")):
            connection.execute(statement)
        connection.execute("SET LOCAL search_path = nineteen, pg_catalog")
        for name in ASKED:
            variant = pick(CATALOGUE[name], 190_000, "1.12")
            cursor = connection.execute(variant.sql)
            names = [column.name for column in cursor.description if column.name != "left_out"]
            assert names == [column.name for column in CATALOGUE[name].columns]
        cursor = connection.execute(pick(CATALOGUE["locks"], 190_000).sql)
        (row,) = (row for row in cursor.fetchall() if row[0] is None and row[2] is None and row[3] is None)
        assert row[5:8] == (1, 1.5, 2)


def test_nothing_waits_for_a_lock_of_an_alter_table(probed):
    """Each probe answers within its lock_timeout of 200 ms, which it never uses up: an error would say so."""
    altering = probed.held("ALTER TABLE plain ADD COLUMN more int", "ALTER TABLE parts ADD COLUMN more int")
    altering.execute("ALTER SEQUENCE steps INCREMENT 2")
    failed = {}
    for name in asked_of(probed):
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
    for name in asked_of(probed):
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
