"""A scheduler whose tasks take as long as their jobs say."""

from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from scheduler import Scheduler
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START


class Life:
    """Schedulers one after another, over one clock and one store. `t(5)` is five seconds after the first began."""

    def __init__(self, clock):
        self.clock = clock
        self.store = MemoryStore()

    @staticmethod
    def t(seconds):
        """Return an instant."""
        return START + timedelta(seconds=seconds)

    @asynccontextmanager
    async def one(self, *, dies=False, **options):
        """Let a scheduler run until the end of the block. If it `dies`, nothing of its end reaches the store."""
        s = Scheduler(store=self.store, clock=self.clock, **options)

        @s.task("work")
        async def work(takes):
            await self.clock.sleep(takes)

        async with s:
            yield s
            await s.flush()
            if dies:
                self.store = self.store.another()
                self.store.open(0, lambda: None)
            s.stop(grace=0)

    def add(self, s, id, first, *, takes=0, every="1h", **options):
        """Add a job that starts so many seconds after the first scheduler began."""
        return s.add("work", f"@every {every}", id=id, args=[takes], start=self.t(first), **options)


@pytest.fixture
def life(clock):
    """Schedulers over one clock and one store."""
    return Life(clock)
