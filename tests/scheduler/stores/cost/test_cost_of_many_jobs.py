"""What many stored jobs cost in one go: steps are counted, no time is taken."""

import sys

import pytest

from kit import nothing
from scheduler import Scheduler
from scheduler.stores.memory import MemoryStore

FEW = 4_000
MANY = 20_000


class Steps:
    """Counts lines of Python, each round of a comprehension too, while it is entered."""

    def __init__(self):
        self.count = 0

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._note)
        return self

    def __exit__(self, *_):
        sys.settrace(self._before)

    def _note(self, _frame, _event, _arg):
        self.count += 1
        return self._note


async def steps_of_flushing(number):
    """Add so many jobs, and count what each costs from then on until all are durable."""
    async with Scheduler(store=MemoryStore(), blocked_after=None) as s:
        s.register("nothing", nothing)
        await s.flush()
        for index in range(number):
            s.add("nothing", "@every 1h", id=f"job-{index}")
        with Steps() as steps:
            await s.flush()
    return steps.count / number


@pytest.mark.slow
async def test_a_job_is_stored_at_the_same_cost_however_many_wait_beside_it():
    """They go in batches of some thousands; what stays for the next one is not gone through each time."""
    await steps_of_flushing(10)  # what is made once

    assert await steps_of_flushing(MANY) < 1.1 * await steps_of_flushing(FEW)
