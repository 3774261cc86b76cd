"""The one reader of real time and of randomness."""

import itertools
import time

import pytest

from timerqueue import SystemClock, TimerQueue, seeded_random, system_random


def take(numbers, count):
    """Ask so many times."""
    return [numbers() for _ in range(count)]


def test_the_system_clock_reads_the_machine():
    """Seconds, on both of its clocks."""
    clock = SystemClock()
    assert time.monotonic() <= clock.monotonic() <= time.monotonic()
    assert clock.wall() == pytest.approx(time.time(), abs=60)


def test_monotonic_time_never_goes_back():
    """Also between two clocks."""
    readings = [clock.monotonic() for clock in itertools.islice(itertools.cycle([SystemClock(), SystemClock()]), 1_000)]
    assert readings == sorted(readings)


async def test_sleep_is_not_early():
    """It returns that many seconds later, or more."""
    clock = SystemClock()
    start = clock.monotonic()
    await clock.sleep(0.001)
    assert clock.monotonic() - start >= 0.001


def test_the_system_clock_is_the_default():
    """Who says nothing gets real time."""
    assert isinstance(TimerQueue().clock, SystemClock)


def test_the_same_seed_gives_the_same_numbers():
    """A simulation can be repeated."""
    assert take(seeded_random(7), 5) == take(seeded_random(7), 5)
    assert take(seeded_random(7), 5) != take(seeded_random(8), 5)


@pytest.mark.parametrize("numbers", [system_random(), seeded_random(1)], ids=["system", "seeded"])
def test_random_numbers_lie_between_zero_and_one(numbers):
    """One itself is not among them, and they differ."""
    some = take(numbers, 100)
    assert all(0 <= number < 1 for number in some)
    assert len(set(some)) == 100
