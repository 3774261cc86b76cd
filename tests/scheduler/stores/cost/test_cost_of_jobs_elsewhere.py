"""The memory that a job takes here that another agent has."""

import gc
import tracemalloc

from scheduler import Scheduler
from scheduler._jobs import Alone
from scheduler.stores import OwnedShards, StoredJob
from scheduler.stores.memory import MemoryStore

JOBS = 5_000
MOST = 550
"""Bytes of each, its id, its place in the list of jobs and all; 437 when this was written. Its schedule is shared."""


async def nothing():
    pass


def bytes_per_job(ownership):
    s = Scheduler(store=MemoryStore())
    s.register("nothing", nothing)
    s._jobs.ownership = ownership
    rows = [StoredJob(f"job-{number}", "nothing", "@every 1h") for number in range(JOBS)]
    s._registry.early.is_waiting = False
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for row in rows:
        s._memory.reconciler.adopt(row, None)
    s._core.journal.pending.dirty.clear()
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(s.jobs()) == JOBS
    return (after - before) / JOBS


def test_a_job_elsewhere_takes_little_more_memory_than_one_here():
    """Each agent knows all jobs."""
    here, elsewhere = bytes_per_job(Alone()), bytes_per_job(OwnedShards())
    assert elsewhere < MOST
    assert elsewhere < here * 1.1
