"""What stores cost for themselves, without a scheduler: `pytest benchmarks`."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import count

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from scheduler import Outcome, Store
from scheduler._journal.definition import columns_of
from scheduler.stores import RUNNING, Batch, Receipt, StoredJob, StoredState, StoredTick
from scheduler.stores.memory import MemoryStore

from .runner import SCRIPTS

START_US = 1_800_000_000_000_000
SECOND_US = 1_000_000
RUNS = 500
ROWS = 10_000


@contextmanager
def database(kind: str) -> Iterator[Store]:
    """A store that nobody has opened, as the contenders have it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        databases = importlib.import_module("our_databases")
    with getattr(databases, kind)() as made:
        yield made.store()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Each kind of store, open and empty."""
    with nullcontext(MemoryStore()) if request.param == "memory" else database(request.param) as store:
        store.open(START_US, lambda: None)
        yield store
        store.close()


def jobs(number: int) -> Batch:
    """So many jobs with their states."""
    rows = [StoredJob(f"job-{index}", "task", "@every 1h", args=f"[{index}]") for index in range(number)]
    states = [StoredState(row.id, next_us=START_US + index) for index, row in enumerate(rows)]
    return Batch({row.id: row for row in rows}, {state.job_id: state for state in states})


class Loop:
    """Batches as a busy scheduler makes them: the runs marked by the last one end, and the next ones are marked."""

    def __init__(self) -> None:
        self.number = 0
        self._fences = count(1)
        self._marks: list[StoredTick] = []

    def next(self) -> Batch:
        """500 ends, 500 marks and 500 states."""
        self.number += 1
        now_us = START_US + self.number * SECOND_US
        ended = [
            mark._replace(outcome=Outcome.SUCCEEDED.value, ended_us=now_us, lateness=0.001) for mark in self._marks
        ]
        self._marks = [
            StoredTick(f"job-{index}", now_us + index, 1, next(self._fences), RUNNING, now_us) for index in range(RUNS)
        ]
        states = [StoredState(mark.job_id, next_us=now_us, runs=1, successes=1) for mark in self._marks]
        return Batch(states={state.job_id: state for state in states}, ended=ended, marks=self._marks)


def test_a_commit_of_five_hundred_marks_and_ends(benchmark: BenchmarkFixture, store: Store) -> None:
    """One batch of a busy scheduler, until it is durable."""
    loop = Loop()
    store.commit(jobs(RUNS))
    store.commit(loop.next())

    receipt = benchmark.pedantic(store.commit, setup=lambda: ((loop.next(),), {}), rounds=20)

    assert receipt == Receipt()
    assert len(store.history("job-0")) == loop.number


def test_loading_ten_thousand_rows(benchmark: BenchmarkFixture, store: Store) -> None:
    """All jobs and their states, as after a restart, but not made into jobs."""
    store.commit(jobs(ROWS))

    found = benchmark.pedantic(lambda: sum(map(len, store.load())), rounds=5)

    assert found == ROWS


def test_reading_a_stored_definition(benchmark: BenchmarkFixture) -> None:
    """A row with a cron expression, arguments, options and a tag. Texts that many rows share are read once."""
    row = StoredJob("job", "task", "*/5 9-17 * * 1-5", '["example.org", 443]', "{}", '{"timeout": 5}', '["web"]')

    definition = benchmark(columns_of, row)

    assert definition.args == ("example.org", 443)
