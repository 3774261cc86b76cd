"""Probes of a database and its objects say what is true, on each version: a test makes a thing happen and sees it."""

import psycopg
import pytest

from uptime_agent.postgres.probes import CATALOGUE

FLUSH = "SELECT pg_stat_force_next_flush()"


def one(probed, name, /, user="monitor", **wanted):
    """Return the one row with these values."""
    (row,) = probed.rows(name, user, **wanted)
    return row


def run(probed, *statements):
    """Run these one after the other, and have the statistics of that session counted at once."""
    with probed.connect() as connection:
        for statement in (*statements, FLUSH, "SELECT 1"):
            connection.execute(statement)


def value(probed, sql):
    """Return the one value of a query."""
    with probed.connect() as connection:
        return connection.execute(sql).fetchone()[0]


@pytest.fixture
def scratch(probed):
    """Make a table of 1,000 rows in a database of its own statistics, and drop it."""
    run(
        probed,
        "CREATE TABLE scratch (id bigint, words text)",
        "INSERT INTO scratch SELECT n, repeat('x', 100) FROM generate_series(1, 1000) AS n",
    )
    run(probed, "VACUUM ANALYZE scratch")  # by another session: what it inserted itself would be counted after it
    yield "scratch"
    run(probed, "DROP TABLE scratch")


def test_transactions_of_a_database_are_counted(probed):
    """Those that commit, those that do not, and rows that are written; one row stands for what all databases share."""
    before = one(probed, "database", datname="probed")
    run(probed, "CREATE TABLE gone (id int)", "INSERT INTO gone VALUES (1), (2), (3)", "DROP TABLE gone")
    run(probed, "BEGIN", "ROLLBACK")
    after = one(probed, "database", datname="probed")
    assert after["xact_commit"] >= before["xact_commit"] + 3
    assert after["xact_rollback"] >= before["xact_rollback"] + 1
    assert after["tup_inserted"] >= before["tup_inserted"] + 3
    assert one(probed, "database", datid=0)["datname"] is None
    assert (after["parallel_workers_launched"] is None) == (probed.major < 18)


def test_a_database_is_as_large_as_it_is(probed):
    """As PostgreSQL counts its files."""
    assert one(probed, "database_size", datname="template0")["size"] == value(
        probed, "SELECT pg_database_size('template0')"
    )


def test_a_database_whose_size_may_not_be_known_has_none(probed):
    """A role that may not connect, and is not in pg_read_all_stats, sees the database without its size."""
    run(probed, "REVOKE CONNECT ON DATABASE template0 FROM public")
    try:
        assert one(probed, "database_size", "nobody_special", datname="template0")["size"] is None
        assert one(probed, "database_size", "monitor", datname="template0")["size"] > 0
    finally:
        run(probed, "GRANT CONNECT ON DATABASE template0 TO public")


def test_the_way_to_a_wraparound_is_told(probed):
    """By the limits as they are configured, and by that at which the server stops."""
    row = one(probed, "wraparound", datname="probed")
    age = value(probed, "SELECT age(datfrozenxid) FROM pg_database WHERE datname = 'probed'")
    assert age - 100 < row["xid_age"] <= age
    assert row["xid_age"] + row["xid_to_autovacuum"] == 200_000_000
    assert row["xid_age"] + row["xid_to_failsafe"] == 1_600_000_000
    assert row["xid_age"] + row["xid_to_stop"] == 2**31 - 1 - 3_000_000
    assert row["multixact_members"] is None


def test_partitions_are_one_table(probed):
    """With what happened in all of them."""
    row = one(probed, "tables", relname="parts")
    assert row["partitions"] == 2
    assert row["n_tup_ins"] >= 200
    assert row["size"] > 0
    assert not probed.rows("tables", relname="parts_1")
    assert one(probed, "indexes", relname="parts")["is_valid"]


def test_rows_of_a_table_are_counted(probed, scratch):
    """Those that are there, those that are dead, and when it was vacuumed."""
    run(probed, "DELETE FROM scratch WHERE id <= 400", "SELECT count(*) FROM scratch")
    row = one(probed, "tables", relname=scratch)
    assert (row["n_tup_ins"], row["n_tup_del"], row["n_dead_tup"], row["n_live_tup"]) == (1000, 400, 400, 600)
    assert (row["vacuum_count"], row["autovacuum_count"], row["last_autovacuum"]) == (1, 0, None)
    assert row["last_vacuum"] is not None
    assert row["seq_scan"] >= 1
    assert (row["last_seq_scan"] is None) == (probed.major < 16)
    assert (row["total_vacuum_time"] is None) == (probed.major < 18)
    io = one(probed, "table_io", relname=scratch)
    assert io["heap_blks_hit"] > 0
    assert io["idx_blks_hit"] is None


def test_how_near_a_table_is_to_its_vacuum(probed, scratch):
    """400 dead rows of 1,000, by the settings: 50 and a fifth of all; and by the table's own option."""
    run(probed, "DELETE FROM scratch WHERE id <= 400")
    assert one(probed, "vacuum_need", relname=scratch)["vacuum_share"] == pytest.approx(400 / (50 + 0.2 * 1000))
    assert one(probed, "vacuum_need", relname=scratch)["analyze_share"] == pytest.approx(400 / (50 + 0.1 * 1000))
    run(probed, "ALTER TABLE scratch SET (autovacuum_vacuum_scale_factor = 0, autovacuum_enabled = off)")
    row = one(probed, "vacuum_need", relname=scratch)
    assert row["vacuum_share"] == pytest.approx(8.0)
    assert row["autovacuum_enabled"] is False
    assert row["freeze_share"] == pytest.approx(row["xid_age"] / 200_000_000)


def test_an_own_maximum_of_dead_rows_counts(probed, scratch):
    """From 18 on there is one, however large the table is."""
    if probed.major < 18:
        return
    run(
        probed, "DELETE FROM scratch WHERE id <= 400", "ALTER TABLE scratch SET (autovacuum_vacuum_max_threshold = 100)"
    )
    assert one(probed, "vacuum_need", relname=scratch)["vacuum_share"] == pytest.approx(4.0)


def test_sizes_are_as_of_the_last_vacuum(probed, scratch):
    """Then they are those of the files; what rows do not need is bloat, for who may read the table."""
    row = one(probed, "relation_sizes", "postgres", relname=scratch)
    assert row["size"] == value(probed, "SELECT pg_relation_size('scratch')")
    assert row["reltuples"] == 1000
    assert row["bloat"] < row["size"] / 5
    assert one(probed, "relation_sizes", "monitor", relname=scratch)["bloat"] is None
    run(probed, "DELETE FROM scratch WHERE id % 2 = 0", "VACUUM ANALYZE scratch")
    row = one(probed, "relation_sizes", "postgres", relname=scratch)
    assert row["bloat"] > row["size"] / 3


def test_an_invalid_index_comes_first(probed, scratch):
    """CREATE INDEX CONCURRENTLY that fails leaves one behind, which costs and is of no use."""
    run(probed, "INSERT INTO scratch VALUES (1, 'twice')")
    with probed.connect() as connection, pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute("CREATE UNIQUE INDEX CONCURRENTLY scratch_id ON scratch (id)")
    rows, _ = probed.ask("indexes")
    validity = [row["is_valid"] for row in rows]
    assert validity == sorted(validity)
    assert "scratch_id" in {row["indexrelname"] for row in rows if not row["is_valid"]}  # others may have left some too


def test_scans_of_an_index_are_counted(probed):
    """With the last one, on versions that remember it."""
    before = one(probed, "indexes", indexrelname="plain_pkey")
    run(probed, "SET enable_seqscan = off", "SELECT * FROM plain WHERE id = 7")
    after = one(probed, "indexes", indexrelname="plain_pkey")
    assert after["idx_scan"] > before["idx_scan"]
    assert (after["last_idx_scan"] is None) == (probed.major < 16)
    assert (after["is_primary"], after["is_unique"], after["relname"]) == (True, True, "plain")


def test_a_sequence_that_is_nearly_used_up_comes_first(probed):
    """For who may read it; another role sees that there is one. Before its first use it has no value."""
    run(probed, "CREATE SEQUENCE fresh", "CREATE SEQUENCE down INCREMENT -1 MINVALUE -100 MAXVALUE -1")
    try:
        assert one(probed, "sequences", "postgres", sequencename="fresh")["last_value"] is None
        run(probed, "SELECT setval('steps', 32000)", "SELECT setval('down', -50)")
        rows, left_out = probed.ask("sequences", "postgres")
        assert (rows[0]["sequencename"], rows[0]["last_value"], left_out) == ("steps", 32000, 0)
        assert rows[0]["used"] == pytest.approx(32000 / 32767)
        assert one(probed, "sequences", "postgres", sequencename="down")["used"] == pytest.approx(0.5)
        assert one(probed, "sequences", "monitor", sequencename="steps")["last_value"] is None
    finally:
        run(probed, "DROP SEQUENCE fresh, down")


def test_a_role_that_may_read_all_data_sees_values_and_bloat(probed, scratch):
    """As the page says: besides pg_monitor it has pg_read_all_data."""
    run(probed, "CREATE ROLE reader LOGIN IN ROLE pg_monitor, pg_read_all_data", "SELECT setval('steps', 32000)")
    try:
        assert one(probed, "sequences", "reader", sequencename="steps")["last_value"] == 32000
        assert one(probed, "relation_sizes", "reader", relname=scratch)["bloat"] is not None
    finally:
        run(probed, "DROP ROLE reader")


def test_a_sequence_that_somebody_alters_is_left_out_and_counted(probed):
    """To read it would wait for the lock."""
    run(probed, "CREATE SEQUENCE beside")
    probed.held("ALTER SEQUENCE steps INCREMENT 2")
    rows, left_out = probed.ask("sequences", "postgres")
    probed.close()
    run(probed, "DROP SEQUENCE beside")
    assert ([row["sequencename"] for row in rows], left_out) == (["beside"], 1)


def test_not_so_many_sequences_are_read_that_locks_run_out(probed):
    """Each that is read is locked until the transaction ends, in a table that all sessions share: 500 at most."""
    run(
        probed,
        "CREATE SCHEMA crowd",
        "SELECT setval('steps', 32000)",
        "DO $$ BEGIN FOR n IN 1..600 LOOP EXECUTE format('CREATE SEQUENCE crowd.s%s', n); END LOOP; END $$",
    )
    try:
        with probed.connect() as connection, connection.transaction():
            rows = connection.execute(probed.variant(CATALOGUE["sequences"], connection).sql).fetchall()
            held = "SELECT count(*) FROM pg_locks JOIN pg_class AS c ON c.oid = relation WHERE relkind = 'S'"
            locks = connection.execute(held).fetchone()[0]
        assert (len(rows), rows[0][-1]) == (300, 301)
        assert rows[0][1] == "steps"
        assert 0 < locks <= 500
    finally:
        run(probed, "DROP SCHEMA crowd CASCADE")


def test_calls_of_a_function_are_counted(probed):
    """Each overloaded one by itself."""
    run(probed, "SELECT twice(n) FROM generate_series(1, 50) AS n")
    row = one(probed, "functions", funcname="twice")
    assert row["calls"] >= 50
    assert row["arguments"] == "number integer"
    assert row["total_time"] >= row["self_time"] > 0


def test_extensions_are_listed_with_their_versions(probed):
    """And with the one that the server could bring."""
    row = one(probed, "extensions", extname="pg_stat_statements")
    assert row["extversion"] == row["default_version"] == {15: "1.10", 16: "1.10", 17: "1.11", 18: "1.12"}[probed.major]


def test_a_query_is_counted_by_its_id(probed):
    """In seconds, whatever its constants; its text is asked for apart."""
    run(probed, "SELECT pg_stat_statements_reset()", *["SELECT count(*) FROM plain WHERE id < 10"] * 7)
    (text,) = (row for row in probed.ask("query_texts")[0] if "count(*) FROM plain WHERE id" in row["query"])
    assert text["query"] == "SELECT count(*) FROM plain WHERE id < $1"
    row = one(probed, "statements", queryid=text["queryid"])
    assert (row["calls"], row["rows"], row["datname"], row["usename"]) == (7, 7, "probed", "postgres")
    assert 0 < row["min_exec_time"] <= row["mean_exec_time"] <= row["max_exec_time"] <= row["total_exec_time"] < 5
    assert row["shared_blks_hit"] > 0
    assert row["shared_blk_read_time"] is not None
    assert (row["stats_since"] is None) == (probed.major < 17)
    assert (row["parallel_workers_launched"] is None) == (probed.major < 18)


def test_the_extension_decides_and_not_the_server(probed):
    """After pg_upgrade the extension is an old one: a variant for it is run, in another schema too."""
    run(probed, "DROP EXTENSION pg_stat_statements", 'CREATE SCHEMA "odd one"')
    try:
        run(probed, "CREATE EXTENSION pg_stat_statements SCHEMA \"odd one\" VERSION '1.10'")
        rows, _ = probed.ask("statements", "postgres")
        assert rows
        assert all(row["stats_since"] is None for row in rows)
    finally:
        run(probed, 'DROP SCHEMA "odd one" CASCADE', "CREATE EXTENSION pg_stat_statements")


def test_what_is_left_out_is_counted(probed):
    """The largest and the busiest tables are kept, 300 of them."""
    run(
        probed,
        "CREATE SCHEMA crowd",
        "DO $$ BEGIN FOR n IN 1..320 LOOP EXECUTE format('CREATE TABLE crowd.t%s (id int)', n); END LOOP; END $$",
    )
    try:
        for name, beyond in {"tables": 22, "table_io": 22, "relation_sizes": 23}.items():
            rows, left_out = probed.ask(name)  # 320, plain, and two partitions: one table, in two files
            assert (len(rows), left_out) == (300, beyond)
        assert {"plain", "parts"} <= {row["relname"] for row in probed.ask("tables")[0]}
    finally:
        run(probed, "DROP SCHEMA crowd CASCADE")
