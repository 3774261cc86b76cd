"""What adding a job and running it cost: `pytest benchmarks`."""

import asyncio
from itertools import count

from pytest_benchmark.fixture import BenchmarkFixture

from schedule import Every
from scheduler import Scheduler

HOUR = Every(3600)
RUNS = 1_000


async def nothing() -> None:
    """A job with nothing to do."""


def test_adding_and_removing_a_job(benchmark: BenchmarkFixture) -> None:
    """One `add` and one `remove` of a job, before the scheduler runs."""
    s = Scheduler()
    numbers = count()

    benchmark(lambda: s.add(nothing, HOUR, id=f"job-{next(numbers)}").remove())


def test_adding_a_thousand_jobs_in_one_call(benchmark: BenchmarkFixture) -> None:
    """`add_many`, before the scheduler runs."""
    jobs = [(f"job-{index}", HOUR) for index in range(RUNS)]

    added = benchmark(lambda: Scheduler().add_many(nothing, jobs))

    assert len(added) == RUNS


def test_a_thousand_runs_at_once(benchmark: BenchmarkFixture) -> None:
    """A thousand jobs that start now, until all have run: their adding, their running, and the end."""

    async def run_all() -> None:
        left = RUNS
        finished = asyncio.Event()

        async def job() -> None:
            nonlocal left
            left -= 1
            if not left:
                finished.set()

        async with Scheduler() as s:
            for index in range(RUNS):
                s.add(job, HOUR, id=f"job-{index}", start="now")
            await finished.wait()

    benchmark(lambda: asyncio.run(run_all()))


def test_one_run_through_the_scheduler(benchmark: BenchmarkFixture) -> None:
    """`run_now` of a waiting job, from the call until its task has run."""
    with asyncio.Runner() as runner:
        started = asyncio.Event()

        async def job() -> None:
            started.set()

        s = Scheduler()

        async def begin() -> asyncio.Task[None]:
            return asyncio.create_task(s.run())

        async def run_once() -> None:
            started.clear()
            waiting.run_now()
            await started.wait()

        waiting = s.add(job, HOUR, id="job")
        running = runner.run(begin())
        benchmark(lambda: runner.run(run_once()))
        s.stop(grace=0)
        runner.run(asyncio.wait_for(running, 5))
