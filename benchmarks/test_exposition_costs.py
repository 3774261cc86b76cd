"""What it costs to tell Prometheus of 10,000 jobs: a snapshot on the loop, and the text: `pytest benchmarks`."""

import asyncio
from time import process_time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from schedule import Every
from scheduler import Scheduler
from scheduler.metrics import exposition, render, snapshot

JOBS = 10_000
KINDS = 60
HOUR = Every(3600)
MOST_SERIES = 5_000
pytestmark = pytest.mark.benchmark(timer=process_time)  # other processes on this machine change nothing


async def nothing() -> None:
    """A job with nothing to do."""


@pytest.fixture(scope="module")
def scheduler() -> Scheduler:
    """Ten thousand jobs of sixty kinds, each of which has run."""

    async def live() -> Scheduler:
        async with Scheduler(limits={f"limit-{number}": 500 for number in range(KINDS)}) as s:
            for number in range(JOBS):
                s.add(nothing, HOUR, id=f"job {number}", needs=f"limit-{number % KINDS}")
            await asyncio.gather(*(job.run_now() for job in s.jobs()))
        return s

    return asyncio.run(live())


def test_the_snapshot_of_ten_thousand_jobs(benchmark: BenchmarkFixture, scheduler: Scheduler) -> None:
    """This part may be on the event loop. Target: less than 10 ms."""
    taken = benchmark(snapshot, scheduler)

    assert taken.statistics.jobs == JOBS


def test_the_snapshot_with_series_for_jobs(benchmark: BenchmarkFixture, scheduler: Scheduler) -> None:
    """A pattern that all ids match, of which 500 have series."""
    taken = benchmark(lambda: snapshot(scheduler, jobs="*"))

    assert taken.left_out == JOBS - len(taken.jobs)


def test_the_text_of_a_snapshot(benchmark: BenchmarkFixture, scheduler: Scheduler) -> None:
    """This part may be in a thread."""
    taken = snapshot(scheduler, jobs="*")

    text = benchmark(render, taken)

    assert sum(not line.startswith(b"#") for line in text.splitlines()) <= MOST_SERIES


def test_the_exposition_of_ten_thousand_jobs(benchmark: BenchmarkFixture, scheduler: Scheduler) -> None:
    """Snapshot and text. Target: less than 100 ms."""
    text = benchmark(lambda: exposition(scheduler, jobs="*"))

    assert text.startswith(b"# HELP timerqueue_")
