"""The server's presence, role, settings, files."""

from __future__ import annotations

from typing import Final

from ..contract import Column, Probe, ProbeConnection, Rows, Scope, Type
from .shape import age_of, flags, keys, moments, number_keys, numbers, probe, seconds, texts

PHASES: Final = ("name", "connect", "tls", "login", "first_row")


async def reach(connection: ProbeConnection) -> Rows:
    """Ask for one row over a new connection; return each part's seconds."""
    await connection.fetch("/* timerqueue:connectivity */ SELECT 1")
    took = connection.phases
    return ((*(took.get(phase) for phase in PHASES), sum(took.get(phase, 0.0) for phase in PHASES)),)


CONNECTIVITY: Final = Probe(
    name="connectivity",
    purpose="whether the server is there, and how long each part of the way takes",
    scope=Scope.SERVER,
    every=10.0,
    columns=tuple(Column(name, Type.DOUBLE, unit="s") for name in (*PHASES, "total")),
    call=reach,
    is_cheap=False,  # has a connection of its own
    grants="from 16 on pg_use_reserved_connections lets it in where the server is full",
)

# The control file knows the timeline of the last checkpoint, the name of the WAL's file that of now.
_TIMELINE: Final = """CASE WHEN pg_is_in_recovery()
    THEN greatest((SELECT received_tli FROM pg_stat_wal_receiver), (SELECT timeline_id FROM pg_control_checkpoint()))
    ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END"""
NODE_ROLE: Final = probe(
    "node_role",
    "primary or standby, which system, since when it runs, and how full it is",
    "(SELECT 1) AS always",
    flags("is_in_recovery", "pg_is_in_recovery()"),
    numbers("timeline", _TIMELINE),
    numbers("system_identifier", "(SELECT system_identifier FROM pg_control_system())"),
    numbers("server_version_num", "current_setting('server_version_num')"),
    moments("started", "pg_postmaster_start_time()"),
    moments("config_loaded", "pg_conf_load_time()"),
    numbers(
        "connections",
        """(SELECT count(*) FROM pg_stat_activity
            WHERE datid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend')""",
        note="of clients, ours included",
    ),
    numbers("max_connections", "current_setting('max_connections')"),
    numbers(
        "reserved_connections",
        """current_setting('superuser_reserved_connections')::bigint
           + coalesce(current_setting('reserved_connections', true)::bigint, 0)""",
        note="of max_connections, for superusers and for who has pg_use_reserved_connections",
    ),
    every=15.0,
)

# Values that may hold a password are not kept: who changes them still shows in the rest.
_SECRET: Final = "name ~ '(conninfo|passphrase|password|secret|token|salt|_command$)'"  # noqa: S105 - names of settings
SETTINGS: Final = probe(
    "settings",
    "settings that are not as they come, and changes that wait for a restart",
    """pg_settings WHERE (setting IS DISTINCT FROM boot_val OR pending_restart)
       AND (source NOT IN ('default', 'session', 'client') OR pending_restart) AND name NOT LIKE 'transaction\\_%'""",
    keys("name"),
    texts("setting", f"CASE WHEN {_SECRET} AND setting <> '' THEN '(hidden)' ELSE setting END"),
    texts("unit source context"),
    flags("pending_restart"),
    order="pending_restart DESC, name",
    every=3600.0,
    on_change=True,
    most_rows=500,
    grants="a role in pg_monitor: else some settings are not seen",
)

_DATABASES: Final = """
    SELECT 'database' AS kind, d.datname AS name, pg_get_userbyid(d.datdba) AS owner,
           concat_ws(', ', pg_encoding_to_char(d.encoding), d.datcollate,
                     CASE WHEN d.datistemplate THEN 'template' END,
                     CASE WHEN NOT d.datallowconn THEN 'takes no connections' END,
                     CASE WHEN d.datconnlimit >= 0 THEN 'at most ' || d.datconnlimit || ' connections' END) AS about,
           CASE WHEN d.datcollversion <> pg_database_collation_actual_version(d.oid)
                THEN 'collation version ' || d.datcollversion || ', the system has '
                     || pg_database_collation_actual_version(d.oid) END AS risk
    FROM pg_database AS d
"""
_ROLES: Final = """
    SELECT 'role', rolname, NULL,
           concat_ws(', ', CASE WHEN rolcanlogin THEN 'login' END,
                     CASE WHEN rolconnlimit >= 0 THEN 'at most ' || rolconnlimit || ' connections' END),
           concat_ws(', ', CASE WHEN rolsuper THEN 'superuser' END, CASE WHEN rolcreaterole THEN 'creates roles' END,
                     CASE WHEN rolbypassrls THEN 'sees all rows' END, CASE WHEN rolreplication THEN 'replication' END,
                     CASE WHEN rolvaliduntil < clock_timestamp() THEN 'expired' END)
    FROM pg_roles WHERE rolsuper OR rolcreaterole OR rolbypassrls OR rolreplication OR rolvaliduntil < clock_timestamp()
"""
INVENTORY: Final = probe(
    "inventory",
    "databases, and roles that may do much",
    f"({_DATABASES} UNION ALL {_ROLES}) AS i",
    keys("kind name"),
    texts("owner about risk"),
    order="kind, name",
    every=3600.0,
    on_change=True,
    most_rows=1000,
)

PREPARED_XACTS: Final = probe(
    "prepared_xacts",
    "prepared transactions, which hold their locks until somebody ends them",
    "pg_prepared_xacts",
    keys("gid"),
    texts("datname", "database"),
    texts("owner"),
    seconds("age", age_of("prepared")),
    numbers("xmin_age", "age(transaction)", unit="transactions"),
    order="prepared",
    every=60.0,
)

ENCRYPTION: Final = probe(
    "encryption",
    "how connections of clients are encrypted",
    {
        0: """pg_stat_ssl AS s JOIN pg_stat_gssapi AS g USING (pid) JOIN pg_stat_activity AS a USING (pid)
              WHERE a.backend_type IN ('client backend', 'walsender') GROUP BY 1, 2, 3, 4, 5, 6, 7""",
    },
    flags("is_local", "client_addr IS NULL", is_key=True, note="over a Unix socket"),
    flags("ssl", is_key=True),
    keys("version cipher"),
    number_keys("bits"),
    flags("gss_encrypted", "g.encrypted", is_key=True),
    flags("credentials_delegated", {16: "g.credentials_delegated"}, is_key=True),
    numbers("connections", "count(*)"),
    order="count(*) DESC",
    every=300.0,
    grants="a role in pg_monitor: else only our own connections are seen",
)

FILE_RULES: Final = probe(
    "file_rules",
    "rules of pg_hba.conf, and lines in it that are wrong",
    "pg_hba_file_rules",
    number_keys("line_number"),
    texts("file_name", since=16),
    numbers("rule_number", since=16),
    texts("type"),
    texts("datnames", "array_to_string(database, ',')"),
    texts("usenames", "array_to_string(user_name, ',')"),
    texts("address netmask auth_method error"),
    order="error IS NULL, line_number",
    every=3600.0,
    on_change=True,
    is_enabled=False,
    grants="GRANT EXECUTE ON FUNCTION pg_hba_file_rules() and SELECT on the view of that name",
)

FILE_SETTINGS: Final = probe(
    "file_settings",
    "lines of the configuration files that cannot be applied",
    "pg_file_settings WHERE error IS NOT NULL",
    keys("sourcefile"),
    number_keys("sourceline"),
    texts("name error"),
    flags("applied"),
    order="sourcefile, sourceline",
    every=3600.0,
    on_change=True,
    is_enabled=False,
    grants="GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() and SELECT on pg_file_settings",
)

SERVER: Final[tuple[Probe, ...]] = (CONNECTIVITY, NODE_ROLE, SETTINGS, INVENTORY, PREPARED_XACTS, ENCRYPTION)
ON_REQUEST: Final[tuple[Probe, ...]] = (FILE_RULES, FILE_SETTINGS)
