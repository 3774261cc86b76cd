"""Sequences, functions, extensions."""

from __future__ import annotations

from typing import Final

from ..contract import Probe, Scope
from .shape import counters, flags, keys, number_keys, numbers, probe, shares, texts, timers

# Reading a sequence takes a lock on it until the transaction ends. So a sequence that is being altered is left out. The
# number of read ones leaves room in the server's table of locks; those with the fewest numbers left come first. The
# first parts are done before the last begins, and leave only readable sequences.
MOST_READ: Final = 500
_SEQUENCES: Final = f"""
    WITH taken AS MATERIALIZED (
        SELECT DISTINCT l.relation FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
        WHERE l.locktype = 'relation' AND d.datname = current_database()
          AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    ), found AS MATERIALIZED (
        SELECT c.oid, n.nspname AS schemaname, c.relname AS sequencename, s.*,
               c.relpersistence = 'p' AND has_sequence_privilege(c.oid, 'SELECT,USAGE') AS is_readable
        FROM pg_sequence AS s JOIN pg_class AS c ON c.oid = s.seqrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relpersistence <> 't'
    ), chosen AS MATERIALIZED (
        SELECT * FROM found WHERE NOT EXISTS (SELECT FROM taken WHERE taken.relation = found.oid)
        ORDER BY (seqmax::numeric - seqmin) / abs(seqincrement), oid LIMIT {MOST_READ}
    ), read AS MATERIALIZED (
        SELECT *, CASE WHEN is_readable THEN pg_sequence_last_value(oid) END AS last_value FROM chosen
    ), used AS (
        SELECT *, (CASE WHEN seqincrement > 0 THEN last_value - seqmin::numeric ELSE seqmax::numeric - last_value END
                   + 1) / (seqmax::numeric - seqmin + 1) AS used,
               (SELECT count(*) FROM found) - count(*) OVER () AS left_out_before FROM read
    )
    SELECT {{columns}} FROM used
"""
SEQUENCES: Final = probe(
    "sequences",
    "how much of each sequence is used up",
    _SEQUENCES,
    keys("schemaname sequencename"),
    texts("data_type", "format_type(seqtypid, NULL)"),
    numbers("last_value", note="nothing before the first use"),
    numbers("min_value", "seqmin"),
    numbers("max_value", "seqmax"),
    numbers("increment_by", "seqincrement"),
    flags("cycle", "seqcycle"),
    shares("used", note="1: the next one fails, or the sequence begins anew"),
    order="used DESC NULLS LAST, schemaname, sequencename",
    left_out="left_out_before",
    scope=Scope.DATABASE,
    every=3600,
    is_cheap=False,
    grants="SELECT or USAGE on the sequences, as pg_read_all_data has it: else the last value is nothing",
)

FUNCTIONS: Final = probe(
    "functions",
    "calls of each function and what they took",
    "pg_stat_user_functions",
    number_keys("funcid"),
    keys("schemaname funcname"),
    texts("arguments", "pg_get_function_identity_arguments(funcid)"),
    counters("calls"),
    timers("total_time"),
    timers("self_time", note="without what it called"),
    order="total_time DESC",
    scope=Scope.DATABASE,
    every=600,
    setting="track_functions = pl or all",
)

EXTENSIONS: Final = probe(
    "extensions",
    "extensions that are installed, and to which version they could be updated",
    """pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
       LEFT JOIN pg_available_extensions AS a ON a.name = e.extname""",
    keys("extname"),
    texts("extversion"),
    texts("default_version", note="what ALTER EXTENSION ... UPDATE would bring"),
    texts("schemaname", "nspname"),
    order="extname",
    scope=Scope.DATABASE,
    every=3600,
    on_change=True,
    is_cheap=False,  # reads a folder of the server's
)

OBJECTS: Final[tuple[Probe, ...]] = (SEQUENCES, FUNCTIONS, EXTENSIONS)
