"""Progress of long commands."""

from __future__ import annotations

from typing import Final

from .shape import NEEDS_MONITOR, age_of, keys, number_keys, numbers, probe, seconds, texts

_COLUMNS: Final = (
    "command phase done total unit rounds items items_excluded items_skipped dead_tuple_bytes max_dead_tuple_bytes "
    "dead_items parts_done parts_total delay_time started_by mode backup_type"
).split()

_VACUUM: Final = {
    "command": "'VACUUM'",
    "phase": "phase",
    "done": "heap_blks_scanned",
    "total": "heap_blks_total",
    "unit": "'blocks'",
    "rounds": "index_vacuum_count",
}
_ANALYZE: Final = {
    "command": "'ANALYZE'",
    "phase": "phase",
    "done": "sample_blks_scanned",
    "total": "sample_blks_total",
    "unit": "'blocks'",
    "parts_done": "child_tables_done",
    "parts_total": "child_tables_total",
}
_INDEX: Final = {
    "command": "command",
    "phase": "phase",
    "done": "CASE WHEN blocks_total > 0 THEN blocks_done ELSE tuples_done END",
    "total": "CASE WHEN blocks_total > 0 THEN blocks_total ELSE tuples_total END",
    "unit": "CASE WHEN blocks_total > 0 THEN 'blocks' ELSE 'rows' END",
    "items": "tuples_done",
    "parts_done": "partitions_done",
    "parts_total": "partitions_total",
}
_CLUSTER: Final = {
    "command": "command",
    "phase": "phase",
    "done": "heap_blks_scanned",
    "total": "heap_blks_total",
    "unit": "'blocks'",
    "rounds": "index_rebuild_count",
    "items": "heap_tuples_written",
}
_COPY: Final = {
    "command": "command",
    "phase": "type",
    "done": "bytes_processed",
    "total": "nullif(bytes_total, 0)",
    "unit": "'bytes'",
    "items": "tuples_processed",
    "items_excluded": "tuples_excluded",
}
_BACKUP: Final = {
    "command": "'BASE_BACKUP'",
    "phase": "phase",
    "done": "backup_streamed",
    "total": "backup_total",
    "unit": "'bytes'",
    "parts_done": "tablespaces_streamed",
    "parts_total": "tablespaces_total",
    "relid": "NULL::oid",
}
_BY_NUMBER: Final = {"dead_items": "num_dead_tuples"}
_BY_BYTES: Final = {
    "dead_items": "num_dead_item_ids",
    "dead_tuple_bytes": "dead_tuple_bytes",
    "max_dead_tuple_bytes": "max_dead_tuple_bytes",
    "parts_done": "indexes_processed",
    "parts_total": "indexes_total",
}
_DELAY: Final = {"delay_time": "delay_time / 1000"}
_STARTED: Final = {"started_by": "started_by"}


def _views(major: int) -> str:
    delay = _DELAY if major >= 18 else {}
    started = _STARTED if major >= 19 else {}
    vacuum = _VACUUM | (_BY_BYTES if major >= 17 else _BY_NUMBER) | delay | started
    views = {
        "vacuum": vacuum | ({"mode": "mode"} if started else {}),
        "analyze": _ANALYZE | delay | started,
        "create_index": _INDEX,
        "repack" if started else "cluster": _CLUSTER,
        "copy": _COPY | ({"items_skipped": "tuples_skipped"} if major >= 17 else {}),
        "basebackup": _BACKUP | ({"backup_type": "backup_type"} if started else {}),
    }
    rows = " UNION ALL ".join(_view(name, reading) for name, reading in views.items())
    return f"""({rows}) AS p JOIN pg_stat_activity AS a USING (pid)
        LEFT JOIN pg_class AS c ON c.oid = p.relid AND a.datname = current_database()"""


def _view(name: str, reading: dict[str, str]) -> str:
    columns = ", ".join(f"{reading.get(column, 'NULL')}{_cast(column)} AS {column}" for column in _COLUMNS)
    return f"SELECT pid, {reading.get('relid', 'relid')} AS relid, {columns} FROM pg_stat_progress_{name}"


def _cast(column: str) -> str:
    if column == "delay_time":
        return "::double precision"
    return "::text" if column in {"command", "phase", "unit", "started_by", "mode", "backup_type"} else "::bigint"


PROGRESS: Final = probe(
    "progress",
    "VACUUM, ANALYZE, CREATE INDEX, CLUSTER, COPY and base backups that run now, and how far they are",
    {0: _views(15), 17: _views(17), 18: _views(18), 19: _views(19)},
    number_keys("pid"),
    keys("command"),
    texts("datname usename", "a.{}"),
    numbers("relid"),
    texts("relname", "c.relname", note="where it lies in the database of our connection"),
    texts("phase", "p.phase"),
    numbers("done total"),
    texts("unit", note="of done and total"),
    numbers("rounds", note="over the indexes"),
    numbers("items items_excluded items_skipped", note="rows"),
    numbers("dead_tuple_bytes max_dead_tuple_bytes", unit="bytes", since=17),
    numbers("dead_items"),
    numbers("parts_done parts_total", note="indexes, partitions or tablespaces"),
    seconds("delay_time", since=18, note="0 while track_cost_delay_timing is off"),
    texts("started_by mode backup_type", since=19),
    seconds("running", age_of("a.query_start")),
    order="a.query_start",
    every=15,
    grants=NEEDS_MONITOR,
)
