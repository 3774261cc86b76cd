"""The whole agent over a PostgreSQL fleet: servers of every version, many databases on each, everything stored.

The servers are real, each with a role that may have as many connections as the agent may: one more, at any instant,
would be refused by the server and be on record as a probe that failed. What is counted stands in the agent's own store.
"""

import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from child import Unable, Values, serve
from meters import family_cpu_s, memory_mib

from fleet import BEGINS_WITHIN_S, COMMAND, percentile

TESTS = Path(__file__).parents[2] / "tests" / "kit" / "servers"
LIMIT = 3
OFTEN = ("tables", "table_io", "sequences", "extensions", "vacuum_need")
"""Probes of databases that run all the time. With 40 databases and three connections, each round is on new ones."""
SAMPLE_EVERY_S = 0.05
SETTLE_S = 8.0
OURS = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'watcher'"
STORED = """
    SELECT lateness, waited, kind, coalesce(failure, ''), coalesce(reason, '') FROM outcome
    WHERE due_us >= ? * 1e6 AND due_us < ? * 1e6
"""


def agent_probes(servers: int, databases: int, interval_s: float, seconds: float) -> Values:
    """OFTEN on each database at this interval, every cheap probe of servers once a second; stored in SQLite."""
    _see_the_probes()
    with tempfile.TemporaryDirectory() as folder, _servers(servers) as running:
        for server in running:
            _fill(server, databases)
        file = Path(folder) / "fleet.toml"
        file.write_text(_configuration(running, interval_s))
        with _agent(file) as process, _watched(running) as most:
            time.sleep(SETTLE_S)
            cpu, of_servers = _cpu_s(process), _cpu_of(running)
            began = time.time()
            time.sleep(seconds)
            ended = time.time()
            cpu, of_servers = _cpu_s(process) - cpu, _cpu_of(running) - of_servers
            peak = memory_mib("VmHWM", process.pid)
        with closing(sqlite3.connect(file.with_suffix(".metrics.db"))) as store:
            found = store.execute(STORED, (began, ended)).fetchall()
            rows = store.execute("SELECT sum(rows) FROM sample WHERE at_us >= ? * 1e6", (began,)).fetchone()[0] or 0
    asked = [each for each in found if each[2] != "skipped"]
    if not asked:
        raise RuntimeError(f"no probe was run: {found[:3]}")
    late = [lateness * 1e3 for lateness, *_ in asked]
    waited = [(lateness + waited) * 1e3 for lateness, waited, *_ in asked]
    return {
        "runs_per_s": len(asked) / seconds,
        "late_p50_ms": percentile(late, 50),
        "late_p99_ms": percentile(late, 99),
        "late_max_ms": max(late),
        "asked_p99_ms": percentile(waited, 99),
        "failed": sum(kind == "failed" for _, _, kind, _, _ in found),
        "refused": sum("53300" in reason for *_, reason in found),
        "left_out": sum(kind == "skipped" and not _is_expected(reason) for _, _, kind, _, reason in found),
        "connections": max(most.values()),
        "run_ms": cpu / len(asked) * 1e3,
        "server_ms": of_servers / len(asked) * 1e3,
        "core_percent": 100 * cpu / seconds,
        "rows_per_s": rows / seconds,
        "peak_mib": peak,
    }


def _see_the_probes() -> None:
    from uptime_agent.postgres import CATALOGUE  # noqa: PLC0415 - so that a missing part is told as that

    if unknown := set(OFTEN) - CATALOGUE.keys():
        raise Unable(f"there are no probes {unknown}")


def _is_expected(reason: str) -> bool:
    """Whether a probe was not run because there is nothing to run on such a server."""
    return reason.startswith(("role", "version", "missing extension"))


@contextmanager
def _servers(count: int) -> Iterator[list[Any]]:
    sys.path.insert(0, str(TESTS))
    try:
        import postgres_versions  # noqa: PLC0415 - it stands with the tests
    except ImportError as error:
        raise Unable(str(error)) from None
    with ExitStack() as stack:
        try:
            majors = list(postgres_versions.WHEELS)[-count:]
            yield [stack.enter_context(postgres_versions.server(major)) for major in majors]
        except postgres_versions.Missing as error:
            raise Unable(str(error)) from None


def _fill(server: Any, databases: int) -> None:
    """Make a role with as many connections as we may have, and databases with some tables."""
    import psycopg  # noqa: PLC0415 - the driver is an extra

    tables = "; ".join(f"CREATE TABLE t{n} (id int PRIMARY KEY, words text)" for n in range(5))
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE watcher LOGIN CONNECTION LIMIT {LIMIT} IN ROLE pg_monitor")
        connection.execute("CREATE DATABASE shop_0")
        with psycopg.connect(server.dsn, dbname="shop_0", autocommit=True) as first:
            first.execute(tables)
        for number in range(1, databases):
            connection.execute(f"CREATE DATABASE shop_{number} TEMPLATE shop_0")


def _configuration(servers: Sequence[Any], interval_s: float) -> str:
    from uptime_agent.postgres import CATALOGUE  # noqa: PLC0415 - so that a missing part is told as that

    intervals = {}
    for probe in CATALOGUE.values():
        if probe.name in OFTEN:
            intervals[probe.name] = f"{interval_s:g}s"
        elif probe.is_enabled and probe.scope.value == "server" and probe.is_cheap and probe.every <= 300:
            intervals[probe.name] = "1s"
    probes = ", ".join(f'{name} = "{each}"' for name, each in intervals.items())
    lines = []
    for number, server in enumerate(servers):
        lines += ["[[postgres]]", f'name = "server-{number}"', f'host = "{server.folder}"', 'user = "watcher"']
        lines += [f"limit = {LIMIT}", "budget = 1.0", 'databases = ["shop_*"]', f"probes = {{ {probes} }}", ""]
    return "\n".join(lines)


@contextmanager
def _agent(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the agent while the body runs, and end it as Ctrl-C does."""
    process = subprocess.Popen([*COMMAND, "run", str(file), "--json"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    began = threading.Event()
    reader = threading.Thread(target=_read, args=(process.stdout, began), daemon=True)
    reader.start()
    try:
        if not began.wait(BEGINS_WITHIN_S):
            raise RuntimeError(f"the agent did not begin within {BEGINS_WITHIN_S:g} s")
        yield process
        process.terminate()
        if process.wait(30):
            raise RuntimeError(f"the agent ended with status {process.returncode}")
    finally:
        process.kill()
        process.wait()


def _read(output: Any, began: threading.Event) -> None:
    for line in output:
        if b'"started"' in line:
            began.set()


@contextmanager
def _watched(servers: Sequence[Any]) -> Iterator[dict[int, int]]:
    """Count the agent's connections again and again, as each server does, while the body runs."""
    import psycopg  # noqa: PLC0415

    most = dict.fromkeys(range(len(servers)), 0)
    is_over = threading.Event()

    def watch() -> None:
        with ExitStack() as stack:
            asked = [stack.enter_context(psycopg.connect(server.dsn, autocommit=True)) for server in servers]
            while not is_over.wait(SAMPLE_EVERY_S):
                for number, connection in enumerate(asked):
                    found = connection.execute(OURS).fetchone()
                    most[number] = max(most[number], found[0] if found else 0)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        is_over.set()
        thread.join()


def _cpu_s(process: subprocess.Popen[bytes]) -> float:
    return family_cpu_s(process.pid)


def _cpu_of(servers: Sequence[Any]) -> float:
    return sum(family_cpu_s(server.pid) for server in servers)


if __name__ == "__main__":
    serve({"agent_probes": agent_probes}, distribution="timerqueue")
