"""The witness of an agent, from outside: its output, its memory, and the time in which it had no core.

The agent writes into files. A pipe would fill up while its reader has no core, and the agent would wait for the reader.
"""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from beside_judge import Check, Sample

LOOK = 0.02
"""Seconds between two readings of the counters."""
PATIENCE = 120.0
"""Seconds without progress after which a play is given up. A guard, no claim about speed."""
STEAL = 8
"""The column of /proc/stat."""
BETWEEN_MEMORY = 10
"""Readings from one look at the memory to the next."""
DEFECTS = ("Traceback", "could not be served", "check itself failed", "defect of ours", " ERROR ", " CRITICAL ")
"""Texts in a line of the log, or in the error of a check, that tell of a defect of ours."""
LAST_WORDS = 20
"""Lines of the log of an agent that has ended by itself."""


def memory(pid, which):
    """Return the memory of a process in KiB: now (VmRSS) or at its peak (VmHWM)."""
    return int(Path(f"/proc/{pid}/status").read_text().partition(f"{which}:")[2].split()[0])


def without_a_core(thread):
    """Return the seconds in which a thread was ready to run and had no core, since it began."""
    with open(f"/proc/{thread}/schedstat", "rb") as counters:  # noqa: PTH123 - hundreds of times a second
        return int(counters.read().split()[1]) / 1e9


def stolen():
    """Return the core seconds that the host of this machine took, since the machine began."""
    with open("/proc/stat", "rb") as counters:  # noqa: PTH123 - fifty times a second
        return int(counters.readline().split()[STEAL]) / os.sysconf("SC_CLK_TCK")


class WatchedAgent:
    """A running agent. `healthy`: the names of its healthy targets. Its output and its log lie in `folder`."""

    def __init__(self, command, folder, file, healthy):
        self.output, self.log = folder / "output", folder / "log"
        with self.output.open("wb") as output, self.log.open("wb") as log:
            self.process = subprocess.Popen([*command, "run", str(file), "--json"], stdout=output, stderr=log)
        self.healthy, self.checks, self.others, self.notices = frozenset(healthy), [], Counter(), Counter()
        self.samples, self.memory, self.peak = [], [], 0
        self.broken = []
        self._waited, self._overslept, self._turns = {}, 0.0, 0
        self._lines, self._rest = self.output.open("rb"), b""

    def turn(self):
        """Sleep a moment. Then read the counters, and the new lines of the output."""
        began, waited = time.monotonic(), without_a_core("thread-self")
        time.sleep(LOOK)
        longer = time.monotonic() - began - LOOK
        self._overslept += max(longer - (without_a_core("thread-self") - waited), 0.0)
        self._look()
        self._read()

    def _look(self):
        with suppress(OSError):
            for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
                with suppress(OSError):  # it has ended
                    self._waited[thread.name] = without_a_core(f"{self.process.pid}/task/{thread.name}")
        self.samples.append(Sample(time.time(), sum(self._waited.values()), self._overslept + stolen()))
        self._turns += 1
        if self._turns % BETWEEN_MEMORY == 0:
            self._weigh()

    def _weigh(self):
        with suppress(OSError, IndexError):  # it has ended
            self.memory.append(memory(self.process.pid, "VmRSS"))
            self.peak = max(self.peak, memory(self.process.pid, "VmHWM"))

    def _read(self):
        *lines, self._rest = (self._rest + self._lines.read()).split(b"\n")
        for event in map(json.loads, lines):
            if event["event"] == "notice":
                self.notices[event["text"]] += 1
            elif event["event"] == "check":
                self._take(event)

    def _take(self, event):
        name, status, error = event["name"], event["status"], event["error"]
        if any(each in (error or "") for each in DEFECTS):
            self.broken.append(f"{name}: {error}")
        if name not in self.healthy:
            self.others[status] += 1
            return
        due = datetime.fromisoformat(event["due"]).timestamp()
        self.checks.append(Check(name, status, error, due, event["lateness_ms"] / 1000))

    def is_alive(self):
        """Tell whether the process runs."""
        return self.process.poll() is None

    def until(self, holds, patience=PATIENCE):
        """Watch the agent until `holds` returns True. Return None, or why that never came.

        `patience`: seconds in which `holds` may return the same value. Any change of it is progress.
        """
        last, since = None, time.monotonic()
        while (found := holds()) is not True:
            if found != last:
                last, since = found, time.monotonic()
            if not self.is_alive():
                return f"the agent has ended with status {self.process.returncode}"
            if time.monotonic() - since > patience:
                return f"nothing has happened for {patience:.0f} s"
            self.turn()
        return None

    def until_all_are_checked(self):
        """Watch until each healthy target was checked once more. Return None, or why that never came."""
        before = len(self.checks)

        def all_are():
            left = len(self.healthy - {each.name for each in self.checks[before:]})
            return left == 0 or left

        return self.until(all_are)

    def has_said(self, text):
        """Tell whether a hostile target had this status, or a notice has this text in it."""
        return text in self.others or any(text in each for each in self.notices)

    def stop(self):
        """Ask the agent to end. Return its exit status, or None if it goes on."""
        self._weigh()
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self._read()

    def defects(self):
        """Return the lines of its log, and the errors of its checks, that tell of defects."""
        lines = self.log.read_text("utf-8", "backslashreplace").splitlines()
        found = [line for line in lines if any(each in line for each in DEFECTS)]
        if self.process.poll():
            found += lines[-LAST_WORDS:]
        return (*self.broken, *found)
