"""What the tests of the scheduler share: processes that die, and quiet about runs that are meant to fail."""

import logging
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from scheduler import Scheduler, current_run
from scheduler._plan.timeline import instant_of
from scheduler.stores.memory import MemoryStore


class Processes:
    """Processes one after another, over one clock and one store.

    `begun`: (due, attempt) of each run of each of them, with dues as datetimes. `ended`: those that came to their end.
    """

    def __init__(self, clock):
        self.clock = clock
        self.store = MemoryStore()
        self.begun = []
        self.ended = []

    @asynccontextmanager
    async def one(self, takes=1, *, dies=False, knows_task=True, add=None, **options):
        """Let a scheduler run until the end of the block: until it is stopped at once or, if it `dies`, is killed.

        Its task "work" takes so many seconds. Of a death nothing reaches the store. `add` is called with the scheduler
        before that has read the store.
        """
        s = Scheduler(store=self.store, clock=self.clock, **options)

        async def work():
            run = current_run()
            self.begun.append((run.due, run.attempt))
            await self.clock.sleep(takes)
            self.ended.append((run.due, run.attempt))

        if knows_task:
            s.register("work", work)
        if add is not None:
            add(s)
        async with s:
            yield s
            if dies:
                self.die()
            s.stop(grace=0)

    async def owe(self, *, dies=True, schedule="@every 1h", runs=1, before=None, **options):
        """Let a process end under so many runs of "job", whose delivery is at least once. Their due instants.

        `before`: what is done to the scheduler while they run.
        """
        async with self.one(100_000, dies=dies) as s:
            start = self.clock.now() + timedelta(seconds=1)
            s.add("work", schedule, id="job", tags=["tag"], start=start, delivery="at_least_once", **options)
            while len(self.begun) < runs:
                await self.clock.travel(5)
            if before is not None:
                before(s)
                await self.clock.travel(1)
            await s.flush()
        return [due for due, _ in self.begun]

    def die(self):
        """Whoever has the store open reaches it no more."""
        self.store = self.store.another()
        self.store.open(0, lambda: None)

    def attempts(self, due):
        """Return which attempts at a tick have begun, in that order."""
        return [attempt for each, attempt in self.begun if each == due]

    def again(self):
        """Return the due instants of the ticks that were tried again, in that order."""
        return [due for due, attempt in self.begun if attempt > 1]

    def row(self, job_id="job"):
        """Return what stands in the table of jobs."""
        return self._rows()[job_id][0]

    def edit(self, **changes):
        """Change the row of "job" as anybody may who has a client for the database."""
        self.store.edit(self.row()._replace(**changes))

    def state(self, job_id="job"):
        """Return where the job stands, as the store has it."""
        return self._rows()[job_id][1]

    def record(self, due, job_id="job"):
        """Return the record of a tick."""
        (found,) = [tick for tick in self.store.history(job_id, limit=1_000_000) if instant_of(tick.due_us) == due]
        return found

    def summary(self, dues):
        """Return (attempt, outcome) of the records of these ticks."""
        records = [self.record(due) for due in dues]
        return [(record.attempt, record.outcome) for record in records]

    def _rows(self):
        return {row.id: (row, state) for chunk in self.store.load() for row, state in chunk}


@pytest.fixture
def processes(clock):
    """Play the processes of one program, one after another."""
    return Processes(clock)


@pytest.fixture
def quiet():
    """Keep pytest from collecting tens of thousands of warnings about runs that are meant to fail."""
    logger = logging.getLogger("scheduler")
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(logging.NOTSET)
