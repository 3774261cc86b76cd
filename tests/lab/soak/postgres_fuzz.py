"""Ask PostgreSQL servers whose answers are mangled, and read mangled rows of tables, beside healthy targets.

    python tests/lab/soak/postgres_fuzz.py [--inputs 10000] [--seed 1] [--healthy 50] [--json]

Each input goes through a check, through probes, or through tables that name servers, in turn; and as many rows through
what reads rows. Nothing may be raised and no defect of ours logged: a server is down, probes fail and tables cannot be
read, in words. Every healthy target has to be up, whenever it is checked. The event loop may work for 100 ms in one go
at most, and the process may take 400 MiB. Exits with 0 if all of that holds, with 1 if not. How late healthy targets
were is told as well; a machine with other work makes them late.

It connects to this machine alone.
"""
# ruff: noqa: T201 - it speaks to who started it

import argparse
import json
import logging
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import anyio
from attrs import evolve

import fuzzed_postgres
import hostile_servers
from fuzzed_rows import mangled_row
from kit import PATIENCE
from timerqueue import SystemClock
from uptime_agent.checks import Family, Mode, Resolver, Status, TargetCheck
from uptime_agent.checks.kinds import BY_SCHEME
from uptime_agent.libpq import Server
from uptime_agent.postgres import CATALOGUE, PostgresTarget
from uptime_agent.postgres.doctor import examine
from uptime_agent.tables import TablesPlace, TablesUnread, read_once
from uptime_agent.tables.copy import read_back, written
from uptime_agent.tables.rows import row_of, taken_in, targets_of
from uptime_agent.text import Redactor, parse_url

AT_ONCE = 30
"""Inputs that are under way: most of them wait, for servers that say nothing more."""
TIMEOUT = 0.5
INTERVAL = 1.0
"""Seconds between checks of a healthy target."""
LOOK = 0.01
"""Seconds between looks at how long the event loop has worked."""
MOST_WORK = 0.1
"""Seconds of processor time."""
MOST_MEMORY = 400 * 1024
"""KiB."""
PROBES = [evolve(CATALOGUE[name], timeout=TIMEOUT) for name in ("node_role", "statements", "connectivity")]
BATCH = 50
"""Rows that are read together."""


class Fuzz:
    """What is done with each input, and what came of it."""

    def __init__(self, port, healthy, seed):
        self.port, self.healthy, self.seed = port, healthy, seed
        self.ends, self.defects = Counter(), []
        self.late, self.wrong, self.work_in_one_go = [], Counter(), 0.0
        self.clock = SystemClock()

    def check_of(self, url, timeout):
        """Make the check of a URL."""
        kind = BY_SCHEME[url.partition(":")[0]]
        return TargetCheck(
            check=kind.make(url=parse_url(url, kind.schemes)),
            needs=(),
            timeout=timeout,
            mode=Mode.ANY,
            family=Family.ANY,
            degraded_above=None,
            resolver=Resolver({}),
            clock=self.clock,
            redactor=Redactor(()),
        )

    async def check(self, number):
        found = await self.check_of(f"postgresql://me@127.0.0.1:{self.port}/{number}", TIMEOUT).run()
        if found.status is Status.UNKNOWN and "held up" not in found.error:
            self.defects.append(f"{number}: unknown: {found.error}")
        return found.status.value

    async def probe(self, number):
        server = Server(host="127.0.0.1", port=self.port, user="me", database=str(number))
        target = PostgresTarget(name="x", server=server, wait=TIMEOUT)
        probes = [PROBES[number // 3 % len(PROBES)]]
        found = await examine(target, probes, Resolver(), self.clock)
        self.defects += [f"{number}: {each}" for each in found if "defect of ours" in each.text]
        return "probed" if found[0].is_well else "not probed"

    async def read(self, number):
        place = TablesPlace(server=Server(host="127.0.0.1", port=self.port, user="me", database=str(number)))
        try:
            with anyio.fail_after(TIMEOUT * 4):
                found = await read_once(place, Resolver(), self.clock)
            return f"tables read, {bool(found.targets(()))}"
        except (TablesUnread, TimeoutError):
            return "tables unread"

    async def work(self, numbers):
        """Take one input after another."""
        for number in numbers:
            how = (self.check, self.probe, self.read)[number % 3]
            try:
                with anyio.fail_after(PATIENCE):
                    end = await how(number)
                    self.ends[end] += number >= 0
            except Exception as exc:  # noqa: BLE001 - that is what is looked for
                self.defects.append(f"{number}: {how.__name__}: {exc!r}")

    async def look(self):
        """Measure how long the event loop works before others have their turn."""
        before = time.thread_time()
        while True:
            await self.clock.sleep(LOOK)
            now = time.thread_time()
            self.work_in_one_go, before = max(self.work_in_one_go, now - before), now

    async def watch(self, number):
        """Check a healthy target now and again."""
        due = self.clock.monotonic() + INTERVAL * number / 50
        while True:
            await self.clock.sleep(max(due - self.clock.monotonic(), 0))
            self.late.append(self.clock.monotonic() - due)
            found = await self.check_of(f"http://127.0.0.1:{self.healthy}/", 5.0).run()
            self.wrong[found.status.value] += 1
            due += INTERVAL

    async def run(self, inputs, healthy):
        """Take all inputs, beside so many healthy targets."""
        numbers = iter(range(inputs))
        await self.work([-1, -2, -3])  # what is imported with the first of each takes its time once
        async with anyio.create_task_group() as watching:
            watching.start_soon(self.look)
            for number in range(healthy):
                watching.start_soon(self.watch, number)
            async with anyio.create_task_group() as group:
                for _ in range(AT_ONCE):
                    group.start_soon(self.work, numbers)
            await anyio.to_thread.run_sync(self.read_rows, inputs)
            watching.cancel_scope.cancel()

    def read_rows(self, inputs):
        """Read mangled rows, some at a time, each time after those before."""
        chance, known = random.Random(f"{self.seed} rows"), {}
        with tempfile.TemporaryDirectory() as name:
            place = TablesPlace(server=Server(), folder=Path(name), environment={"A_PASSWORD": "x"})
            (place.folder / "passwords").mkdir()
            (place.folder / "passwords" / "a").write_text("x\n")
            for begun in range(0, inputs, BATCH):
                raw = [mangled_row(chance, number % 20) for number in range(begun, begun + BATCH)]
                try:
                    known, wrong = taken_in([row_of(*each) for each in raw], known, place, ["taken"])
                    targets = targets_of(known, ())
                    copy = place.folder / "copy"
                    written(copy, "here", [each.row for each in known.values()], 0.0)
                    back, _ = read_back(copy, "here")
                    taken_in(back, {}, place, ())
                    "".join(wrong).encode()
                except Exception as exc:  # noqa: BLE001 - that is what is looked for
                    self.defects.append(f"rows from {begun}: {exc!r}")
                    continue
                self.ends["rows that are wrong"] += len(wrong)
                self.ends["servers of rows"] += len(targets)


@contextmanager
def serving(program, *arguments):
    """Start a server; its port."""
    command = [sys.executable, program.__file__, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield int(process.stdout.readline())
        process.stdin.close()
        process.wait(PATIENCE)


def fuzz(inputs, seed, healthy):
    """Take so many inputs; return what came of it."""
    logged = []
    logging.getLogger().addHandler(handler := logging.Handler(logging.ERROR))
    handler.emit = lambda record: logged.append(record.getMessage())
    with serving(fuzzed_postgres, str(seed)) as port, serving(hostile_servers, "healthy") as well:
        found = Fuzz(port, well, seed)
        anyio.run(found.run, inputs, healthy)
    late = sorted(found.late) or [0.0]
    return {
        "inputs": inputs,
        "ends": dict(found.ends),
        "healthy": dict(found.wrong),
        "latest_ms": round(late[-1] * 1000, 1),
        "p99_ms": round(late[int(len(late) * 0.99)] * 1000, 1),
        "work_in_one_go_ms": round(found.work_in_one_go * 1000, 1),
        "memory_mib": most_memory() // 1024,
        "defects": found.defects + logged,
    }


def most_memory():
    """Return the most KiB that this process has had: getrusage counts what the process had that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--healthy", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = fuzz(given.inputs, given.seed, given.healthy)
    if given.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name}: {value if name != 'defects' else len(value)}")
        print(*found["defects"][:20], sep="\n")
    is_well = set(found["healthy"]) <= {"up"} and found["memory_mib"] * 1024 < MOST_MEMORY and not found["defects"]
    sys.exit(0 if is_well and found["work_in_one_go_ms"] <= MOST_WORK * 1000 else 1)


if __name__ == "__main__":
    main()
