"""Probes of sessions say what is true: a test makes a thing happen, on each version, and the probe sees it."""

import contextlib

from postgres_server import until

OURS = "timerqueue"  # as conftest.py calls the connections of probes


def test_who_waits_for_whom(probed):
    """A row for each pair, with the relation, the lock and what the other is at; who is waited for need not wait."""
    first = probed.held("LOCK TABLE plain", application_name="first")
    second = probed.waits("SELECT 1 FROM plain", application_name="second")
    (row,) = probed.rows("blocking", pid=second)
    assert row["blocker_pid"] == first.info.backend_pid
    assert (row["relname"], row["locktype"], row["mode"]) == ("plain", "relation", "AccessShareLock")
    assert (row["application_name"], row["blocker_application_name"]) == ("second", "first")
    assert (row["blocker_state"], row["blocker_waits"]) == ("idle in transaction", False)
    assert (row["query"], row["blocker_query"]) == ("SELECT 1 FROM plain", "LOCK TABLE plain")
    assert 0 <= row["waited"] <= row["blocker_xact_age"]


def test_one_who_waits_can_be_waited_for(probed):
    """So that the head of a line can be told from its middle."""
    first = probed.held("SELECT 1 FROM plain", application_name="first")
    second = probed.waits("BEGIN; LOCK TABLE plain", application_name="second")
    third = probed.waits("SELECT 1 FROM plain", application_name="third")
    waits = {(row["pid"], row["blocker_pid"]): row["blocker_waits"] for row in probed.ask("blocking")[0]}
    assert waits == {(second, first.info.backend_pid): False, (third, second): True}


def test_a_prepared_transaction_blocks_as_pid_0(probed):
    """It has no session, and is seen by its identifier until somebody ends it."""
    with probed.connect() as connection:
        for statement in ("BEGIN", "LOCK TABLE plain", "PREPARE TRANSACTION 'left behind'"):
            connection.execute(statement)
        try:
            pid = probed.waits("SELECT 1 FROM plain")
            (row,) = probed.rows("blocking", pid=pid)
            assert (row["blocker_pid"], row["blocker_usename"]) == (0, None)
            (prepared,) = probed.rows("prepared_xacts", gid="left behind")
            assert (prepared["datname"], prepared["owner"]) == ("probed", "postgres")
            assert prepared["age"] >= 0
            (held,) = probed.rows("long_xacts", kind="prepared transaction")
            assert (held["name"], held["datname"], held["state"]) == ("left behind", "probed", "prepared")
        finally:
            connection.execute("ROLLBACK PREPARED 'left behind'")


def test_sessions_are_counted_by_what_they_do(probed):
    """Those of one application in one state are one row; ours are in none."""
    for _ in range(3):
        probed.held("SELECT 1", application_name="web", user="monitor")
    with probed.connect("monitor", application_name=OURS):
        (row,) = probed.rows("activity", application_name="web")
        ours = probed.rows("activity", application_name=OURS)
    assert (row["sessions"], row["state"], row["usename"]) == (3, "idle in transaction", "monitor")
    assert (row["datname"], row["backend_type"]) == ("probed", "client backend")
    assert row["oldest_xact"] >= row["oldest_state"] >= 0
    assert ours == []


def test_a_role_without_the_right_sees_less(probed):
    """That it sees others' sessions at all, but not what they do: as `grants` says."""
    probed.held("SELECT 'secret of others'", application_name="web")
    assert probed.rows("activity", "nobody_special", application_name="web")[0]["state"] is None
    assert probed.rows("activity", "monitor", application_name="web")[0]["state"] == "idle in transaction"
    assert not any("others" in (row["query"] or "") for row in probed.ask("long_xacts", "nobody_special")[0])


def test_the_oldest_transaction_is_found(probed):
    """With what holds vacuum back: its age in transactions grows with those that begin after it."""
    held = probed.held(
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT 'the culprit'", application_name="report"
    )
    with probed.connect() as connection:
        for _ in range(5):
            connection.execute("SELECT pg_current_xact_id()")
    (row,) = probed.rows("long_xacts", application_name="report")
    assert (row["kind"], row["name"]) == ("client backend", str(held.info.backend_pid))
    assert (row["state"], row["query"]) == ("idle in transaction", "SELECT 'the culprit'")
    assert row["xact_age"] >= row["state_age"] >= 0
    assert row["xmin_age"] >= 5


def test_a_slot_holds_back_vacuum_too(probed):
    """Without a session: its rows would be searched for in vain among transactions."""
    with probed.connect() as connection:
        connection.execute("SELECT pg_create_logical_replication_slot('forgotten', 'test_decoding')")
        try:
            (row,) = probed.rows("long_xacts", name="forgotten")
        finally:
            connection.execute("SELECT pg_drop_replication_slot('forgotten')")
    assert (row["kind"], row["state"], row["datname"]) == ("replication slot", "inactive", "probed")
    assert row["xmin_age"] >= 0


def test_locks_are_counted(probed):
    """By database, type and mode, granted and not."""
    probed.held("LOCK TABLE plain, parts_1, parts_2 IN SHARE MODE")
    probed.waits("INSERT INTO plain VALUES (-1)")
    (granted,) = probed.rows("locks", datname="probed", locktype="relation", mode="ShareLock", granted=True)
    (waiting,) = probed.rows("locks", datname="probed", locktype="relation", mode="RowExclusiveLock", granted=False)
    assert (granted["locks"], waiting["locks"]) == (3, 1)


def test_a_password_in_a_query_is_not_kept(probed):
    """Neither where it is the blocker's nor where it is the oldest one's."""
    probed.held("CREATE ROLE someone PASSWORD 'hunter2'", application_name="admin")
    (row,) = probed.rows("long_xacts", application_name="admin")
    assert row["query"] == "CREATE ROLE someone PASSWORD '***'"


def test_a_vacuum_that_runs_is_seen(probed):
    """In the same columns whether the version counts dead rows or their bytes."""
    with contextlib.closing(probed.connect()) as slow:
        slow.execute("SET vacuum_cost_delay = '100ms'")
        slow.execute("SET vacuum_cost_limit = 1")
        slow.pgconn.send_query(b"VACUUM (DISABLE_PAGE_SKIPPING) plain")
        until(lambda: probed.rows("progress", command="VACUUM"), "VACUUM runs")
        (row,) = probed.rows("progress", command="VACUUM", pid=slow.info.backend_pid)
        slow.cancel_safe()
    assert (row["relname"], row["unit"]) == ("plain", "blocks")
    assert 0 <= row["done"] <= row["total"]
    assert (row["max_dead_tuple_bytes"] is None) == (probed.major < 17)
    assert (row["delay_time"] is None) == (probed.major < 18)
    assert row["running"] >= 0


def test_a_copy_that_runs_is_seen(probed):
    """With what it has taken in."""
    with contextlib.closing(probed.connect()) as connection:
        connection.pgconn.exec_(b"COPY plain FROM STDIN")
        until(lambda: probed.rows("progress", command="COPY FROM"), "COPY runs")
        (row,) = probed.rows("progress", command="COPY FROM")
    assert (row["relname"], row["unit"], row["phase"]) == ("plain", "bytes", "PIPE")


def test_an_index_that_is_made_is_seen(probed):
    """It waits here for a transaction that began before it."""
    probed.held("INSERT INTO plain VALUES (-1)")
    pid = probed.waits("CREATE INDEX CONCURRENTLY plain_words ON plain (words)")
    (row,) = probed.rows("progress", pid=pid)
    assert (row["command"], row["relname"]) == ("CREATE INDEX CONCURRENTLY", "plain")
    assert row["phase"].startswith("waiting for writers")


def test_nothing_runs_and_nothing_is_stored(probed):
    """Most of the time: no row at all, once what other tests have cancelled is gone."""
    for name in ("progress", "blocking"):
        until(lambda name=name: probed.ask(name) == ([], 0), "all is quiet")
