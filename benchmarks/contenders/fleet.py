"""A fleet of monitors for the whole agent, `timerqueue run FILE --json`, and what that process says and takes.

The agent is asked as users ask it: a file, its command line, its output. Lateness and due instants are those that it
prints; that no tick is missing is counted from these, and not from what it says it has missed.
"""

import json
import os
import resource
import subprocess
import sys
import threading
import time
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from answering import NAME
from meters import memory_mib

SAMPLE_EVERY_S = 0.05
BEGINS_WITHIN_S = 60.0
COMMAND = [sys.executable, "-m", "uptime_agent"]


class Fleet:
    """So many monitors, on so many host names, each with an address of its own. Every so-many-th asks a black hole."""

    def __init__(self, monitors: int, hosts: int, interval_s: float, black_holes: int = 0) -> None:
        self.interval_s = interval_s
        self.monitors = monitors
        self.hosts = [f"host-{number}.{NAME}" for number in range(hosts)]
        self.addresses = [f"127.10.{number >> 8}.{number & 255}" for number in range(hosts)]
        self.black_holes = {f"black-hole-{number}" for number in range(black_holes)}
        self._step = monitors // black_holes if black_holes else 0

    def write(self, file: Path, ports: tuple[int, int], top: str = "", certificate: Path | None = None) -> None:
        """Write the configuration. `top`: what stands before the tables."""
        lines = [top, "[defaults]", f'interval = "{self.interval_s:g}s"', 'timeout = "2s"', ""]
        lines += ["[limits]", "total = 200", "http = 200", '"host:*" = 10', "", "[hosts]"]
        lines += [f'"{host}" = ["{address}"]' for host, address in zip(self.hosts, self.addresses, strict=True)]
        for number in range(self.monitors):
            lines += self._check(number, ports, certificate)
        file.write_text("\n".join(lines) + "\n")

    def _check(self, number: int, ports: tuple[int, int], certificate: Path | None) -> Iterator[str]:
        host = self.hosts[number % len(self.hosts)]
        is_hole = bool(self._step) and number % self._step == 0
        name = f"black-hole-{number // self._step}" if is_hole else f"monitor-{number}"
        scheme = "http" if certificate is None or is_hole else "https"
        yield from ("", "[[check]]", f'name = "{name}"', f'url = "{scheme}://{host}:{ports[is_hole]}/health/{number}"')
        yield 'contains = "hello"'
        if scheme == "https":
            yield f'ca_file = "{certificate}"'


class Checks:
    """The checks that an agent tells of. `begun`: UTC seconds. `late_ms`, `late_begun`: of all but black holes."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.count = 0
        self.started_at = 0.0
        self.begun = array("d")
        self.late_ms = array("d")
        self.late_begun = array("d")
        self.gaps = 0
        """Ticks between two of a monitor that nobody told of."""
        self.missed = 0
        self.statuses: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self._due: dict[str, float] = {}

    def take(self, said: dict[str, Any]) -> None:
        """Take a line of the agent's."""
        match said["event"]:
            case "started":
                self.started_at = time.time()
            case "missed":
                self.missed += said["count"]
            case "check":
                self._check(said)

    def left_out(self, seconds: float) -> int:
        """How many ticks were left out in so many seconds: those that it says, or more of which it says nothing."""
        silent = self._fleet.monitors - len(self._due) if seconds > self._fleet.interval_s else 0
        return max(self.missed, self.gaps + silent)

    def late_between(self, first: float, last: float) -> list[float]:
        """The lateness of those that began so many seconds after the agent said that it has started, in ms."""
        since = (begun - self.started_at for begun in self.late_begun)
        return [late for late, at in zip(self.late_ms, since, strict=True) if first <= at < last]

    def late_seconds(self, most_ms: float) -> int:
        """In how many seconds, from the start on, a check began later than that."""
        begun = zip(self.late_ms, self.late_begun, strict=True)
        return len({int(at - self.started_at) for late, at in begun if late > most_ms})

    def _check(self, said: dict[str, Any]) -> None:
        name, due, late_ms = said["name"], _instant(said["due"]), said["lateness_ms"]
        self.count += 1
        self.begun.append(due + late_ms / 1e3)
        before = self._due.get(name)
        if before is not None:
            self.gaps += round((due - before) / self._fleet.interval_s) - 1
        self._due[name] = due
        if name in self._fleet.black_holes:
            return
        self.late_ms.append(late_ms)
        self.late_begun.append(due + late_ms / 1e3)
        self.statuses[said["status"]] += 1
        if said["error"]:
            self.errors[said["error"]] += 1


class Agent:
    """A process of the agent. `cpu_s` and `rss_mib` are readings of now, `most_descriptors` is the most ever seen."""

    def __init__(self, process: subprocess.Popen[str], checks: Checks) -> None:
        self._process = process
        self._checks = checks
        self.most_descriptors = 0
        self.begun = threading.Event()
        self._descriptors = f"/proc/{process.pid}/fd"
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def cpu_s(self) -> float:
        """CPU seconds of all its threads so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def peak_mib(self) -> float:
        """The most resident memory that it has had."""
        return memory_mib("VmHWM", self._process.pid)

    def watch(self, seconds: float) -> None:
        """Count its descriptors for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            with suppress(FileNotFoundError):
                self.most_descriptors = max(self.most_descriptors, sum(1 for _ in os.scandir(self._descriptors)))
            time.sleep(min(SAMPLE_EVERY_S, left))

    def stop(self) -> None:
        """End it as Ctrl-C does, and read the rest."""
        self._process.terminate()
        self._reader.join()
        if self._process.wait():
            raise RuntimeError(f"the agent ended with status {self._process.returncode}")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            self._checks.take(said)
            if said["event"] == "started":
                self.begun.set()


@contextmanager
def agent(file: Path, fleet: Fleet, *options: str, descriptors: int | None = None) -> Iterator[tuple[Agent, Checks]]:
    """Run the agent while the body runs. `descriptors`: as many as it may have open at any instant."""
    checks = Checks(fleet)
    process = subprocess.Popen(
        [*COMMAND, "run", str(file), "--json", *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    if descriptors is not None:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (descriptors, descriptors))
    found = Agent(process, checks)
    try:
        if not found.begun.wait(BEGINS_WITHIN_S):
            raise RuntimeError(f"the agent did not begin within {BEGINS_WITHIN_S:g} s")
        yield found, checks
        found.stop()
    finally:
        process.kill()
        process.wait()


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of the values that at most so many percent of them exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]


def _instant(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
