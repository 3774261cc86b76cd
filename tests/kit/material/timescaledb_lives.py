"""One clock and one store over the lives of many schedulers: restarts and deaths, under a clock that stands still."""

from contextlib import asynccontextmanager

from kit import T0, nothing, relative
from scheduler import Scheduler
from scheduler.stores.memory import MemoryStore
from timerqueue import seeded_random


async def fail():
    """Fail as whatever has gone wrong does."""
    msg = "it does not work"
    raise ValueError(msg)


def seconds(instant):
    """Give a datetime in seconds from the start."""
    return round(instant.timestamp() - T0, 6)


class Lives:
    """`tasks`: by name, registered with each scheduler before it runs. `events`: of all of them."""

    def __init__(self, clock, events):
        self.clock = clock
        self.events = events
        self.store = MemoryStore()
        self.tasks = {"nothing": nothing, "fail": fail, "sleep": clock.sleep}

    @asynccontextmanager
    async def life(self, *, killed=False, seed=0, **options):
        """Let a scheduler run until the end of the block: until it is stopped or, if `killed`, until its process dies.

        Of a death nothing reaches the store: another has opened it by then, as the next scheduler would.
        """
        s = Scheduler(clock=self.clock, random=seeded_random(seed), **{"store": self.store} | options)
        for name, func in self.tasks.items():
            s.register(name, func)
        unlisten = s.listen(self.events)
        async with s:
            yield s
            if killed:
                unlisten()
                self.store = self.store.another()
                self.store.open(0, lambda: None)
            s.stop(grace=0)

    async def live(self, length, **options):
        """Let a scheduler run for so many seconds. Its jobs at the end, by id, each with its counts."""
        async with self.life(**options) as s:
            await self.clock.travel(length)
            return {job.id: (job, job.statistics()) for job in s.jobs()}

    def starts(self, job_id=None):
        """When runs began, in seconds from the start."""
        return relative(self.events.starts(job_id))

    def state(self, job_id="a"):
        """What the store holds of where the job stands."""
        return {row.id: state for rows in self.store.load() for row, state in rows}[job_id]
