"""The queue in this process alone: what its server's queue puts there, it puts from threads of its own."""

import sys
from threading import Thread

import pytest

from scheduler.queues import Kind, Tick
from scheduler.queues.local import LocalQueue

EACH = 2_000


@pytest.fixture
def interval():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("interval")
def test_what_threads_put_and_the_loop_takes_at_once_is_counted(clock):
    """A count is read and written in one: of two that are at it at the same time neither is lost."""
    queue, timers, delivered = LocalQueue(), [], []
    queue.open(clock, lambda at, func: timers.append(func), delivered.extend)

    def put(name):
        for number in range(EACH):
            queue.put([Tick(f"{name}-{number}", 0)])

    threads = [Thread(target=put, args=[name]) for name in "ab"]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or timers:
        if timers:
            timers.pop()()
    for thread in threads:
        thread.join()
    for delivery in delivered:
        delivery.done()
    counts = queue.statistics()
    assert (counts.placed, counts.delivered, counts.done) == (2 * EACH, 2 * EACH, 2 * EACH)
    assert queue.census(Kind.RUN).total == 0
