"""Sessions: what they do, hold, and wait for."""

from __future__ import annotations

from typing import Final

from ..contract import Probe
from .shape import (
    NEEDS_MONITOR,
    OTHERS,
    age_of,
    counters,
    flags,
    kept_query,
    keys,
    moments,
    number_keys,
    numbers,
    probe,
    seconds,
    texts,
    timers,
)

# 19 calls the wait for a pin of a buffer, and for its content, by one name.
WAIT_TYPE: Final = {0: "CASE {} WHEN 'BufferPin' THEN 'Buffer' ELSE {} END", 19: "{}"}

ACTIVITY: Final = probe(
    "activity",
    "sessions by database, user, application, state and what they wait for",
    f"""(
        SELECT datname, usename, application_name, backend_type, state, wait_event_type, wait_event,
               count(*) AS sessions,
               max({age_of("xact_start")}) AS oldest_xact,
               max({age_of("query_start")}) FILTER (WHERE state <> 'idle') AS oldest_query,
               max({age_of("state_change")}) AS oldest_state
        FROM pg_stat_activity AS a WHERE {OTHERS}
        GROUP BY datname, usename, application_name, backend_type, state, wait_event_type, wait_event
    ) AS a""",
    keys("datname usename application_name backend_type state"),
    keys("wait_event_type", WAIT_TYPE),
    keys("wait_event"),
    numbers("sessions"),
    seconds("oldest_xact oldest_query oldest_state"),
    order="sessions DESC, oldest_xact DESC NULLS LAST",
    every=15,
    grants=NEEDS_MONITOR,
)

_OLDEST: Final = f"""
    SELECT coalesce(backend_type, 'session') AS kind, pid::text AS name, datname, usename, application_name, state,
           {age_of("xact_start")} AS xact_age, {age_of("state_change")} AS state_age,
           age(backend_xmin) AS xmin_age, {kept_query("query")} AS query
    FROM pg_stat_activity AS a WHERE {OTHERS} AND (xact_start IS NOT NULL OR backend_xmin IS NOT NULL)
    UNION ALL
    SELECT 'replication slot', slot_name, database, NULL, NULL, CASE WHEN active THEN 'active' ELSE 'inactive' END,
           NULL, NULL, greatest(age(xmin), age(catalog_xmin)), NULL
    FROM pg_replication_slots WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL
    UNION ALL
    SELECT 'prepared transaction', gid, database, owner, NULL, 'prepared', {age_of("prepared")}, {age_of("prepared")},
           age(transaction), NULL
    FROM pg_prepared_xacts
"""
LONG_XACTS: Final = probe(
    "long_xacts",
    "who holds back vacuum: the oldest transactions, idle ones, replication slots and prepared transactions",
    f"({_OLDEST}) AS oldest",
    keys("kind name", note="name: the pid, the slot or the identifier of the prepared transaction"),
    texts("datname usename application_name state"),
    seconds("xact_age"),
    seconds("state_age", note="how long it has been in that state"),
    numbers("xmin_age", unit="transactions"),
    texts("query"),
    order="greatest(xact_age, 0) DESC, xmin_age DESC NULLS LAST",
    most_rows=50,
    every=15,
    grants=NEEDS_MONITOR,
)

# pg_blocking_pids stops every lock of the server for a moment. It is asked for at most a hundred waiting sessions, and
# pg_locks is read only if there are some.
_WAITERS: Final = f"""
    WITH waiters AS MATERIALIZED (
        SELECT a.*, count(*) OVER () AS all_waiters FROM pg_stat_activity AS a
        WHERE a.wait_event_type = 'Lock' AND {OTHERS} ORDER BY a.query_start LIMIT 100
    ), wanted AS MATERIALIZED (
        SELECT DISTINCT ON (pid) * FROM pg_locks WHERE NOT granted AND EXISTS (SELECT FROM waiters)
        ORDER BY pid, waitstart
    )
    SELECT {{columns}}
    FROM waiters AS a
    CROSS JOIN LATERAL unnest(pg_blocking_pids(a.pid)) AS by(pid)
    LEFT JOIN wanted AS l ON l.pid = a.pid
    LEFT JOIN pg_stat_activity AS b ON b.pid = by.pid
    LEFT JOIN pg_class AS c ON c.oid = l.relation AND a.datname = current_database()
"""
BLOCKING: Final = probe(
    "blocking",
    "who waits for whom, and how long",
    _WAITERS,
    number_keys("pid", "a.pid"),
    number_keys("blocker_pid", "by.pid", note="0: a prepared transaction"),
    seconds("waited", age_of("coalesce(l.waitstart, a.query_start)")),
    texts("datname usename application_name", "a.{}"),
    texts("locktype mode", "l.{}"),
    numbers("relation", "l.relation"),
    texts("relname", "c.relname", note="where it lies in the database of our connection"),
    texts("query", kept_query("a.query")),
    texts("blocker_usename", "b.usename"),
    texts("blocker_application_name", "b.application_name"),
    texts("blocker_state", "b.state"),
    seconds("blocker_xact_age", age_of("b.xact_start")),
    flags("blocker_waits", "b.wait_event_type = 'Lock'"),
    texts("blocker_query", kept_query("b.query")),
    order="3 DESC NULLS LAST",
    left_out="greatest(a.all_waiters - 100, 0)",
    every=15,
    grants=NEEDS_MONITOR,
)

_LOCKS: Final = f"""
    SELECT d.datname, l.locktype, l.mode, l.granted, count(*) AS locks
    FROM pg_locks AS l LEFT JOIN pg_database AS d ON d.oid = l.database
    WHERE NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = l.pid AND NOT ({OTHERS})) GROUP BY 1, 2, 3, 4
"""
_LOCKS_AND_WAITS: Final = f"""
    SELECT datname, locktype, mode, granted, locks, NULL::bigint AS waits, NULL::double precision AS wait_time,
           NULL::bigint AS fastpath_exceeded, NULL::timestamptz AS stats_reset FROM ({_LOCKS}) AS held
    UNION ALL
    SELECT NULL, locktype, NULL, NULL, NULL, waits, wait_time, fastpath_exceeded, stats_reset FROM pg_stat_lock
"""
LOCKS: Final = probe(
    "locks",
    "locks by database, type and mode",
    {0: f"({_LOCKS}) AS l", 19: f"({_LOCKS_AND_WAITS}) AS l"},
    keys("datname locktype mode"),
    flags("granted", is_key=True),
    numbers("locks"),
    counters("waits", since=19),
    timers("wait_time", since=19),
    counters("fastpath_exceeded", since=19),
    moments("stats_reset", since=19),
    order="locks DESC NULLS FIRST",
    every=60,
)

SESSIONS: Final[tuple[Probe, ...]] = (ACTIVITY, LONG_XACTS, BLOCKING, LOCKS)
