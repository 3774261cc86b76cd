"""The whole agent, started as users start it, over a fleet of monitors that ask servers in another process."""

import math
import os
import pty
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from answering import certificate_in, servers
from child import Values, serve

from fleet import COMMAND, Checks, Fleet, agent, percentile

SETTLE_S = 2.0
TABLE = b"waiting for the first check"
SPARE = 60
"""Descriptors beside those of checks: the store's, the output, the event loop."""

LIMIT = 200

FIRST_S = 3.0
"""The first seconds, in which the agent makes good what fell due while it added its jobs."""

PUNCTUAL_MS = 100.0


def agent_check(monitors: int, seconds: float) -> Values:
    """Each monitor once a second, without a store."""
    return _steady(monitors, seconds, "--store", "memory")


def agent_stored(monitors: int, seconds: float) -> Values:
    """Each monitor once a second, each check stored in SQLite."""
    return _steady(monitors, seconds)


def agent_stored_tls(monitors: int, seconds: float) -> Values:
    """The same over TLS."""
    return _steady(monitors, seconds, is_tls=True)


def agent_fleet(monitors: int, hosts: int, black_holes: int, seconds: float) -> Values:
    """Each monitor every ten seconds, some of them at a server that accepts and never answers; the default store."""
    fleet = Fleet(monitors, hosts, 10.0, black_holes)
    with tempfile.TemporaryDirectory() as folder, servers(fleet.addresses) as ports:
        file = Path(folder) / "fleet.toml"
        fleet.write(file, ports)
        with agent(file, fleet, descriptors=LIMIT + SPARE) as (process, checks):
            cpu = process.cpu_s()
            process.watch(seconds)
            cpu, count = process.cpu_s() - cpu, checks.count
            peak = process.peak_mib()
    late = checks.late_ms
    return {
        "checks": checks.count,
        "missed": checks.left_out(seconds),
        "not_up": sum(checks.statuses.values()) - checks.statuses["up"],
        "late_p50_ms": percentile(late, 50),
        "late_p99_ms": percentile(late, 99),
        "late_p99_first_ms": percentile(checks.late_between(-math.inf, FIRST_S) or [0.0], 99),
        "late_p99_then_ms": percentile(checks.late_between(FIRST_S, math.inf) or [0.0], 99),
        "late_max_then_ms": max(checks.late_between(FIRST_S, math.inf), default=0.0),
        "late_seconds": checks.late_seconds(PUNCTUAL_MS),
        "late_max_ms": max(late),
        "check_us": cpu / count * 1e6,
        "peak_mib": peak,
        "descriptors": process.most_descriptors,
        "out_of_descriptors": sum(count for error, count in checks.errors.items() if "descriptors" in error),
    }


def agent_start(monitors: int, hosts: int, seconds: float) -> Values:
    """The agent's first seconds: how its checks spread, when its table is there; and `timerqueue check` of the file."""
    fleet = Fleet(monitors, hosts, 10.0)
    with tempfile.TemporaryDirectory() as folder, servers(fleet.addresses) as ports:
        file = Path(folder) / "fleet.toml"
        fleet.write(file, ports)
        check_s, check_cpu_s = _checked(file)
        table_s = _table(file)
        file.with_suffix(".db").unlink()
        with agent(file, fleet) as (process, checks):
            process.watch(seconds)
    return {
        "check_s": check_s,
        "check_cpu_s": check_cpu_s,
        "table_s": table_s,
        "most_of_share": _most_in_a_second(checks, seconds) / (monitors / fleet.interval_s),
    }


def _steady(monitors: int, seconds: float, *options: str, is_tls: bool = False) -> Values:
    fleet = Fleet(monitors, monitors, 1.0)
    with tempfile.TemporaryDirectory() as folder:
        certificate = certificate_in(Path(folder)) if is_tls else None
        with servers(fleet.addresses, certificate) as ports:
            file = Path(folder) / "fleet.toml"
            fleet.write(file, ports, certificate=certificate)
            with agent(file, fleet, *options) as (process, checks):
                process.watch(SETTLE_S)
                cpu, count = process.cpu_s(), checks.count
                process.watch(seconds)
                cpu, count = process.cpu_s() - cpu, checks.count - count
    return {
        "check_us": cpu / count * 1e6,
        "per_second": count / seconds,
        "missed": checks.left_out(seconds),
        "not_up": sum(checks.statuses.values()) - checks.statuses["up"],
        "late_p99_ms": percentile(checks.late_ms, 99),
    }


def _most_in_a_second(checks: Checks, seconds: float) -> int:
    """The most checks that began in one of the first seconds, the last and incomplete one left out."""
    began = Counter(int(begun - checks.started_at) for begun in checks.begun if begun >= checks.started_at)
    return max(began[second] for second in range(int(seconds) - 1))


def _checked(file: Path) -> tuple[float, float]:
    """Seconds by the clock, and of CPU, that `timerqueue check` takes from its start to its end."""
    began, cpu = time.monotonic(), sum(os.times()[2:4])
    subprocess.run([*COMMAND, "check", str(file)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began, sum(os.times()[2:4]) - cpu


def _table(file: Path) -> float:
    """Seconds from the start of the agent in a terminal until its table is there."""
    ours, its = pty.openpty()
    began = time.monotonic()
    process = subprocess.Popen([*COMMAND, "run", str(file)], stdin=its, stdout=its, stderr=its)
    os.close(its)
    try:
        seen = b""
        while TABLE not in seen:
            seen += os.read(ours, 65_536)
        return time.monotonic() - began
    finally:
        process.kill()
        process.wait()
        os.close(ours)


if __name__ == "__main__":
    serve(
        {each.__name__: each for each in (agent_check, agent_stored, agent_stored_tls, agent_fleet, agent_start)},
        distribution="timerqueue",
    )
