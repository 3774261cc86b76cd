"""What the tests of probes share: a PostgreSQL of each version, started when the first test asks for it."""

import contextlib
import shutil
import subprocess

import psycopg
import pytest

import postgres_versions
from held_ports import hold_port, number_of
from postgres_fleets import NAME, rows_on
from postgres_server import until
from uptime_agent.postgres.contract import pick
from uptime_agent.postgres.probes import CATALOGUE

OURS = "timerqueue"
PREPARE = """
    CREATE EXTENSION pg_stat_statements;
    CREATE EXTENSION IF NOT EXISTS pg_buffercache;
    CREATE TABLE plain (id bigint PRIMARY KEY, words text);
    CREATE TABLE parts (id bigint, words text) PARTITION BY RANGE (id);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
    CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (100) TO (200);
    CREATE INDEX parts_id ON parts (id);
    CREATE SEQUENCE steps AS smallint;
    CREATE FUNCTION twice(number int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN number * 2; END';
    INSERT INTO plain SELECT n, repeat('x', 20) FROM generate_series(1, 1000) AS n;
    INSERT INTO parts SELECT n, 'x' FROM generate_series(0, 199) AS n;
    VACUUM ANALYZE plain;
    ANALYZE parts_1;
    ANALYZE parts_2;
"""


@pytest.fixture(scope="session")
def postgres_of():
    """Return the PostgreSQL of a major version, one for the session; where it cannot be had, the test is left out."""
    with contextlib.ExitStack() as stack:
        servers, missing = {}, {}

        def of(major):
            if major not in servers and major not in missing:
                try:
                    servers[major] = stack.enter_context(postgres_versions.server(major))
                except postgres_versions.Missing as error:
                    missing[major] = str(error)
            if major in missing:
                pytest.skip(missing[major])
            return servers[major]

        yield of


@pytest.fixture(scope="session", params=postgres_versions.WHEELS, ids="postgres{}".format)
def each_postgres(request, postgres_of):
    """Run the test on each version. A `PostgresServer` of tests/kit/servers/postgres_server.py."""
    return postgres_of(request.param)


class Probed:
    """A database with something in it, and the probes asked of it as the role `monitor`, in pg_monitor alone."""

    def __init__(self, server):
        self.server, self._stack = server, contextlib.ExitStack()
        self.dsn = f"host={server.folder} user=postgres dbname=probed"

    def prepare(self):
        """Make the database, its contents and the roles."""
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            connection.execute("CREATE DATABASE probed TEMPLATE template0")
            connection.execute("CREATE ROLE monitor LOGIN IN ROLE pg_monitor")
            connection.execute("CREATE ROLE nobody_special LOGIN")
        with self.connect() as connection:
            for statement in filter(str.strip, PREPARE.split(";\n")):
                connection.execute(statement)

    def connect(self, user="postgres", **options):
        """Return a connection to the database. Options are those of psycopg."""
        return psycopg.connect(self.dsn.replace("user=postgres", f"user={user}"), autocommit=True, **options)

    def held(self, *statements, **options):
        """Return a connection that has begun a transaction with these statements, until it is closed."""
        connection = self._stack.enter_context(contextlib.closing(self.connect(**options)))
        self._stack.callback(connection.rollback)
        for statement in ("BEGIN", *statements):
            connection.execute(statement)
        return connection

    def waits(self, statement, **options):
        """Have a connection wait for a lock with this statement, until it is closed; return its pid."""
        connection = self._stack.enter_context(contextlib.closing(self.connect(**options)))
        connection.pgconn.send_query(statement.encode())
        self._stack.callback(connection.cancel_safe)
        pid = connection.info.backend_pid
        with self.connect() as watching:
            asked = "SELECT count(*) FROM pg_locks WHERE pid = %s AND NOT granted"
            until(lambda: watching.execute(asked, (pid,)).fetchone()[0], "it waits for a lock")
        return pid

    def close(self):
        """Close what is held, and all other connections."""
        self._stack.close()
        self._stack = contextlib.ExitStack()

    def ask(self, name, user="monitor", dsn=None):
        """Return the rows of a probe as dictionaries, asked as the agent asks: (rows, left out)."""
        rows, names, left_out = self.run(CATALOGUE[name], user, dsn)
        return [dict(zip(names, row, strict=True)) for row in rows], left_out

    def rows(self, probe, /, user="monitor", dsn=None, **wanted):
        """Return those rows of a probe that have these values."""
        return [row for row in self.ask(probe, user, dsn)[0] if wanted.items() <= row.items()]

    def run(self, probe, user="monitor", dsn=None):
        """Return (rows, names of the columns, left out) of a probe on this server."""
        dsn = dsn or self.dsn
        with psycopg.connect(
            f"{dsn.replace('user=postgres', f'user={user}')} application_name={OURS}",
            options="-c search_path=pg_catalog -c lock_timeout=200ms -c statement_timeout=5s",
            autocommit=True,
        ) as connection:
            sql = self.variant(probe, connection).sql
            with connection.transaction():
                connection.execute("SET TRANSACTION READ ONLY")
                cursor = connection.execute(sql)
                rows, names = cursor.fetchall(), [column.name for column in cursor.description]
            if names[-1] != "left_out":
                return rows, names, 0
            return [row[:-1] for row in rows], names[:-1], rows[0][-1] if rows else 0

    def variant(self, probe, connection):
        """Return the variant of a probe for this server, or None."""
        installed = connection.execute(
            "SELECT extversion, nspname FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace "
            "WHERE extname = %s",
            (probe.extension,),
        ).fetchone()
        return pick(probe, connection.info.server_version, *(installed or ()))

    @property
    def major(self):
        """The server's major version."""
        with self.connect() as connection:
            return connection.info.server_version // 10_000


@pytest.fixture(scope="session")
def probed_of():
    """Return the database that is made on a server once, however often pytest comes back to that server."""
    made = {}

    def of(server):
        if server.folder not in made:
            made[server.folder] = Probed(server)
            made[server.folder].prepare()
        return made[server.folder]

    return of


@pytest.fixture
def probed(each_postgres, probed_of):
    """Ask the probes of a database with something in it, on each version of PostgreSQL."""
    probed = probed_of(each_postgres)
    yield probed
    probed.close()


@pytest.fixture(scope="session")
def standby_of():
    """Return a standby of a server, one for the session, which is streaming."""
    with contextlib.ExitStack() as stack:
        made = {}

        def of(probed):
            if probed.server.folder not in made:
                standby = stack.enter_context(contextlib.closing(postgres_versions.standby(probed.server, "follower")))
                standby.start()
                made[probed.server.folder] = standby
            until(lambda: probed.rows("replication", slot_name="follower", state="streaming"), "the standby streams")
            return made[probed.server.folder]

        yield of


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """Make a certificate authority, ca.pem, and what it has certified: NAME, in cert.pem with key.pem; their folder."""
    openssl, folder = shutil.which("openssl"), tmp_path_factory.mktemp("authority")
    if openssl is None:
        pytest.skip("needs the program openssl: apt-get install openssl")

    def run(*words):
        subprocess.run([openssl, *" ".join(words).split()], check=True, capture_output=True, cwd=folder)

    new = "req -x509 -newkey rsa:2048 -nodes -days 2"
    run(new, "-subj /CN=authority -out ca.pem -keyout ca.key")
    run(
        new,
        f"-CA ca.pem -CAkey ca.key -subj /CN={NAME} -addext subjectAltName=DNS:{NAME}",
        "-out cert.pem -keyout key.pem",
    )
    run(new, "-subj /CN=stranger -out stranger.pem -keyout stranger.key")
    return folder


@pytest.fixture(scope="session")
def listening(authority):
    """Start a server that listens on both loopback addresses, IPv4 and IPv6, with TLS, and has some databases.

    The role `guarded` needs TLS and the password `open sesame`.
    """
    with hold_port() as held:
        yield from listening_at(number_of(held), authority)


def listening_at(port, authority):
    """Start it at that port, which is ours, and close it at the end."""
    try:
        server = postgres_versions.server(18, listen_addresses="127.0.0.1,::1", port=port, ssl="on")
    except postgres_versions.Missing as error:
        pytest.skip(str(error))
    server.dsn += f" port={port}"
    server.port, data = port, server.folder / "data"
    rules = data / "pg_hba.conf"
    owner = rules.stat()
    guarded = "hostssl all guarded all scram-sha-256\nhostnossl all guarded all reject\nlocal all guarded reject\n"
    rules.write_text(guarded + rules.read_text())
    for name, copied in (("server.crt", "cert.pem"), ("server.key", "key.pem")):
        file = data / name
        file.write_bytes((authority / copied).read_bytes())
        file.chmod(0o600)
        shutil.chown(file, owner.st_uid, owner.st_gid)
    with server:
        rows_on(server, "CREATE ROLE guarded LOGIN PASSWORD 'open sesame' IN ROLE pg_monitor")
        for number in range(5):
            rows_on(server, f"CREATE DATABASE shop_{number}")
        yield server
