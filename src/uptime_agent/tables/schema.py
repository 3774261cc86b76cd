"""The tables as SQL. One statement reads one instant."""

from __future__ import annotations

from typing import Final

VERSION: Final = 1
SCHEMA: Final = "timerqueue_probes"
MAX_BYTES: Final = 64 * 1024
"""Bytes."""

_MAKE: Final = """\
CREATE SCHEMA IF NOT EXISTS {s};
COMMENT ON SCHEMA {s} IS 'Which PostgreSQL servers timerqueue probes, and how. Change rows by plain SQL.';

CREATE TABLE {s}.meta (program text PRIMARY KEY, version int NOT NULL);
INSERT INTO {s}.meta VALUES ('timerqueue probes', {version});
COMMENT ON TABLE {s}.meta IS 'Which version these tables have. Leave it alone.';

CREATE TABLE {s}.groups (name text PRIMARY KEY CHECK (name <> ''), description text);
COMMENT ON TABLE {s}.groups IS 'Clusters that belong together.';

CREATE TABLE {s}.clusters (
    name text PRIMARY KEY CHECK (name <> ''),
    group_name text REFERENCES {s}.groups ON UPDATE CASCADE ON DELETE SET NULL,
    description text
);
COMMENT ON TABLE {s}.clusters IS 'Servers that belong together, such as a primary and its standbys.';

CREATE TABLE {s}.servers (
    name text PRIMARY KEY CHECK (name <> ''),
    dsn text NOT NULL CHECK (dsn <> ''),
    password_env text,
    password_file text,
    cluster text REFERENCES {s}.clusters ON UPDATE CASCADE ON DELETE SET NULL,
    databases text[],
    exclude text[],
    most_databases int CHECK (most_databases BETWEEN 1 AND 10000),
    connection_limit int CHECK (connection_limit BETWEEN 1 AND 100),
    wait interval CHECK (wait > '0 s'),
    budget float8 CHECK (budget > 0 AND budget <= 1),
    tags text[],
    is_enabled boolean NOT NULL DEFAULT true,
    description text,
    CHECK (num_nonnulls(password_env, password_file) <= 1)
);
COMMENT ON TABLE {s}.servers IS 'Servers that are probed. NULL: as it is without a word.';
COMMENT ON COLUMN {s}.servers.dsn IS 'A URL or key=value text with one host and without a password.';
COMMENT ON COLUMN {s}.servers.password_env IS
    'The environment variable of the agent that holds the password; PASSWORD is a part of its name.';
COMMENT ON COLUMN {s}.servers.password_file IS
    'A file with the password, in the folder "passwords" beside the agent''s configuration: passwords/NAME.';
COMMENT ON COLUMN {s}.servers.databases IS 'Patterns of the databases that are probed; NULL: all that we may enter.';
COMMENT ON COLUMN {s}.servers.connection_limit IS 'Connections to the server, idle ones included.';
COMMENT ON COLUMN {s}.servers.wait IS 'How long a probe may wait for a connection.';
COMMENT ON COLUMN {s}.servers.budget IS 'How much of one core our queries may take: 0.01 is 1 %.';

CREATE TABLE {s}.probe_configs (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope text NOT NULL DEFAULT 'global' CHECK (scope IN ('server', 'cluster', 'group', 'global')),
    server text REFERENCES {s}.servers ON UPDATE CASCADE ON DELETE CASCADE,
    cluster text REFERENCES {s}.clusters ON UPDATE CASCADE ON DELETE CASCADE,
    group_name text REFERENCES {s}.groups ON UPDATE CASCADE ON DELETE CASCADE,
    probe text NOT NULL CHECK (probe <> ''),
    is_enabled boolean,
    interval interval CHECK (interval >= '1 s'),
    timeout interval CHECK (timeout > '0 s' AND timeout <= '5 min'),
    retention interval CHECK (retention > '0 s'),
    description text,
    CHECK ((scope = 'server') = (server IS NOT NULL)),
    CHECK ((scope = 'cluster') = (cluster IS NOT NULL)),
    CHECK ((scope = 'group') = (group_name IS NOT NULL))
);
CREATE UNIQUE INDEX ON {s}.probe_configs (probe, server) WHERE scope = 'server';
CREATE UNIQUE INDEX ON {s}.probe_configs (probe, cluster) WHERE scope = 'cluster';
CREATE UNIQUE INDEX ON {s}.probe_configs (probe, group_name) WHERE scope = 'group';
CREATE UNIQUE INDEX ON {s}.probe_configs (probe) WHERE scope = 'global';
COMMENT ON TABLE {s}.probe_configs IS
    'What a scope says of a probe. Each value comes from the innermost scope that sets it: server, cluster, group,'
    ' global, then what is built in. NULL: this scope does not say.';

CREATE FUNCTION {s}.tell() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN PERFORM pg_catalog.pg_notify(TG_TABLE_SCHEMA, TG_TABLE_NAME); RETURN NULL; END$$;
COMMENT ON FUNCTION {s}.tell() IS 'Tells the agents that listen that a table has changed.';
"""
_TRIGGER: Final = """\
CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {s}.{table}
    FOR EACH STATEMENT EXECUTE FUNCTION {s}.tell();
"""
_GRANT: Final = """\
GRANT USAGE ON SCHEMA {s} TO {role};
GRANT SELECT ON ALL TABLES IN SCHEMA {s} TO {role};
"""
_READ: Final = """/* timerqueue:tables */
SELECT place, left(key, 1000), CASE WHEN octet_length(content) <= {longest} THEN content END FROM (
SELECT 'meta' AS place, program AS key, jsonb_build_object('version', version)::text AS content FROM {s}.meta
UNION ALL SELECT 'servers', name, jsonb_build_object('dsn', dsn, 'password_env', password_env,
    'password_file', password_file, 'cluster', cluster,
    'group', (SELECT group_name FROM {s}.clusters WHERE clusters.name = servers.cluster), 'databases', databases,
    'exclude', exclude, 'most_databases', most_databases, 'connection_limit', connection_limit,
    'wait', extract(epoch FROM wait), 'budget', budget, 'tags', tags, 'is_enabled', is_enabled)::text FROM {s}.servers
UNION ALL SELECT 'probe_configs', id::text, jsonb_build_object('scope', scope,
    'of', coalesce(server, cluster, group_name), 'probe', probe, 'is_enabled', is_enabled,
    'interval', extract(epoch FROM interval), 'timeout', extract(epoch FROM timeout),
    'retention', extract(epoch FROM retention))::text FROM {s}.probe_configs
) AS rows ORDER BY 1, 2
"""


def quoted(name: str) -> str:
    """Quote an identifier."""
    return '"{}"'.format(name.replace('"', '""'))


def sql_of(schema: str, reader: str | None = None) -> str:
    """SQL that makes the tables. `reader`: may read them."""
    made = _MAKE.replace("{version}", str(VERSION))
    triggers = "".join(
        _TRIGGER.replace("{table}", table) for table in ("groups", "clusters", "servers", "probe_configs")
    )
    grant = "" if reader is None else _GRANT.replace("{role}", quoted(reader))
    return (made + triggers + grant).replace("{s}", quoted(schema))


def read_of(schema: str) -> str:
    """SQL that reads all rows, values as JSON."""
    return _READ.replace("{longest}", str(MAX_BYTES)).replace("{s}", quoted(schema))


def listen_of(schema: str) -> str:
    """SQL that subscribes to changes."""
    return f"LISTEN {quoted(schema)}"
