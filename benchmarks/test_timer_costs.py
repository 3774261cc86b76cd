"""What the parts of `timerqueue` cost, one at a time: `pytest benchmarks`."""

import asyncio

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from timerqueue import Entry, TaskPool, TimerHeap

STANDING = 100_000


@pytest.fixture
def full_heap() -> TimerHeap[Entry]:
    """A heap in which 100,000 entries wait, spread over a second."""
    heap: TimerHeap[Entry] = TimerHeap()
    for number in range(STANDING):
        heap.push(Entry(), 1.0 + number * 611_953 % STANDING / STANDING)
    return heap


def test_pushing_and_cancelling_an_entry(benchmark: BenchmarkFixture, full_heap: TimerHeap[Entry]) -> None:
    """One push and one cancel, with 100,000 others."""

    def pair() -> bool:
        entry = Entry()
        full_heap.push(entry, 1.5)
        return full_heap.cancel(entry)

    assert benchmark(pair)


def test_popping_a_batch_and_pushing_it_again(benchmark: BenchmarkFixture, full_heap: TimerHeap[Entry]) -> None:
    """A thousand entries that are due and come back a second later."""
    now = 1.0

    def turn() -> int:
        nonlocal now
        now += 0.01
        batch = full_heap.pop_due(now)
        for entry in batch:
            full_heap.push(entry, entry.due + 1.0)
        return len(batch)

    assert benchmark(turn) > 0


def test_starting_a_thousand_in_the_pool(benchmark: BenchmarkFixture) -> None:
    """A thousand `start_soon` of an empty task, under a limit of 100, until all have ended."""

    async def nothing() -> None:
        pass

    async def start_all() -> None:
        async with TaskPool(capacity=100) as pool:
            for _ in range(1_000):
                pool.start_soon(nothing)

    benchmark(lambda: asyncio.run(start_all()))
