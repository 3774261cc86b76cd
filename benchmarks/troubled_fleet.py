"""Measure how late probes of a PostgreSQL server that is well are while others are in trouble.

    python -m benchmarks.troubled_fleet [--seconds 60] [--databases 10]

The agent is the command `timerqueue run` with SQLite stores, fsync on, in a process of its own; its servers are of 15,
16, 17 and 18, out of PyPI, each with so many databases, and probed every second. For half of the time all are well.
Then one is frozen (SIGSTOP), one is full (53300), and one has an ALTER TABLE that waits for a reader. Printed are the
lateness of the fourth in both halves (to the begin of a run, and to a connection), the most connections that servers
counted, the longest that one of ours waited for a lock, and how many were left over 5 s after the end.
"""

import argparse
import contextlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "kit" / "servers"))
import postgres_versions

OURS = "application_name = 'timerqueue'"
COUNT = f"SELECT count(*) FROM pg_stat_activity WHERE {OURS}"
LOCKS = f"""SELECT coalesce(max(extract(epoch FROM clock_timestamp() - waitstart)), 0)::float8
    FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND {OURS}"""
NAMES = {15: "frozen", 16: "full", 17: "altered", 18: "well"}
PROBES = "connectivity node_role activity blocking locks database wal progress tables table_io indexes".split()
WARM_UP = 15.0
"""Seconds that are not counted: first starts are spread over ten."""


def configuration(servers):
    every = ", ".join(f'{name} = "1s"' for name in PROBES)
    for name, server in servers.items():
        yield f'[[postgres]]\nname = "{name}"\nhost = "{server.folder}"\nuser = "watcher"\nbudget = 1.0\nlimit = 3'
        yield f"probes = {{ {every} }}"


def asked(server, sql):
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        found = connection.execute(sql)
        return found.fetchall() if found.description else []


class Watch(threading.Thread):
    """Looks at a server all the time: the most connections of ours, the longest wait for a lock."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.most, self.waited, self.is_over = 0, 0.0, False
        self.connection = psycopg.connect(server.dsn, autocommit=True)

    def run(self):
        while not self.is_over:
            self.most = max(self.most, self.connection.execute(COUNT).fetchone()[0])
            self.waited = max(self.waited, self.connection.execute(LOCKS).fetchone()[0])
            time.sleep(0.01)
        self.connection.close()


@contextlib.contextmanager
def full(server):
    """Take every place, also those that the agent has, for as long as the block lasts."""
    guests, ours = [], f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {OURS}"
    inside = psycopg.connect(server.dsn, autocommit=True)
    for _ in range(3):
        inside.execute(ours)
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                guests.append(psycopg.connect(server.dsn))
    try:
        yield
    finally:
        for each in (*guests, inside):
            each.close()


@contextlib.contextmanager
def altered(server):
    """Have an ALTER TABLE wait for a reader for as long as the block lasts."""
    reader, alter = (psycopg.connect(server.dsn) for _ in range(2))
    reader.execute("SELECT count(*) FROM public.t")
    thread = threading.Thread(target=alter.execute, args=("ALTER TABLE public.t ADD COLUMN b int",), daemon=True)
    thread.start()
    try:
        yield
    finally:
        reader.rollback()
        thread.join()
        for each in (reader, alter):
            each.close()


def lateness(metrics, began, ended):
    """Return [seconds from due to begin, to a connection] of the probes of the one that is well."""
    with contextlib.closing(sqlite3.connect(metrics)) as connection:
        found = connection.execute(
            "SELECT lateness, lateness + waited, kind FROM outcome JOIN series ON series.id = outcome.series"
            " WHERE target = 'well' AND due_us >= ? AND due_us < ?",
            (began * 1e6, ended * 1e6),
        ).fetchall()
    return (
        [row[0] for row in found],
        [row[1] for row in found],
        sum(row[2] not in {"stored", "partial"} for row in found),
    )


def tell(what, begun, connected, others):
    parts = [statistics.quantiles(each, n=100) for each in (begun, connected)]
    (to_begin, to_connection) = ((each[49] * 1e3, each[98] * 1e3) for each in parts)
    print(
        f"{what}: {len(begun)} runs of the server that is well, {others} of them not stored; late by "
        f"{to_begin[0]:.1f} ms (median), {to_begin[1]:.1f} ms (p99); with a connection by {to_connection[0]:.1f} and "
        f"{to_connection[1]:.1f} ms"
    )
    return to_begin[1], to_connection[1]


def measure(options):
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = {
            name: stack.enter_context(
                postgres_versions.server(major, max_connections=30, superuser_reserved_connections=0)
            )
            for major, name in NAMES.items()
        }
        for server in servers.values():
            asked(server, "CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
            asked(server, "CREATE TABLE public.t (a int)")
            for number in range(options.databases - 1):
                asked(server, f"CREATE DATABASE shop_{number}")
        watches = {name: Watch(server) for name, server in servers.items() if name not in {"frozen", "full"}}
        for each in watches.values():
            each.start()
        file = folder / "fleet.toml"
        file.write_text("\n".join(configuration(servers)))
        command = [sys.executable, "-m", "uptime_agent", "run", str(file), "--json"]
        agent = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(agent.kill)
        time.sleep(WARM_UP)
        times = [time.time()]
        time.sleep(options.seconds / 2)
        times.append(time.time())
        backends = [pid for (pid,) in asked(servers["frozen"], f"SELECT pid FROM pg_stat_activity WHERE {OURS}")]
        frozen = servers["frozen"].frozen(servers["frozen"].pid, *backends)
        with frozen, full(servers["full"]), altered(servers["altered"]):
            time.sleep(options.seconds / 2)
            times.append(time.time())
        agent.terminate()
        agent.wait()
        time.sleep(5)
        left = {name: asked(server, COUNT)[0][0] for name, server in servers.items()}
        for each in watches.values():
            each.is_over = True
            each.join()
        before = tell("all are well", *lateness(folder / "fleet.metrics.db", *times[:2]))
        during = tell("three in trouble", *lateness(folder / "fleet.metrics.db", *times[1:]))
        print(f"p99 during / before: {during[0] / before[0]:.2f}, with a connection {during[1] / before[1]:.2f}")
        print("most connections:", {name: each.most for name, each in watches.items()})
        print(
            "longest wait of ours for a lock:", {name: f"{each.waited * 1e3:.0f} ms" for name, each in watches.items()}
        )
        print("left over after 5 s:", left)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--databases", type=int, default=10)
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
