"""What most people write first: a task per job that sleeps until it is due. Standard library only."""

import asyncio

from child import Values, serve
from meters import Growth, cpu_s, objects_alive, rss_mib
from workload import Burst, Grid, sleep_until, spread

HOUR_S = 3600.0
AHEAD_US = 60


async def nothing() -> None:
    """A job with nothing to do."""


async def wait_for_hours() -> None:
    """A job whose first run is far away."""
    await asyncio.sleep(HOUR_S)


async def repeat_nothing(first_in_s: float, interval_s: float) -> None:
    """A recurring job with nothing to do."""
    await asyncio.sleep(first_in_s)
    while True:
        await nothing()
        await asyncio.sleep(interval_s)


def burst(jobs: int) -> Values:
    """One-shots that are all due at the same instant."""

    async def main() -> Values:
        work = Burst(jobs, ahead_us=AHEAD_US)

        async def once() -> None:
            await sleep_until(work.due)
            await work.job()

        tasks = [asyncio.create_task(once()) for _ in range(jobs)]
        # The tasks fall asleep before the loop comes back to us: that is part of adding them.
        await asyncio.sleep(0)
        values = await work.observe()
        tasks.clear()
        return values

    return asyncio.run(main())


def steady(jobs: int, rounds: int) -> Values:
    """Every job once a second, each at a phase of its own."""

    async def main() -> Values:
        grid = Grid(jobs, rounds)

        async def job(index: int, due: float) -> None:
            if now := grid.note(index):
                grid.late(now - due)

        async def recur(index: int) -> None:
            due = grid.next_due(index)
            while True:
                await sleep_until(due)
                await job(index, due)
                due += 1.0

        tasks = [asyncio.create_task(recur(index)) for index in range(jobs)]
        await asyncio.sleep(0)
        values = await grid.observe()
        tasks.clear()
        return values

    return asyncio.run(main())


def add_remove(standing: int, pairs: int) -> Values:
    """Creating and cancelling a task, with others waiting."""

    async def main() -> Values:
        rss_before, objects_before = rss_mib(), objects_alive()
        began = cpu_s()
        tasks = [asyncio.create_task(wait_for_hours()) for _ in range(standing)]
        await asyncio.sleep(0)
        add_us = (cpu_s() - began) / standing * 1e6
        rss_full = rss_mib()
        began = cpu_s()
        for _ in range(pairs):
            task = asyncio.create_task(wait_for_hours())
            # It has to have begun before it can be cancelled where it waits.
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.sleep(0)
        pair_us = (cpu_s() - began) / pairs * 1e6
        del task
        while tasks:
            tasks.pop().cancel()
        await asyncio.sleep(0.1)
        return {
            "add_us": add_us,
            "pair_us": pair_us,
            "standing_mib": rss_full - rss_before,
            "kept_objects": objects_alive() - objects_before,
            "kept_mib": rss_mib() - rss_before,
        }

    return asyncio.run(main())


def waiting(jobs: int, interval_s: float) -> Values:
    """Resident memory of jobs that wait for their hour."""
    return {"rss_bytes": asyncio.run(_bytes_per_job(jobs, interval_s, traced=False))}


def waiting_traced(jobs: int, interval_s: float) -> Values:
    """The same in bytes that Python allocated."""
    return {"traced_bytes": asyncio.run(_bytes_per_job(jobs, interval_s, traced=True))}


async def _bytes_per_job(jobs: int, interval_s: float, *, traced: bool) -> float:
    growth = Growth(traced=traced)
    tasks = [asyncio.create_task(repeat_nothing(offset, interval_s)) for offset in spread(jobs, interval_s)]
    await asyncio.sleep(0.5)
    answer = growth.bytes_per(jobs)
    tasks.clear()
    return answer


def idle(jobs: int, seconds: float) -> Values:
    """CPU that waiting jobs cost while none is due."""

    async def main() -> Values:
        tasks = [asyncio.create_task(wait_for_hours()) for _ in range(jobs)]
        await asyncio.sleep(1)
        cpu = cpu_s()
        await asyncio.sleep(seconds)
        tasks.clear()
        return {"idle_cpu_ms": (cpu_s() - cpu) * 1e3}

    return asyncio.run(main())


if __name__ == "__main__":
    serve(
        {
            "burst": burst,
            "steady": steady,
            "add_remove": add_remove,
            "waiting": waiting,
            "waiting_traced": waiting_traced,
            "idle": idle,
        }
    )
