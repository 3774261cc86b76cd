"""The cost of queries, by pg_stat_statements. Texts are read separately, and seldom.

The extension's version decides: pg_upgrade leaves the old one. Without texts it reads no file.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve

from ..contract import Probe, Variant
from .shape import counters, flags, kept_query, keys, moments, number_keys, probe, seconds, texts, timers


def _ranked(of_late: str) -> str:
    return f"""
    (SELECT s.*, least(
        row_number() OVER (ORDER BY total_exec_time DESC), row_number() OVER (ORDER BY calls DESC),
        row_number() OVER (ORDER BY shared_blks_read + temp_blks_read + temp_blks_written DESC),
        row_number() OVER (ORDER BY wal_bytes DESC), {of_late}) AS best
     FROM @extschema@.pg_stat_statements(false) AS s WHERE queryid IS NOT NULL) AS s
    CROSS JOIN @extschema@.pg_stat_statements_info AS i
    LEFT JOIN pg_database AS d ON d.oid = s.dbid LEFT JOIN pg_roles AS r ON r.oid = s.userid"""


_AGE: Final = "greatest(extract(epoch FROM clock_timestamp() - stats_since), 60)::double precision"
_BY_AGE: Final = f"row_number() OVER (ORDER BY total_exec_time / {_AGE} DESC)"
_BY_TOTAL: Final = "row_number() OVER (ORDER BY total_exec_time DESC)"


def _by_extension(asked: Probe) -> Probe:
    variants = tuple(Variant(each.sql, extension_since=f"1.{each.since}") for each in asked.variants)
    return evolve(asked, variants=variants, extension="pg_stat_statements")


STATEMENTS: Final = _by_extension(
    probe(
        "statements",
        "calls, time, rows, blocks and WAL of each query",
        {0: _ranked(_BY_TOTAL), 11: _ranked(_BY_AGE)},
        number_keys("userid dbid"),
        flags("toplevel", is_key=True),
        number_keys("queryid"),
        texts("datname"),
        texts("usename", "rolname"),
        counters("plans calls rows"),
        timers("total_plan_time total_exec_time"),
        seconds("min_exec_time max_exec_time mean_exec_time stddev_exec_time", "{} / 1000"),
        counters("shared_blks_hit shared_blks_read shared_blks_dirtied shared_blks_written", unit="blocks"),
        counters("local_blks_hit local_blks_read local_blks_dirtied local_blks_written", unit="blocks"),
        counters("temp_blks_read temp_blks_written", unit="blocks"),
        timers("shared_blk_read_time", {0: "blk_read_time / 1000", 11: "{} / 1000"}),
        timers("shared_blk_write_time", {0: "blk_write_time / 1000", 11: "{} / 1000"}),
        timers("local_blk_read_time local_blk_write_time", since=11),
        timers("temp_blk_read_time temp_blk_write_time"),
        counters("wal_records wal_fpi"),
        counters("wal_bytes", unit="bytes"),
        counters("wal_buffers_full", since=12),
        counters("jit_functions"),
        timers(
            "jit_time",
            {
                0: "(jit_generation_time + jit_inlining_time + jit_optimization_time + jit_emission_time) / 1000",
                11: """(jit_generation_time + jit_inlining_time + jit_optimization_time + jit_emission_time
                       + jit_deform_time) / 1000""",
            },
            note="all of it",
        ),
        counters("parallel_workers_to_launch parallel_workers_launched", since=12),
        moments("stats_since minmax_stats_since", since=11),
        counters("dealloc", note="of all statements: how often the least used were dropped"),
        moments("stats_reset", "i.stats_reset", note="of all statements"),
        since=10,
        order="best",
        every=60,
        is_cheap=False,
        grants="a role in pg_monitor, else the queries of others have no id; USAGE on the schema of the extension",
        setting="shared_preload_libraries = pg_stat_statements",
    )
)

_TEXTS: Final = """(
    SELECT s.queryid, d.datname, min(s.query) AS query, sum(s.total_exec_time) AS cost
    FROM @extschema@.pg_stat_statements(true) AS s LEFT JOIN pg_database AS d ON d.oid = s.dbid
    WHERE s.queryid IS NOT NULL GROUP BY s.queryid, d.datname
) AS s"""
QUERY_TEXTS: Final = _by_extension(
    probe(
        "query_texts",
        "texts of the queries that took the most time",
        _TEXTS,
        number_keys("queryid"),
        keys("datname"),
        texts("query", kept_query("query")),
        since=10,
        order="cost DESC",
        every=3600,
        is_cheap=False,  # reads the file of all texts
        timeout=15.0,
        on_change=True,
        grants="a role in pg_monitor, else the queries of others have no text; USAGE on the schema of the extension",
        setting="shared_preload_libraries = pg_stat_statements",
    )
)

STATEMENTS_AND_TEXTS: Final[tuple[Probe, ...]] = (STATEMENTS, QUERY_TEXTS)
