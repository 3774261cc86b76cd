"""Probes of replication say what is true, on each version, between real servers: standbys, slots, subscriptions."""

import contextlib

import psycopg
import pytest

import postgres_versions
from postgres_server import until


def execute(dsn, *statements):
    """Run these one after the other."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def pair(probed, standby_of):
    """Return the probed database and the dsn of its copy on a standby that is streaming."""
    return probed, standby_of(probed).dsn.replace("dbname=postgres", "dbname=probed")


def caught_up(probed, standby):
    """Wait until the standby has replayed all that its primary has written."""
    until(lambda: probed.rows("replication", slot_name="follower", replay_behind=0), "the standby has caught up")
    until(lambda: probed.rows("recovery", dsn=standby, replay_behind=0), "it knows so itself")


def test_a_standby_is_seen_from_both_sides(pair):
    """By its name and its slot on the primary; by itself as streaming from there."""
    probed, standby = pair
    caught_up(probed, standby)
    (row,) = probed.rows("replication", slot_name="follower")
    assert (row["application_name"], row["state"], row["sync_state"]) == ("follower", "streaming", "async")
    assert row["sent_behind"] == row["write_behind"] == row["flush_behind"] == 0
    (receiver,) = probed.ask("wal_receiver", dsn=standby)[0]
    assert (receiver["status"], receiver["slot_name"], receiver["received_tli"]) == ("streaming", "follower", 1)
    assert receiver["sender_host"] == str(probed.server.folder)
    (role,) = probed.ask("node_role", dsn=standby)[0]
    assert (role["is_in_recovery"], role["timeline"]) == (True, 1)
    assert role["system_identifier"] == probed.ask("node_role")[0][0]["system_identifier"]


def test_a_standby_that_pauses_falls_behind(pair):
    """In bytes, on both sides; an idle primary makes it no later."""
    probed, standby = pair
    execute(probed.dsn, "UPDATE plain SET words = words WHERE id = 1")  # before any commit there is no delay to tell
    until(lambda: probed.ask("recovery", dsn=standby)[0][0]["last_replayed"], "a commit is replayed")
    caught_up(probed, standby)
    execute(standby, "SELECT pg_wal_replay_pause()")
    try:
        execute(probed.dsn, "INSERT INTO plain SELECT n, 'x' FROM generate_series(10001, 11000) AS n")
        execute(probed.dsn, "DELETE FROM plain WHERE id > 10000")
        until(lambda: probed.ask("recovery", dsn=standby)[0][0]["replay_behind"] > 50_000, "it falls behind")
        until(
            lambda: probed.rows("replication", slot_name="follower")[0]["replay_behind"] > 50_000, "the primary knows"
        )
        (row,) = probed.ask("recovery", dsn=standby)[0]
        assert (row["is_in_recovery"], row["pause_state"]) == (True, "paused")
        assert row["received_at"] - row["replayed_at"] == row["replay_behind"]
        assert row["replay_delay"] > 0
    finally:
        execute(standby, "SELECT pg_wal_replay_resume()")
    caught_up(probed, standby)
    (row,) = probed.ask("recovery", dsn=standby)[0]
    assert (row["replay_delay"], row["pause_state"]) == (0, "not paused")


def test_a_primary_is_in_no_recovery(probed):
    """It has neither a place where it replays nor one that it has received from anybody."""
    (row,) = probed.ask("recovery")[0]
    assert not row["is_in_recovery"]
    assert row["received_at"] is row["replayed_at"] is row["replay_behind"] is row["replay_delay"] is None
    (receiver,) = probed.ask("wal_receiver")[0]
    assert (receiver["status"], receiver["pid"]) == ("none", None)


def test_a_query_in_the_way_of_replay_is_a_conflict(probed):
    """The standby cancels it and counts it. Then it is promoted: a new timeline of the same system."""
    standby = postgres_versions.standby(probed.server, "impatient", max_standby_streaming_delay="0")
    with contextlib.closing(standby):
        standby.start()
        dsn = standby.dsn.replace("dbname=postgres", "dbname=probed")
        until(lambda: probed.rows("replication", slot_name="impatient", state="streaming"), "it streams")
        with contextlib.closing(psycopg.connect(dsn, autocommit=True)) as reading:
            for statement in ("BEGIN", "SELECT count(*) FROM plain"):
                reading.execute(statement)
            execute(probed.dsn, "BEGIN", "LOCK TABLE plain", "COMMIT")
            until(lambda: probed.rows("conflicts", dsn=dsn, datname="probed", confl_lock=1), "it is counted")
        (row,) = probed.rows("conflicts", dsn=dsn, datname="probed")
        assert (row["confl_snapshot"], row["confl_active_logicalslot"]) == (0, None if probed.major < 16 else 0)
        execute(dsn, "SELECT pg_promote()")
        until(lambda: probed.rows("node_role", dsn=dsn, is_in_recovery=False), "it is promoted")
        (role,) = probed.ask("node_role", dsn=dsn)[0]
        assert role["timeline"] == 2
        assert probed.rows("wal_receiver", dsn=dsn, status="none")
    (slot,) = probed.rows("slots", slot_name="impatient")
    assert slot["slot_type"] == "physical"
    until(lambda: probed.rows("slots", slot_name="impatient", active=False), "the slot is free")
    execute(probed.dsn, "SELECT pg_drop_replication_slot('impatient')")


def test_a_slot_that_nobody_reads_holds_back_wal(probed):
    """More and more of it; 17 knows since when, and a logical one belongs to a database."""
    execute(
        probed.dsn,
        "SELECT pg_create_physical_replication_slot('idle', true)",
        "SELECT pg_create_logical_replication_slot('idle_too', 'test_decoding')",
    )
    try:
        (before,) = probed.rows("slots", slot_name="idle")
        execute(probed.dsn, "UPDATE plain SET words = words")
        until(
            lambda: probed.rows("slots", slot_name="idle")[0]["retained"] > before["retained"] + 10_000,
            "WAL is written",
        )
        (after,) = probed.rows("slots", slot_name="idle")
        assert (after["active"], after["wal_status"], after["datname"]) == (False, "reserved", None)
        assert (after["inactive_since"] is None) == (probed.major < 17)
        (logical,) = probed.rows("slots", slot_name="idle_too")
        assert (logical["datname"], logical["plugin"], logical["slot_type"]) == ("probed", "test_decoding", "logical")
        assert logical["unconfirmed"] > 10_000
        assert (logical["failover"] is None) == (probed.major < 17)
        assert logical["catalog_xmin_age"] >= 0
    finally:
        execute(probed.dsn, "SELECT pg_drop_replication_slot('idle'), pg_drop_replication_slot('idle_too')")


def test_an_invalid_slot_says_so(probed):
    """The server dropped the WAL that it holds back, as it was told to; from 17 on with the reason."""
    with contextlib.closing(
        postgres_versions.server(probed.major, max_slot_wal_keep_size="1MB", max_wal_size="2MB")
    ) as server:
        server.start()
        execute(
            server.dsn,
            "CREATE ROLE monitor LOGIN IN ROLE pg_monitor",
            "SELECT pg_create_physical_replication_slot('lost', true)",
            *["SELECT pg_logical_emit_message(true, 'fill', repeat('x', 2000000))", "SELECT pg_switch_wal()"] * 3,
            "CHECKPOINT",
        )
        until(lambda: probed.rows("slots", dsn=server.dsn, wal_status="lost"), "the slot is lost")
        (row,) = probed.rows("slots", dsn=server.dsn, slot_name="lost")
        assert row["invalidation_reason"] == ("wal_removed" if probed.major >= 17 else None)


def test_a_subscription_is_followed(probed):
    """Its worker, what its slot sent, and the error that a row makes which is there already."""
    there = probed.dsn.replace("dbname=probed", "dbname=subscriber")
    execute(
        probed.dsn,
        "CREATE DATABASE subscriber TEMPLATE template0",
        "CREATE TABLE told (id int PRIMARY KEY)",
        "CREATE PUBLICATION everything FOR TABLE told",
        "SELECT pg_create_logical_replication_slot('feed', 'pgoutput')",
    )
    execute(
        there,
        "CREATE TABLE told (id int PRIMARY KEY)",
        "INSERT INTO told VALUES (2)",
        f"CREATE SUBSCRIPTION feed CONNECTION '{probed.dsn}' PUBLICATION everything "
        "WITH (create_slot = false, copy_data = false, slot_name = 'feed')",
    )
    try:
        until(lambda: probed.rows("subscriptions", subname="feed", apply_workers=1), "its worker runs")
        execute(probed.dsn, "INSERT INTO told VALUES (1)")
        until(lambda: probed.rows("slot_activity", slot_name="feed")[0]["total_txns"] >= 1, "the slot has sent it")
        (row,) = probed.rows("subscriptions", subname="feed")
        assert (row["datname"], row["enabled"], row["sync_workers"], row["parallel_workers"]) == (
            "subscriber",
            True,
            0,
            0,
        )
        execute(probed.dsn, "INSERT INTO told VALUES (2)")
        until(lambda: probed.rows("subscriptions", subname="feed")[0]["apply_error_count"] >= 1, "the error is counted")
        (row,) = probed.rows("subscriptions", subname="feed")
        assert row["sync_table_error_count"] == 0
        if probed.major >= 18:
            assert row["confl_insert_exists"] >= 1
        else:
            assert row["confl_insert_exists"] is None
    finally:
        execute(
            there,
            "ALTER SUBSCRIPTION feed DISABLE",
            "ALTER SUBSCRIPTION feed SET (slot_name = NONE)",
            "DROP SUBSCRIPTION feed",
        )
        until(lambda: probed.rows("slots", slot_name="feed", active=False), "the slot is free")
        execute(
            probed.dsn,
            "SELECT pg_drop_replication_slot('feed')",
            "DROP TABLE told CASCADE",
            "DROP PUBLICATION everything",
            "DROP DATABASE subscriber (FORCE)",
        )
