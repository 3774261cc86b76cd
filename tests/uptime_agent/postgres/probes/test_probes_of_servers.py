"""Probes of a server say what is true, on each version: what it is, how it is set, what it writes."""

import contextlib

import anyio.lowlevel
import psycopg

import postgres_versions
from kit import wait_until
from postgres_server import until
from uptime_agent.postgres.probes import CATALOGUE

FLUSH = "SELECT pg_stat_force_next_flush()"
SLRUS = {
    "commit_timestamp",
    "multixact_member",
    "multixact_offset",
    "notify",
    "other",
    "serializable",
    "subtransaction",
    "transaction",
}


def only(probed, name, dsn=None):
    """Return the one row of a probe."""
    (row,), _ = probed.ask(name, dsn=dsn)
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


class Reached:
    """A connection as the agent gives it to a callable, which remembers what it was asked."""

    def __init__(self):
        self.asked = []
        self.phases = {"connect": 0.5, "login": 0.25}

    async def fetch(self, sql):
        await anyio.lowlevel.checkpoint()
        self.asked.append(sql)
        self.phases["first_row"] = 0.125
        return ((1,),)


async def test_connectivity_tells_the_parts_of_the_way():
    """Nothing for a part that there was not, as TLS over a Unix socket."""
    connection = Reached()
    (row,) = await CATALOGUE["connectivity"].call(connection)
    assert row == (None, 0.5, None, 0.25, 0.125, 0.875)
    assert len(connection.asked) == 1


def test_a_server_is_told_by_what_it_is(probed):
    """Its system, its timeline, its version, and how many connections it has and may have."""
    row = only(probed, "node_role")
    assert (row["is_in_recovery"], row["timeline"], row["max_connections"]) == (False, 1, 60)
    assert row["system_identifier"] == value(probed, "SELECT system_identifier FROM pg_control_system()")
    assert row["server_version_num"] // 10_000 == probed.major
    assert row["reserved_connections"] == 3
    probed.held("SELECT 1")
    probed.held("SELECT 1")
    assert only(probed, "node_role")["connections"] >= 3  # and the one that asks


def test_a_setting_that_was_changed_is_listed(probed):
    """With what waits for a restart; what may hold a password, without it; what our own session set, not at all."""
    secret = "ALTER SYSTEM SET primary_conninfo = 'host=elsewhere password=hunter2'"
    run(probed, "ALTER SYSTEM SET work_mem = '5MB'", secret, "ALTER SYSTEM SET port = 5433", "SELECT pg_reload_conf()")
    try:
        until(lambda: probed.rows("settings", name="work_mem"), "the configuration is read")
        rows = {row["name"]: row for row in probed.ask("settings")[0]}
        assert (rows["work_mem"]["setting"], rows["work_mem"]["unit"]) == ("5120", "kB")
        assert rows["work_mem"]["source"] == "configuration file"
        assert rows["primary_conninfo"]["setting"] == "(hidden)"
        assert rows["port"]["pending_restart"]
        assert "hunter2" not in str(rows)
        assert not {"lock_timeout", "search_path", "application_name", "transaction_read_only"} & set(rows)
    finally:
        run(probed, "ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")


def test_a_role_that_may_do_much_is_listed(probed):
    """And each database with how it was made."""
    run(probed, "CREATE ROLE mighty LOGIN SUPERUSER VALID UNTIL '2020-01-01'")
    try:
        (role,) = probed.rows("inventory", kind="role", name="mighty")
        assert (role["about"], role["risk"]) == ("login", "superuser, expired")
        (database,) = probed.rows("inventory", kind="database", name="template0")
        assert database["about"] == "UTF8, C, template, takes no connections"
        assert not probed.rows("inventory", name="monitor")
    finally:
        run(probed, "DROP ROLE mighty")


def test_connections_are_told_by_how_they_are_encrypted(probed):
    """Over a Unix socket they are not."""
    probed.held("SELECT 1")
    (row,) = probed.rows("encryption", is_local=True)
    assert row["connections"] >= 2
    assert (row["ssl"], row["cipher"], row["gss_encrypted"]) == (False, None, False)
    assert (row["credentials_delegated"] is None) == (probed.major < 16)


def test_wal_is_counted(probed):
    """As it is written: its volume, and where it ends."""
    before = only(probed, "wal")
    run(
        probed,
        "CREATE TABLE wide AS SELECT n, repeat('x', 100) AS w FROM generate_series(1, 2000) n",
        "DROP TABLE wide",
    )
    grown = only(probed, "wal")["lsn"] - before["lsn"]
    assert grown > 100_000
    wait_until(lambda: only(probed, "wal")["wal_bytes"] - before["wal_bytes"] > grown / 2)  # a server counts at leisure
    after = only(probed, "wal")
    assert after["wal_records"] > before["wal_records"] + 1000
    assert all(after[name] is not None for name in ("wal_write", "wal_sync", "wal_write_time", "wal_sync_time"))


def test_files_of_wal_are_counted(probed):
    """Each is as large as the server was made to make them."""
    row = only(probed, "wal_files")
    assert row["files"] >= 1
    assert row["size"] == row["files"] * value(
        probed, "SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size'"
    )
    assert row["oldest"] <= row["newest"]


def test_checkpoints_are_counted(probed):
    """In one shape, whether the background writer's view has them or one of their own."""
    before = only(probed, "checkpointer")
    run(probed, "UPDATE plain SET words = words", "CHECKPOINT")
    until(lambda: only(probed, "checkpointer")["num_requested"] > before["num_requested"], "the checkpoint is counted")
    after = only(probed, "checkpointer")
    assert after["buffers_written"] > before["buffers_written"]
    assert 0 <= after["write_time"] - before["write_time"] < 60
    assert (after["num_done"] is None) == (probed.major < 18)
    assert (after["restartpoints_done"] is None) == (probed.major < 17)


def test_what_backends_write_themselves_is_counted(probed):
    """A table that is filled extends its file: by the backend itself, in blocks, on every version."""
    before = only(probed, "bgwriter")
    fill = "CREATE TABLE filled AS SELECT repeat('x', 500) AS w FROM generate_series(1, 5000)"
    run(probed, fill, "DROP TABLE filled", "CHECKPOINT")  # on 15 the checkpointer counts them for all
    until(
        lambda: only(probed, "bgwriter")["buffers_backend"] - before["buffers_backend"] >= 300, "the blocks are counted"
    )
    assert only(probed, "bgwriter")["buffers_backend"] - before["buffers_backend"] < 5000


def test_io_is_counted_in_bytes(probed):
    """Nothing where it cannot happen. 15 has no such view."""
    if probed.major < 16:
        return
    wanted = {"backend_type": "client backend", "object": "relation", "context": "normal"}
    (before,) = probed.rows("io", **wanted)
    run(
        probed,
        "CREATE TABLE filled (w text)",
        "INSERT INTO filled SELECT repeat('x', 500) FROM generate_series(1, 2000)",
    )
    run(probed, "DROP TABLE filled")
    (after,) = probed.rows("io", **wanted)
    assert after["extend_bytes"] - before["extend_bytes"] >= 100 * 8192
    assert after["extend_time"] >= before["extend_time"]
    (checkpointer,) = probed.rows("io", backend_type="checkpointer", object="relation", context="normal")
    assert checkpointer["reads"] is None
    assert checkpointer["writes"] is not None


def test_slrus_have_the_names_of_today(probed):
    """Those before 17 are mapped, so that a graph goes on over an upgrade."""
    assert {row["name"] for row in probed.ask("slru")[0]} == SLRUS


def test_what_waits_for_the_archive_is_counted(probed):
    """An archive that fails: the files wait, and each attempt is counted. A restart shows."""
    with contextlib.closing(
        postgres_versions.server(probed.major, archive_mode="on", archive_command="false")
    ) as server:
        server.start()
        dsn = server.dsn
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE ROLE monitor LOGIN IN ROLE pg_monitor")
            connection.execute("SELECT pg_switch_wal()")
        until(lambda: only(probed, "archiver", dsn)["failed_count"] >= 1, "the archive fails")
        row = only(probed, "archiver", dsn)
        assert (row["archive_mode"], row["archived_count"]) == ("on", 0)
        assert row["ready"] >= 1
        assert row["last_failed_wal"] is not None
        before = only(probed, "node_role", dsn)
        server.restart("immediate")  # at its leisure it would try to archive first
        after = only(probed, "node_role", dsn)
        assert after["started"] > before["started"]
        assert after["system_identifier"] == before["system_identifier"]
