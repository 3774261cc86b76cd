"""Jobs of which many are replaced every second, with limits, timeouts and subtasks: what collections cost them."""

import asyncio
import gc
import time
from contextlib import AbstractContextManager
from itertools import count

from child import Measurement, Values
from meters import cpu_s, rss_mib

from schedule import Every
from scheduler import RunEnded, Scheduler, Subtask

INTERVALS = [Every(f"{seconds}s") for seconds in (5, 10, 15, 30, 60)]
HOSTS = 400
WORK_S = 0.02
STEPS = 10
"""So many times a second some are replaced."""


class Collections:
    """How long the collector held up this process, and how often it looked at everything."""

    def __init__(self) -> None:
        self.full = 0
        self.longest = 0.0
        self._begun = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._begun = time.perf_counter()
        else:
            self.longest = max(self.longest, time.perf_counter() - self._begun)
            self.full += info["generation"] == 2


async def probe(name: str, host: str) -> str:
    """A check, as it waits for the network."""
    del host
    await asyncio.sleep(WORK_S)
    return name


async def probes(name: str, host: str) -> list[Subtask]:
    """One that asks for more."""
    return [Subtask(probe, name, host, needs=host) for _ in range(3)]


def add(s: Scheduler, number: int) -> None:
    """Every fiftieth has subtasks, the others a limit."""
    name, host, every = f"job-{number}", f"host:{number % HOSTS}", Every(INTERVALS[number % len(INTERVALS)].interval)
    if number % 50:
        s.add(probe, every, id=name, args=(name, host), needs=("http", host), timeout="10s")
    else:
        s.add(probes, every, id=name, args=(name, host), timeout="10s")


def replaced(tuning: AbstractContextManager[None]) -> Measurement:
    """The scenario, within `tuning` from when the jobs are there."""

    async def main(jobs: int, per_second: int, warm_s: float, seconds: float) -> Values:
        lates: list[float] = []
        oldest, newest = count(), count(jobs)

        async def replace_for(seconds: float) -> None:
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                following = time.perf_counter() + 1 / STEPS
                for _ in range(per_second // STEPS):
                    s.get(f"job-{next(oldest)}").remove()
                    add(s, next(newest))
                await asyncio.sleep(max(0.0, following - time.perf_counter()))

        async with Scheduler(limit=500, limits={"http": 300, "host:*": 2}) as s:
            for number in range(jobs):
                add(s, number)
            with tuning:
                await replace_for(warm_s)
                s.listen(lambda event: lates.append(event.lateness) if isinstance(event, RunEnded) else None)
                collections, rss, cpu = Collections(), rss_mib(), cpu_s()
                await replace_for(seconds)
                values = {
                    "run_us": (cpu_s() - cpu) / len(lates) * 1e6,
                    "grown_mib": rss_mib() - rss,
                    "full_collections": float(collections.full),
                    "collection_max_ms": collections.longest * 1e3,
                }
                s.stop(grace=0)
        lates.sort()
        return values | {
            "runs": float(len(lates)),
            "late_p50_ms": lates[len(lates) // 2] * 1e3,
            "late_p99_ms": lates[int(len(lates) * 0.99)] * 1e3,
            "late_max_ms": lates[-1] * 1e3,
        }

    return lambda **sizes: asyncio.run(main(**sizes))
