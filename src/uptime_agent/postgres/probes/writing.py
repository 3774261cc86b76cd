"""WAL, archiver, writers of buffers."""

from __future__ import annotations

from typing import Final

from ..contract import Probe
from .shape import counters, keys, moments, numbers, probe, texts, timers

WAL: Final = probe(
    "wal",
    "volume of the WAL, full page images, writes and syncs",
    {
        0: "pg_stat_wal AS w",
        18: """pg_stat_wal AS w CROSS JOIN (
            SELECT sum(writes) AS wal_write, sum(fsyncs) AS wal_sync, sum(write_time) AS wal_write_time,
                   sum(fsync_time) AS wal_sync_time FROM pg_stat_io WHERE object = 'wal') AS io""",
    },
    counters("wal_records wal_fpi"),
    counters("wal_bytes", unit="bytes"),
    counters("wal_fpi_bytes", since=19, unit="bytes"),
    counters("wal_buffers_full"),
    counters("wal_write wal_sync", note="from 18 on of pg_stat_io"),
    timers("wal_write_time wal_sync_time", note="0 while track_wal_io_timing is off"),
    counters(
        "lsn",
        """pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
           ELSE pg_current_wal_lsn() END, '0/0')""",
        unit="bytes",
        note="where the WAL ends, or on a standby how far it is replayed",
    ),
    moments("stats_reset"),
    every=60,
)

WAL_FILES: Final = probe(
    "wal_files",
    "files of WAL on disk",
    "pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}'",
    numbers("files", "count(*)"),
    numbers("size", "coalesce(sum(size), 0)", unit="bytes"),
    moments("oldest", "min(modification)"),
    moments("newest", "max(modification)"),
    every=300,
    is_cheap=False,  # reads a folder
    grants="a role in pg_monitor, for pg_ls_waldir()",
)

ARCHIVER: Final = probe(
    "archiver",
    "WAL that was archived, that could not be, and that waits for it",
    """pg_stat_archiver CROSS JOIN
       (SELECT count(*) AS ready FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready') AS waiting""",
    texts("archive_mode", "current_setting('archive_mode')"),
    numbers("ready", note="files that wait"),
    counters("archived_count"),
    texts("last_archived_wal"),
    moments("last_archived_time"),
    counters("failed_count", note="attempts"),
    texts("last_failed_wal"),
    moments("last_failed_time stats_reset"),
    every=60,
    grants="a role in pg_monitor, for pg_ls_archive_statusdir()",
)

# What backends wrote themselves left this view with 17, and 16 counts a file that grows by many blocks as one. It is in
# pg_stat_io: up to 17 it counts blocks, 18 bytes.
_BY_BACKENDS: Final = """(SELECT buffers_clean, maxwritten_clean, buffers_alloc, stats_reset FROM pg_stat_bgwriter) AS b
CROSS JOIN (SELECT sum({}) AS buffers_backend, sum(fsyncs) AS buffers_backend_fsync FROM pg_stat_io
    WHERE object = 'relation' AND backend_type NOT IN ('checkpointer', 'background writer')) AS io"""
BGWRITER: Final = probe(
    "bgwriter",
    "buffers that the background writer and backends write",
    {
        0: "pg_stat_bgwriter AS b",
        16: _BY_BACKENDS.format("coalesce(writes, 0) + coalesce(extends, 0)"),
        18: _BY_BACKENDS.format(
            "(coalesce(write_bytes, 0) + coalesce(extend_bytes, 0)) / current_setting('block_size')::bigint"
        ),
    },
    counters("buffers_clean", unit="blocks"),
    counters("maxwritten_clean"),
    counters("buffers_alloc", unit="blocks"),
    counters("buffers_backend", unit="blocks", note="from 16 on of pg_stat_io, which is reset by itself"),
    counters("buffers_backend_fsync", note="from 16 on of pg_stat_io"),
    moments("stats_reset", "b.stats_reset"),
    every=60,
)

CHECKPOINTER: Final = probe(
    "checkpointer",
    "checkpoints by the clock and on request, and what they cost",
    {0: "pg_stat_bgwriter", 17: "pg_stat_checkpointer"},
    counters("num_timed", {0: "checkpoints_timed", 17: "num_timed"}),
    counters("num_requested", {0: "checkpoints_req", 17: "num_requested"}),
    counters("num_done", since=18),
    counters("restartpoints_timed restartpoints_req restartpoints_done", since=17),
    timers("write_time", {0: "checkpoint_write_time / 1000", 17: "write_time / 1000"}),
    timers("sync_time", {0: "checkpoint_sync_time / 1000", 17: "sync_time / 1000"}),
    counters("buffers_written", {0: "buffers_checkpoint", 17: "buffers_written"}, unit="blocks"),
    counters("slru_written", since=18, unit="blocks"),
    moments("stats_reset"),
    every=60,
)

IO: Final = probe(
    "io",
    "who reads and writes what: nothing where that cannot happen, 0 where it did not",
    "pg_stat_io",
    keys("backend_type object context"),
    counters("reads"),
    counters("read_bytes", {16: "reads * op_bytes", 18: "read_bytes"}, unit="bytes"),
    timers("read_time", note="0 while track_io_timing is off"),
    counters("writes"),
    counters("write_bytes", {16: "writes * op_bytes", 18: "write_bytes"}, unit="bytes"),
    timers("write_time"),
    counters("writebacks"),
    timers("writeback_time"),
    counters("extends"),
    counters("extend_bytes", {16: "extends * op_bytes", 18: "extend_bytes"}, unit="bytes"),
    timers("extend_time"),
    counters("hits evictions reuses fsyncs"),
    timers("fsync_time"),
    moments("stats_reset"),
    since=16,
    order="backend_type, object, context",
    every=60,
)

NEW_NAMES: Final = {
    "CommitTs": "commit_timestamp",
    "MultiXactMember": "multixact_member",
    "MultiXactOffset": "multixact_offset",
    "Notify": "notify",
    "Serial": "serializable",
    "Subtrans": "subtransaction",
    "Xact": "transaction",
}
"""By names before version 17."""
_RENAMED: Final = " ".join(f"WHEN '{old}' THEN '{new}'" for old, new in NEW_NAMES.items())
SLRU: Final = probe(
    "slru",
    "caches of transaction states and the like, by the names that they have from 17 on",
    "pg_stat_slru",
    keys("name", {0: f"CASE name {_RENAMED} ELSE name END", 17: "name"}),
    counters("blks_zeroed blks_hit blks_read blks_written blks_exists", unit="blocks"),
    counters("flushes truncates"),
    moments("stats_reset"),
    order="name",
    every=300,
)

WRITING: Final[tuple[Probe, ...]] = (WAL, WAL_FILES, ARCHIVER, BGWRITER, CHECKPOINTER, IO, SLRU)
