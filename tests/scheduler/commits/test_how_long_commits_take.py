"""How long the last commits took, for who waits for those to come."""

from inline_store import InlineStore, ask_inline
from kit import nothing
from scheduler import Scheduler


class SlowStore(InlineStore):
    """A store that takes its time, by a ManualClock."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.takes = 0.0

    def commit(self, batch):
        self.clock.advance(self.takes)
        return super().commit(batch)


async def test_the_longest_of_the_last_commits_counts_and_fades(clock, monkeypatch):
    """One that took long says that the next may, too; by and by it is forgotten."""
    ask_inline(monkeypatch)
    store = SlowStore(clock)
    async with Scheduler(store=store, clock=clock, blocked_after=None) as s:
        s.register("nothing", nothing)

        async def took(*seconds):
            for store.takes in seconds:
                s.add("nothing", "@every 1d", id=f"{len(store.batches)}")
                await s.flush()
            return s._memory._commits.batch_window.took

        assert await took(2.0) == 2.0
        assert 0.5 < await took(0.5) < 2.0
        assert await took(3.0) == 3.0
        assert await took(*[0.5] * 30) == 0.5
        store.takes = 0.0
        s.stop(0)
