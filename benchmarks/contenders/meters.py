"""Readings of this process: CPU, memory, and how long its event loop was held up."""

import asyncio
import gc
import os
import time
import tracemalloc
from pathlib import Path

PROBE_EVERY_S = 0.005


def cpu_s() -> float:
    """CPU seconds that all threads of this process have used, user and system."""
    return time.process_time()


def family_cpu_s(pid: int) -> float:
    """CPU seconds of a process and of its children, those that have ended and been waited for included."""
    ticks = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        if file.parent.name == str(pid):
            ticks += sum(map(int, fields[11:15]))
        elif fields[1] == str(pid):
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def rss_mib() -> float:
    """Resident memory now, in MiB."""
    return memory_mib("VmRSS")


def peak_rss_mib() -> float:
    """The most resident memory that this process has had so far, in MiB; the interpreter's own 10 MiB included."""
    return memory_mib("VmHWM")


def memory_mib(field: str, pid: int | None = None) -> float:
    """A field of the memory of a process, this one unless another is named: VmRSS now, VmHWM the most so far."""
    file = Path("/proc") / str(pid or "self") / "status"
    for line in file.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"no field {field!r} in {file}: memory is measured on Linux only")


def objects_alive() -> int:
    """How many containers the collector tracks after a full collection."""
    gc.collect()
    return len(gc.get_objects())


class Growth:
    """Memory from here on: `traced` counts what Python allocated, otherwise resident memory is read."""

    def __init__(self, *, traced: bool = False) -> None:
        gc.collect()
        self._traced = traced
        if traced:
            tracemalloc.start()
        self._before = self._now()

    def bytes_per(self, jobs: int) -> float:
        """Bytes gained since the beginning, divided among `jobs`."""
        gc.collect()
        return (self._now() - self._before) / jobs

    def _now(self) -> float:
        return tracemalloc.get_traced_memory()[0] if self._traced else rss_mib() * 2**20


class LoopProbe:
    """Asks the loop for a call every 5 ms and keeps the longest that one came too late."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._expected = loop.time() + PROBE_EVERY_S
        self._longest = 0.0
        self._handle = loop.call_at(self._expected, self._tick)

    def _tick(self) -> None:
        now = self._loop.time()
        self._longest = max(self._longest, now - self._expected)
        self._expected = now + PROBE_EVERY_S
        self._handle = self._loop.call_at(self._expected, self._tick)

    def stop(self) -> float:
        """The probe has ended; the answer is the longest stall in seconds, one still going on included."""
        self._handle.cancel()
        return max(self._longest, self._loop.time() - self._expected)
