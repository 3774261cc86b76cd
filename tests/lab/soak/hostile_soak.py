"""Let the agent check hostile targets among healthy ones, and see whether the healthy ones are hurt.

    python3 tests/lab/soak/hostile_soak.py --for 10m [--healthy 200] [--hostile 30] [--json]

No healthy target may be anything but up, left out, or late by more than 100 ms at p99; threads, descriptors and memory
of the agent must be flat from when each target has been checked once, and its threads never more than it promises. So
long it runs from then on. Exits with 0 if all of that holds, with 1 if not, and with 2 if it cannot be tried here.

It enters a network namespace in which there is nothing but `lo`: an agent that follows redirects dials what it is told.
The name servers of this machine are put there too, as sockets that never answer, so that lookups hang.
"""
# ruff: noqa: T201 - it speaks to who started it

import argparse
import importlib.util
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from lone_network import enter, raise_interface

HERE = Path(__file__).resolve()
INTERVAL = 5.0
INTERVAL_OF_HOSTILE = 3.0
SAMPLE = 1.0
"""Seconds from one look at the agent to the next, unless it runs so shortly that these would be too few looks."""

FEWEST_SAMPLES = 20
KEPT = 20
"""Records of each target. SQLite keeps up to 64 MiB of its file in memory, which would grow as long as that does."""

MOST_LATE = 100.0
"""Milliseconds, at p99."""

SLACK = {"threads": 8, "descriptors": 24, "memory": 12 * 1024}
"""By which the last quarter may exceed the second one; memory in KiB."""

THREADS = 12
"""What the agent may have besides one thread for each name that hangs: loop, store, workers that come and go."""

_UNITS = {"s": 1, "m": 60, "h": 3600}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--for", dest="seconds", type=seconds, default=600.0, help="how long, as in 30s or 10m")
    parser.add_argument("--healthy", type=int, default=200)
    parser.add_argument("--hostile", type=int, default=30)
    parser.add_argument("--json", action="store_true", help="print an object instead of a table")
    return parser.parse_args()


def seconds(text):
    found = re.fullmatch(r"([0-9]+)([smh])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"expected a length such as 30s or 10m, found {text!r}")
    return float(found[1]) * _UNITS[found[2]]


def silent_name_servers(opened):
    """Let every lookup hang for as long as the system waits for an answer."""
    text = Path("/etc/resolv.conf").read_text("utf-8") if Path("/etc/resolv.conf").exists() else ""
    found = re.findall(r"^nameserver +([0-9.]+)\s*$", text, re.MULTILINE) or ["127.0.0.1"]
    for number, address in enumerate(dict.fromkeys(found)):
        if not address.startswith("127."):
            raise_interface(f"lo:{number + 1}", address)
        server = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        server.bind((address, 53))


# -- the programs --------------------------------------------------------------------------------------------------


def servers(kind, opened):
    """Start servers: their ports."""
    process = subprocess.Popen(
        [sys.executable, str(HERE.with_name("hostile_servers.py")), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    opened.callback(process.communicate)  # closes its standard input, with which it ends
    count = 1 if kind == "healthy" else len(kinds_of_malice())
    return [int(process.stdout.readline()) for _ in range(count)]


def kinds_of_malice():
    spec = importlib.util.spec_from_file_location("hostile_servers", HERE.with_name("hostile_servers.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [each.__name__ for each in module.MALICE]


def configuration(healthy, hostile, ports):
    """Each target has a host of its own. With every fourth hostile one comes another, for whose name nobody answers."""
    (well,), bad = ports
    yield f'[history]\nper_job = {KEPT}\n[defaults]\ninterval = "{INTERVAL:g}s"\ntimeout = "2s"\n[hosts]'
    for number in range(healthy):
        yield f'"well{number}.test" = "127.1.{number // 200}.{number % 200 + 1}"'
    for number in range(healthy):
        yield f'[[check]]\nname = "well {number}"\nurl = "http://well{number}.test:{well}/"\ncontains = "hello"'
    kinds = kinds_of_malice()
    for number in range(hostile):
        kind = number % len(kinds)
        yield malicious(f"{kinds[kind]} {number}", f"127.2.0.{number + 1}:{bad[kind]}")
    for number in range(names_that_hang(hostile)):
        yield malicious(f"hangs {number}", f"hangs{number}.test")


def names_that_hang(hostile):
    return hostile // 4


def malicious(name, place):
    options = f'redirects = 5\ncontains = "nothing of this kind"\ninterval = "{INTERVAL_OF_HOSTILE:g}s"'
    return f'[[check]]\nname = "{name}"\nurl = "http://{place}/"\n{options}'


class Agent:
    """The command `timerqueue run`. Once all targets have been checked it is looked at for so long, and then ended.

    Before that it starts what it needs, such as threads for names that hang: soon on this machine, late on a slow one.
    """

    def __init__(self, folder, text, length):
        file = Path(folder, "soak.toml")
        file.write_text(text, "utf-8")
        command = ["-m", "uptime_agent", "run", str(file), "--json"]
        self.process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
        self.samples = []
        self._unchecked = set(re.findall(r'^name = "(.+)"$', text, re.MULTILINE))
        self._every = min(SAMPLE, length / FEWEST_SAMPLES)
        self._count = round(length / self._every)
        self._look = threading.Thread(target=self._sample, daemon=True)

    def events(self):
        for event in map(json.loads, self.process.stdout):
            yield event
            if event["event"] == "check" and self._unchecked:
                self._unchecked.discard(event["name"])
                if not self._unchecked:
                    self._look.start()
        self.process.wait()
        if self._look.ident is not None:
            self._look.join()

    def _sample(self):
        with suppress(OSError, KeyError):  # it has ended by itself
            for _ in range(self._count):
                self.samples.append(usage(self.process.pid))
                time.sleep(self._every)
        self.process.send_signal(signal.SIGTERM)


def usage(pid):
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines())
    return {
        "threads": int(status["Threads"]),
        "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "memory": int(status["VmRSS"].split()[0]),
        "processor": sum(map(int, Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[11:13])),
    }


# -- what came of it -----------------------------------------------------------------------------------------------


def soak(options):
    """Run it: what was seen, as plain values."""
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="hostile-soak-"))
        silent_name_servers(opened)
        ports = servers("healthy", opened), servers("hostile", opened)
        text = "\n".join(configuration(options.healthy, options.hostile, ports))
        agent = Agent(folder, text, options.seconds)
        opened.callback(agent.process.kill)
        found = {"healthy": {}, "hostile": {}, "left_out": {"healthy": 0, "hostile": 0}, "late": [], "took": []}
        found |= {"checks": {}, "errors": {}, "notices": []}
        for event in agent.events():
            take(event, found)
        found["status"] = agent.process.returncode
        found["samples"] = agent.samples
    return found


def take(event, found):
    whose = "healthy" if event.get("name", "").startswith("well ") else "hostile"
    match event["event"]:
        case "check":
            found[whose][event["status"]] = found[whose].get(event["status"], 0) + 1
            if whose == "healthy":
                found["late"].append(event["lateness_ms"])
                found["took"].append(event["latency_ms"] or 0.0)
                found["checks"][event["name"]] = found["checks"].get(event["name"], 0) + 1
            if event["error"]:
                key = event["name"] if whose == "hostile" else f"{event['name']} (healthy)"
                found["errors"][key] = event["error"]
        case "missed":
            found["left_out"][whose] += event["count"]
        case "notice":
            found["notices"].append(event["text"])


def percentile(values, share):
    return sorted(values)[min(int(len(values) * share), len(values) - 1)] if values else 0.0


def growth(samples, key):
    """The medians of the second and of the last quarter."""
    quarter = len(samples) // 4
    values = [each[key] for each in samples]
    parts = values[quarter : 2 * quarter], values[-quarter - 1 : -1]
    return tuple(statistics.median(part) if part else 0 for part in parts)


def verdicts(found, options):
    """Each demand, what was seen, and whether it is met."""
    up = found["healthy"].get("up", 0)
    others = sum(found["healthy"].values()) - up
    least = min((found["checks"].get(f"well {number}", 0) for number in range(options.healthy)), default=0)
    wanted = int(options.seconds / INTERVAL) - 1
    late = percentile(found["late"], 0.99)
    yield "ended well", f"status {found['status']}", found["status"] == 0 and bool(found["samples"])
    yield "healthy ones not up", f"{others:,} of {up + others:,} checks", up > 0 and not others
    yield "healthy ones left out", f"{found['left_out']['healthy']:,}", not found["left_out"]["healthy"]
    yield "checks of each healthy one", f"at least {least:,} of {wanted:,}", least >= wanted
    shown = f"{late:.1f} ms (median {percentile(found['late'], 0.5):.1f}, most {percentile(found['late'], 1):.1f})"
    yield "late at p99", shown, late <= MOST_LATE
    for key, slack in SLACK.items():
        before, after = growth(found["samples"], key)
        most = max((each[key] for each in found["samples"]), default=0)
        bound = THREADS + names_that_hang(options.hostile) if key == "threads" else most
        yield key, f"{before:,.0f} -> {after:,.0f}, at most {most:,}", after <= before + slack and most <= bound


def main():
    options = arguments()
    if importlib.util.find_spec("anyio") is None:  # an interpreter without our dependencies: dev.py has one with them
        os.execv(sys.executable, [sys.executable, str(HERE.parents[3] / "dev.py"), "soak", *sys.argv[1:]])
    enter(HERE)
    found = soak(options)
    rows = list(verdicts(found, options))
    if options.json:
        rows = {what: {"seen": seen, "holds": holds} for what, seen, holds in rows}
        print(json.dumps({"rows": rows, **{key: found[key] for key in ("healthy", "hostile", "errors", "notices")}}))
        return 0 if all(row["holds"] for row in rows.values()) else 1
    for name, error in sorted(found["errors"].items()):
        print(f"  {name:<32} {error}")
    print(f"hostile ones: {found['hostile']}, left out {found['left_out']['hostile']:,}")
    if found["samples"]:
        worked = found["samples"][-1]["processor"] - found["samples"][0]["processor"]
        worked /= os.sysconf("SC_CLK_TCK") * options.seconds
        print(f"the agent took {worked:.0%} of a core; the load of this machine is {os.getloadavg()[0]:.1f}")
    print(
        f"a healthy one took {percentile(found['took'], 0.5):.1f} ms, {percentile(found['took'], 0.99):.1f} ms at p99"
    )
    for text in dict.fromkeys(found["notices"]):
        print(f"notice: {text}")
    for what, seen, holds in rows:
        print(f"{'ok  ' if holds else 'FAIL'}  {what:<28} {seen}")
    return 0 if all(holds for *_, holds in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
