"""What the parts of `schedule` cost, one at a time: `pytest benchmarks`."""

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from schedule import Cron, Every, duration, parse

NOW = datetime(2026, 3, 1, 11, 58, 30, tzinfo=UTC)


def test_the_next_slot_of_every(benchmark: BenchmarkFixture) -> None:
    """`Every.next` of a job with a phase."""
    schedule = Every(timedelta(seconds=10)).bind("job-1")

    following = benchmark(schedule.next, NOW)

    assert following is not None


@pytest.mark.parametrize(
    "expression",
    ["*/5 * * * *", "30 4 1 * *", "15 9-17 * * mon-fri", "0 0 29 2 *"],
)
@pytest.mark.parametrize("tz", ["UTC", "Europe/Berlin"])
def test_the_next_slot_of_cron(benchmark: BenchmarkFixture, expression: str, tz: str) -> None:
    """`Cron.next` of an expression that is read already."""
    schedule = Cron(expression, tz=tz)

    following = benchmark(schedule.next, NOW)

    assert following is not None


def test_reading_a_cron_expression(benchmark: BenchmarkFixture) -> None:
    """`Cron` of five fields that were never seen before: what is read again may come from a cache."""
    numbers = count()

    def read() -> Cron:
        days, minutes = divmod(next(numbers), 1440)
        return Cron(f"{minutes % 60} {minutes // 60} {1 + days % 28} {1 + days // 28 % 12} *")

    benchmark(read)


def test_reading_a_schedule(benchmark: BenchmarkFixture) -> None:
    """`parse` of an interval."""
    benchmark(parse, "@every 10s")


@pytest.mark.parametrize("text", ["1m30s", "500ms", "PT5M"])
def test_reading_a_duration(benchmark: BenchmarkFixture, text: str) -> None:
    """`duration` of text."""
    benchmark(duration, text)
