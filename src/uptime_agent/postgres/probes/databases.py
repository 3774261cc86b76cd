"""Activity and size of databases, and distance to a wraparound."""

from __future__ import annotations

from typing import Final

from ..contract import Probe, Role
from .shape import counters, keys, moments, number_keys, numbers, probe, timers

DATABASE: Final = probe(
    "database",
    "transactions, blocks, rows, temporary files, deadlocks and sessions of each database",
    "pg_stat_database",
    number_keys("datid", note="0: objects that all databases share"),
    keys("datname"),
    numbers("numbackends"),
    counters("xact_commit xact_rollback"),
    counters("blks_read blks_hit", unit="blocks"),
    counters("tup_returned tup_fetched tup_inserted tup_updated tup_deleted conflicts temp_files"),
    counters("temp_bytes", unit="bytes"),
    counters("deadlocks"),
    counters("checksum_failures", note="nothing where checksums are off"),
    moments("checksum_last_failure"),
    timers("blk_read_time blk_write_time", note="0 while track_io_timing is off"),
    timers("session_time active_time idle_in_transaction_time"),
    counters("sessions sessions_abandoned sessions_fatal sessions_killed"),
    counters("parallel_workers_to_launch parallel_workers_launched", since=18),
    moments("stats_reset"),
    order="xact_commit DESC",
    every=60,
)

DATABASE_SIZE: Final = probe(
    "database_size",
    "bytes of each database on disk",
    "pg_database AS d",
    keys("datname"),
    numbers(
        "size",
        """CASE WHEN has_database_privilege(d.oid, 'CONNECT') OR pg_has_role('pg_read_all_stats', 'USAGE')
           THEN pg_database_size(d.oid) END""",
        unit="bytes",
    ),
    order="datname",
    every=900,
    is_cheap=False,  # walks over all files
    timeout=30.0,
    grants="CONNECT on the database, or a role in pg_monitor: else the size is nothing",
)

LAST_XID: Final = "2147483647 - 3000000"
"""Beyond that distance the server refuses writes."""
_LIMITS: Final = f"""
    SELECT datname, age(datfrozenxid) AS xid_age, mxid_age(datminmxid) AS mxid_age,
           current_setting('autovacuum_freeze_max_age')::bigint AS xid_autovacuum,
           greatest(current_setting('vacuum_failsafe_age')::bigint,
                    current_setting('autovacuum_freeze_max_age')::bigint * 1.05) AS xid_failsafe,
           current_setting('autovacuum_multixact_freeze_max_age')::bigint AS mxid_autovacuum,
           greatest(current_setting('vacuum_multixact_failsafe_age')::bigint,
                    current_setting('autovacuum_multixact_freeze_max_age')::bigint * 1.05) AS mxid_failsafe,
           {LAST_XID} AS stop
    FROM pg_database
"""
WRAPAROUND: Final = probe(
    "wraparound",
    "how far each database is from what is done, and then refused, against a wraparound of transaction ids",
    {0: f"({_LIMITS}) AS d", 19: f"({_LIMITS}) AS d LEFT JOIN pg_get_multixact_stats() AS m ON true"},
    keys("datname"),
    numbers("xid_age mxid_age", unit="transactions"),
    numbers("xid_to_autovacuum", "xid_autovacuum - xid_age", unit="transactions", note="until autovacuum is forced"),
    numbers("xid_to_failsafe", "xid_failsafe - xid_age", unit="transactions"),
    numbers("xid_to_stop", "stop - xid_age", unit="transactions", note="until the server refuses to write"),
    numbers("mxid_to_autovacuum", "mxid_autovacuum - mxid_age", unit="transactions"),
    numbers("mxid_to_failsafe", "mxid_failsafe - mxid_age", unit="transactions"),
    numbers("mxid_to_stop", "stop - mxid_age", unit="transactions"),
    numbers("multixact_members", "num_members", since=19, note="of the whole server"),
    numbers("multixact_size", "members_size", since=19, unit="bytes", note="of the whole server"),
    order="greatest(xid_age, mxid_age) DESC",
    every=300,
)

CONFLICTS: Final = probe(
    "conflicts",
    "queries that a standby cancelled because they were in the way of replay",
    "pg_stat_database_conflicts",
    number_keys("datid"),
    keys("datname"),
    counters("confl_tablespace confl_lock confl_snapshot confl_bufferpin confl_deadlock"),
    counters("confl_active_logicalslot", since=16),
    moments("stats_reset", since=19),
    order="confl_snapshot + confl_lock + confl_bufferpin DESC",
    every=300,
    role=Role.STANDBY,
)

DATABASES: Final[tuple[Probe, ...]] = (DATABASE, DATABASE_SIZE, WRAPAROUND, CONFLICTS)
