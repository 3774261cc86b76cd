"""Standbys, slots, subscriptions.

WAL positions are bytes from its beginning: differences are distances.
"""

from __future__ import annotations

from typing import Final

from ..contract import Probe, Role
from .shape import (
    age_of,
    bytes_between,
    counters,
    flags,
    keys,
    moments,
    number_keys,
    numbers,
    probe,
    seconds,
    texts,
)

NOW: Final = """(SELECT CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
    ELSE pg_current_wal_lsn() END AS lsn) AS wal"""
"""On a standby, as far as received."""
START: Final = "'0/0'"

REPLICATION: Final = probe(
    "replication",
    "standbys, in bytes and seconds behind; a standby tells of those that follow it",
    f"""{NOW} CROSS JOIN pg_stat_replication AS r
        LEFT JOIN pg_replication_slots AS s ON s.active_pid = r.pid""",
    number_keys("pid"),
    texts("usename application_name"),
    texts("client_addr", "host(client_addr)"),
    texts("slot_name"),
    moments("backend_start"),
    texts("state sync_state"),
    numbers("sync_priority"),
    numbers("sent_behind", bytes_between("wal.lsn", "sent_lsn"), unit="bytes"),
    numbers("write_behind", bytes_between("wal.lsn", "write_lsn"), unit="bytes"),
    numbers("flush_behind", bytes_between("wal.lsn", "flush_lsn"), unit="bytes"),
    numbers("replay_behind", bytes_between("wal.lsn", "replay_lsn"), unit="bytes"),
    seconds("write_lag flush_lag replay_lag", "extract(epoch FROM {})", note="nothing while there is nothing to do"),
    numbers("xmin_age", "age(backend_xmin)", unit="transactions"),
    moments("reply_time"),
    order="replay_lsn NULLS FIRST",
    every=15,
    grants="a role in pg_monitor: else only that there is one is seen",
)

WAL_RECEIVER: Final = probe(
    "wal_receiver",
    "whether a standby is streaming, and from whom",
    "(SELECT 1) AS always LEFT JOIN pg_stat_wal_receiver AS r ON true",
    texts("status", "CASE WHEN pid IS NULL THEN 'none' ELSE status END", note="none: not streaming"),
    numbers("pid"),
    texts("slot_name sender_host"),
    numbers("sender_port receive_start_tli received_tli"),
    numbers("written_at", f"pg_wal_lsn_diff(written_lsn, {START})", unit="bytes"),
    numbers("flushed_at", f"pg_wal_lsn_diff(flushed_lsn, {START})", unit="bytes"),
    numbers("latest_end_at", f"pg_wal_lsn_diff(latest_end_lsn, {START})", unit="bytes"),
    moments("last_msg_send_time last_msg_receipt_time latest_end_time"),
    every=15,
    role=Role.STANDBY,
    grants="a role in pg_monitor: else the status is nothing",
)

_RECOVERY: Final = """(
    SELECT pg_last_wal_receive_lsn() AS received, pg_last_wal_replay_lsn() AS replayed,
           pg_last_xact_replay_timestamp() AS last_replayed, pg_is_in_recovery() AS is_in_recovery,
           CASE WHEN pg_is_in_recovery() THEN pg_get_wal_replay_pause_state() END AS pause_state
) AS r LEFT JOIN pg_stat_recovery_prefetch AS p ON true"""
RECOVERY: Final = probe(
    "recovery",
    "how far a standby has replayed, whether it is paused, and what it reads ahead",
    _RECOVERY,
    flags("is_in_recovery"),
    numbers("received_at", f"pg_wal_lsn_diff(received, {START})", unit="bytes"),
    numbers("replayed_at", f"pg_wal_lsn_diff(replayed, {START})", unit="bytes"),
    numbers("replay_behind", bytes_between("received", "replayed"), unit="bytes", note="received and not yet replayed"),
    seconds(
        "replay_delay",
        f"CASE WHEN received = replayed THEN 0 ELSE {age_of('last_replayed')} END",
        note="since the commit that was replayed last; 0 when all that was received has been",
    ),
    moments("last_replayed"),
    texts("pause_state"),
    counters("prefetch hit skip_init skip_new skip_fpw skip_rep"),
    numbers("wal_distance", unit="bytes"),
    numbers("block_distance", unit="blocks"),
    numbers("io_depth"),
    moments("stats_reset"),
    every=15,
    role=Role.STANDBY,
)

SLOTS: Final = probe(
    "slots",
    "replication slots: the WAL that they hold back, inactive and invalid ones",
    f"{NOW} CROSS JOIN pg_replication_slots AS s",
    keys("slot_name"),
    texts("slot_type plugin"),
    texts("datname", "s.database"),
    flags("temporary active"),
    numbers("active_pid"),
    numbers("xmin_age", "age(xmin)", unit="transactions"),
    numbers("catalog_xmin_age", "age(catalog_xmin)", unit="transactions"),
    numbers("retained", bytes_between("wal.lsn", "restart_lsn"), unit="bytes"),
    numbers("unconfirmed", bytes_between("wal.lsn", "confirmed_flush_lsn"), unit="bytes"),
    texts("wal_status"),
    numbers("safe_wal_size", unit="bytes", note="nothing where slots may hold back any amount"),
    flags("two_phase"),
    flags("conflicting", since=16),
    moments("inactive_since", since=17),
    texts("invalidation_reason", since=17),
    flags("failover synced", since=17),
    numbers("two_phase_at", f"pg_wal_lsn_diff(two_phase_at, {START})", since=18, unit="bytes"),
    order="restart_lsn NULLS FIRST",
    every=60,
)

SLOT_ACTIVITY: Final = probe(
    "slot_activity",
    "what logical decoding spilled to disk, streamed and sent",
    "pg_stat_replication_slots",
    keys("slot_name"),
    counters("spill_txns spill_count"),
    counters("spill_bytes", unit="bytes"),
    counters("stream_txns stream_count"),
    counters("stream_bytes", unit="bytes"),
    counters("total_txns"),
    counters("total_bytes", unit="bytes"),
    counters("mem_exceeded_count", since=19),
    moments("stats_reset"),
    order="spill_bytes DESC, total_bytes DESC",
    every=300,
)

_IS_APPLY: Final = {
    0: "w.pid IS NOT NULL AND w.relid IS NULL",
    16: "w.pid IS NOT NULL AND w.relid IS NULL AND w.leader_pid IS NULL",
    17: "w.worker_type = 'apply'",
}
_IS_SYNC: Final = {0: "w.relid IS NOT NULL", 17: "w.worker_type LIKE '%sync%'"}
_IS_PARALLEL: Final = {
    0: "false",
    16: "w.leader_pid IS NOT NULL AND w.relid IS NULL",
    17: "w.worker_type = 'parallel apply'",
}


def _workers(since: int) -> str:
    apply, sync, parallel = (each[max(v for v in each if v <= since)] for each in (_IS_APPLY, _IS_SYNC, _IS_PARALLEL))
    return f"""(
        SELECT s.oid AS subid, s.subname, d.datname, s.subenabled,
               count(*) FILTER (WHERE {apply}) AS apply_workers,
               count(*) FILTER (WHERE {sync}) AS sync_workers,
               count(*) FILTER (WHERE {parallel}) AS parallel_workers,
               max(w.pid) FILTER (WHERE {apply}) AS apply_pid,
               max(w.received_lsn) FILTER (WHERE {apply}) AS received_lsn,
               max(w.latest_end_lsn) FILTER (WHERE {apply}) AS latest_end_lsn,
               max(w.latest_end_time) FILTER (WHERE {apply}) AS latest_end_time,
               max(w.last_msg_send_time) FILTER (WHERE {apply}) AS last_msg_send_time,
               max(w.last_msg_receipt_time) FILTER (WHERE {apply}) AS last_msg_receipt_time
        FROM pg_subscription AS s JOIN pg_database AS d ON d.oid = s.subdbid
        LEFT JOIN pg_stat_subscription AS w ON w.subid = s.oid
        GROUP BY s.oid, s.subname, d.datname, s.subenabled
    ) AS s LEFT JOIN pg_stat_subscription_stats AS t USING (subid, subname)"""


SUBSCRIPTIONS: Final = probe(
    "subscriptions",
    "subscriptions: their workers, how far they are behind, errors and conflicts",
    {0: _workers(15), 16: _workers(16), 17: _workers(17)},
    keys("datname subname"),
    flags("enabled", "subenabled"),
    numbers("apply_workers sync_workers parallel_workers apply_pid"),
    numbers("received_at", f"pg_wal_lsn_diff(received_lsn, {START})", unit="bytes"),
    numbers("reported_behind", bytes_between("received_lsn", "latest_end_lsn"), unit="bytes"),
    moments("last_msg_send_time last_msg_receipt_time latest_end_time"),
    counters("apply_error_count"),
    counters("sync_table_error_count", {0: "sync_error_count", 19: "sync_table_error_count"}),
    counters("sync_seq_error_count", since=19),
    counters(
        "confl_insert_exists confl_update_origin_differs confl_update_exists confl_update_missing "
        "confl_delete_origin_differs confl_delete_missing confl_multiple_unique_conflicts",
        since=18,
    ),
    moments("stats_reset"),
    order="apply_workers, datname, subname",
    every=60,
)

REPLICATIONS: Final[tuple[Probe, ...]] = (REPLICATION, WAL_RECEIVER, RECOVERY, SLOTS, SLOT_ACTIVITY, SUBSCRIPTIONS)
