"""Tables and indexes of a database. Partitions count with their table.

No query waits for ALTER TABLE: sizes are `relpages`, as of the last VACUUM or ANALYZE.
"""

from __future__ import annotations

from typing import Final

from ..contract import Probe, Scope
from .shape import counters, flags, keys, moments, numbers, probe, shares, texts, timers

MAX_TABLES: Final = 300
BLOCK: Final = "current_setting('block_size')::bigint"
_ROOT: Final = "CASE WHEN c.relispartition THEN coalesce(pg_partition_root(c.oid), c.oid) ELSE c.oid END"
_SUMS: Final = (
    "seq_scan seq_tup_read idx_scan idx_tup_fetch n_tup_ins n_tup_upd n_tup_del n_tup_hot_upd n_live_tup n_dead_tup "
    "n_mod_since_analyze n_ins_since_vacuum vacuum_count autovacuum_count analyze_count autoanalyze_count"
).split()
_TIMES: Final = "total_vacuum_time total_autovacuum_time total_analyze_time total_autoanalyze_time".split()
_LATEST: Final = "last_vacuum last_autovacuum last_analyze last_autoanalyze".split()
_RANKED: Final = """(
    SELECT *, row_number() OVER (ORDER BY {change} DESC NULLS LAST) AS by_change,
           row_number() OVER (ORDER BY size DESC NULLS LAST) AS by_size
    FROM ({relations}) AS whole
) AS t"""
_BEST: Final = "least(by_change, by_size)"


def _all_of(view: str, sums: list[str], latest: list[str]) -> str:
    added = ", ".join(f"sum(s.{name}) AS {name}" for name in sums)
    newest = "".join(f", max(s.{name}) AS {name}" for name in latest)
    return f"""
        SELECT n.nspname AS schemaname, r.relname, {added}{newest},
               count(*) FILTER (WHERE c.relispartition) AS partitions, sum(c.relpages::bigint) * {BLOCK} AS size
        FROM {view} AS s JOIN pg_class AS c ON c.oid = s.relid AND c.relpersistence <> 't'
        JOIN pg_class AS r ON r.oid = {_ROOT} JOIN pg_namespace AS n ON n.oid = r.relnamespace
        GROUP BY n.nspname, r.relname"""


def _tables(major: int) -> str:
    sums = [*_SUMS, *(["n_tup_newpage_upd"] if major >= 16 else []), *(_TIMES if major >= 18 else [])]
    latest = [*_LATEST, *(["last_seq_scan", "last_idx_scan"] if major >= 16 else [])]
    latest += ["stats_reset"] if major >= 19 else []
    change = "n_tup_ins + n_tup_upd + n_tup_del + coalesce(seq_scan, 0) + coalesce(idx_scan, 0)"
    return _RANKED.format(change=change, relations=_all_of("pg_stat_user_tables", sums, latest))


TABLES: Final = probe(
    "tables",
    "scans, rows, vacuum and analyze of each table",
    {0: _tables(15), 16: _tables(16), 18: _tables(18), 19: _tables(19)},
    keys("schemaname relname"),
    numbers("partitions"),
    numbers("size", unit="bytes", note="without indexes, as of the last VACUUM or ANALYZE"),
    counters("seq_scan"),
    moments("last_seq_scan", since=16),
    counters("seq_tup_read idx_scan"),
    moments("last_idx_scan", since=16),
    counters("idx_tup_fetch n_tup_ins n_tup_upd n_tup_del n_tup_hot_upd"),
    counters("n_tup_newpage_upd", since=16),
    numbers("n_live_tup n_dead_tup n_mod_since_analyze n_ins_since_vacuum"),
    moments(" ".join(_LATEST)),
    counters("vacuum_count autovacuum_count analyze_count autoanalyze_count"),
    timers(" ".join(_TIMES), since=18),
    moments("stats_reset", since=19),
    order=_BEST,
    scope=Scope.DATABASE,
    every=300,
    is_cheap=False,
)

_IO_SUMS: Final = [f"{part}_blks_{what}" for part in ("heap", "idx", "toast", "tidx") for what in ("read", "hit")]
TABLE_IO: Final = probe(
    "table_io",
    "blocks of each table, its indexes and its TOAST that were read and found in shared buffers",
    _RANKED.format(
        change="heap_blks_read + coalesce(idx_blks_read, 0)",
        relations=_all_of("pg_statio_user_tables", _IO_SUMS, []),
    ),
    keys("schemaname relname"),
    counters(" ".join(_IO_SUMS), unit="blocks"),
    order=_BEST,
    scope=Scope.DATABASE,
    every=600,
    is_cheap=False,
)


def _indexes(major: int) -> str:
    last = "max(s.last_idx_scan)" if major >= 16 else "NULL::timestamptz"
    reset = "max(s.stats_reset)" if major >= 19 else "NULL::timestamptz"
    return _RANKED.format(
        change="idx_scan",
        relations=f"""
        SELECT n.nspname AS schemaname, t.relname, r.relname AS indexrelname, sum(s.idx_scan) AS idx_scan,
               sum(s.idx_tup_read) AS idx_tup_read, sum(s.idx_tup_fetch) AS idx_tup_fetch,
               {last} AS last_idx_scan, {reset} AS stats_reset, sum(c.relpages::bigint) * {BLOCK} AS size,
               bool_and(i.indisvalid) AS is_valid, bool_and(i.indisready) AS is_ready,
               bool_or(i.indisunique) AS is_unique, bool_or(i.indisprimary) AS is_primary
        FROM pg_stat_user_indexes AS s JOIN pg_index AS i USING (indexrelid)
        JOIN pg_class AS c ON c.oid = s.indexrelid AND c.relpersistence <> 't'
        JOIN pg_class AS r ON r.oid = {_ROOT} JOIN pg_index AS ri ON ri.indexrelid = r.oid
        JOIN pg_class AS t ON t.oid = ri.indrelid JOIN pg_namespace AS n ON n.oid = r.relnamespace
        GROUP BY n.nspname, t.relname, r.relname""",
    )


INDEXES: Final = probe(
    "indexes",
    "use of each index, and which are invalid",
    {0: _indexes(15), 16: _indexes(16), 19: _indexes(19)},
    keys("schemaname relname indexrelname"),
    counters("idx_scan idx_tup_read idx_tup_fetch"),
    moments("last_idx_scan", since=16),
    flags("is_valid is_ready is_unique is_primary"),
    numbers("size", unit="bytes", note="as of the last VACUUM or ANALYZE"),
    moments("stats_reset", since=19),
    order=f"is_valid AND is_ready, {_BEST}",
    scope=Scope.DATABASE,
    every=900,
    is_cheap=False,
)

# The size of a table's rows by the widths of their columns. A role sees the columns that it may read.
_SIZES: Final = f"""(
    SELECT n.nspname AS schemaname, c.relname, c.relkind, c.relpages::bigint * {BLOCK} AS size,
           nullif(c.reltuples, -1) AS reltuples, coalesce(t.relpages::bigint * {BLOCK}, 0) AS toast_size,
           coalesce((SELECT sum(x.relpages::bigint) * {BLOCK} FROM pg_index AS i
                     JOIN pg_class AS x ON x.oid = i.indexrelid WHERE i.indrelid = c.oid), 0) AS index_size,
           coalesce((SELECT option_value::numeric FROM pg_options_to_table(c.reloptions)
                     WHERE option_name = 'fillfactor'), 100) / 100 AS fillfactor,
           count(*) OVER () AS tables
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_class AS t ON t.oid = c.reltoastrelid
    WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't'
      AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_toast%'
    ORDER BY c.relpages DESC LIMIT {MAX_TABLES}
) AS c LEFT JOIN LATERAL (
    SELECT sum((1 - null_frac) * avg_width) + 28 AS width FROM pg_stats AS p
    WHERE p.schemaname = c.schemaname AND p.tablename = c.relname AND NOT p.inherited
) AS w ON true"""
RELATION_SIZES: Final = probe(
    "relation_sizes",
    "growth of tables with their indexes and TOAST, and an estimate of what is bloat",
    _SIZES,
    keys("schemaname relname"),
    texts("kind", "CASE relkind WHEN 'm' THEN 'materialized view' ELSE 'table' END"),
    numbers("size toast_size index_size", unit="bytes", note="as of the last VACUUM or ANALYZE"),
    numbers("reltuples", unit="rows", note="as of the last VACUUM or ANALYZE"),
    numbers(
        "bloat",
        "CASE WHEN reltuples * width IS NOT NULL THEN greatest(size - reltuples * width / fillfactor, 0) END",
        unit="bytes",
        note="estimated from the widths of columns; nothing where the role may not read the table",
    ),
    order="size DESC",
    left_out=f"greatest(tables - {MAX_TABLES}, 0)",
    scope=Scope.DATABASE,
    every=900,
    is_cheap=False,
)


def _option(name: str, setting: str) -> str:
    return f"coalesce(max(option_value) FILTER (WHERE option_name = '{name}'), current_setting('{setting}', true))"


def _own(name: str) -> str:
    return f"{_option(name, name)}::double precision AS {name}"


def _needs(major: int) -> str:
    unfrozen = "1 - relallfrozen::float8 / greatest(relpages, 1)" if major >= 18 else "1"
    return f"""(
        SELECT n.nspname AS schemaname, c.relname, c.autovacuum_enabled, n_dead_tup, n_ins_since_vacuum, n_mod,
               least(autovacuum_vacuum_threshold + autovacuum_vacuum_scale_factor * rows,
                     nullif(autovacuum_vacuum_max_threshold, -1)) AS vacuum_at,
               CASE WHEN autovacuum_vacuum_insert_threshold >= 0 THEN autovacuum_vacuum_insert_threshold
                    + autovacuum_vacuum_insert_scale_factor * rows * ({unfrozen}) END AS insert_vacuum_at,
               autovacuum_analyze_threshold + autovacuum_analyze_scale_factor * rows AS analyze_at,
               xid_age, mxid_age,
               least(autovacuum_freeze_max_age, current_setting('autovacuum_freeze_max_age')::float8) AS freeze_at,
               least(autovacuum_multixact_freeze_max_age,
                     current_setting('autovacuum_multixact_freeze_max_age')::float8) AS mxid_freeze_at
        FROM (
            SELECT c.*, greatest(reltuples, 0) AS rows, pg_stat_get_dead_tuples(c.oid) AS n_dead_tup,
                   pg_stat_get_ins_since_vacuum(c.oid) AS n_ins_since_vacuum,
                   pg_stat_get_mod_since_analyze(c.oid) AS n_mod,
                   CASE WHEN relfrozenxid <> '0' THEN age(relfrozenxid) END AS xid_age,
                   CASE WHEN relminmxid <> '0' THEN mxid_age(relminmxid) END AS mxid_age, o.*
            FROM pg_class AS c CROSS JOIN LATERAL (
                SELECT {_own("autovacuum_vacuum_threshold")}, {_own("autovacuum_vacuum_scale_factor")},
                       {_own("autovacuum_vacuum_insert_threshold")}, {_own("autovacuum_vacuum_insert_scale_factor")},
                       {_own("autovacuum_analyze_threshold")}, {_own("autovacuum_analyze_scale_factor")},
                       {_own("autovacuum_vacuum_max_threshold")}, {_own("autovacuum_freeze_max_age")},
                       {_own("autovacuum_multixact_freeze_max_age")},
                       {_option("autovacuum_enabled", "autovacuum")}::boolean AS autovacuum_enabled
                FROM pg_options_to_table(c.reloptions)
            ) AS o WHERE c.relkind IN ('r', 'm', 't') AND c.relpersistence <> 't'
        ) AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    ) AS c"""


VACUUM_NEED: Final = probe(
    "vacuum_need",
    "how near each table is to being vacuumed, analyzed and frozen: a share of 1 is when autovacuum does it",
    {0: _needs(15), 18: _needs(18)},
    keys("schemaname relname"),
    flags("autovacuum_enabled"),
    numbers("n_dead_tup n_ins_since_vacuum n_mod", unit="rows"),
    numbers("xid_age mxid_age", unit="transactions"),
    shares("vacuum_share", "n_dead_tup / nullif(vacuum_at, 0)"),
    shares("insert_vacuum_share", "n_ins_since_vacuum / nullif(insert_vacuum_at, 0)"),
    shares("analyze_share", "n_mod / nullif(analyze_at, 0)"),
    shares("freeze_share", "xid_age / freeze_at"),
    shares("mxid_freeze_share", "mxid_age / mxid_freeze_at"),
    order="""greatest(n_dead_tup / nullif(vacuum_at, 0), n_ins_since_vacuum / nullif(insert_vacuum_at, 0),
        xid_age / freeze_at, mxid_age / mxid_freeze_at) DESC NULLS LAST""",
    scope=Scope.DATABASE,
    every=300,
    is_cheap=False,
)

TABLES_AND_INDEXES: Final[tuple[Probe, ...]] = (TABLES, TABLE_IO, INDEXES, RELATION_SIZES, VACUUM_NEED)
