"""How many starts share a commit, counted while a ManualClock is turned: the store answers in no time of that clock."""

import pytest

from kit import nothing
from scheduler import Scheduler
from scheduler._journal import FULL
from scheduler._memory import InlineWriter
from scheduler.stores.memory import MemoryStore


class Server(MemoryStore):
    """Answers at once, but is not known to: as a server on a machine that has nothing else to do."""

    is_immediate = False

    def __init__(self):
        super().__init__()
        self.batches = []

    def commit(self, batch):
        self.batches.append(batch)
        return super().commit(batch)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("scheduler._assembly.ThreadWriter", lambda _on_loop: InlineWriter())
    return Server()


async def starts_per_commit(server, clock, rate):
    """Of the fourth second in which so many jobs have started each second, spread over it."""
    async with Scheduler(store=server, clock=clock, blocked_after=None) as s:
        s.register("nothing", nothing)
        s.add_many("nothing", [(f"job-{number}", "@every 1s") for number in range(rate)])
        await s.flush()
        await clock.travel(3)
        server.batches.clear()
        await clock.travel(1)
        marks = [len(batch.marks) for batch in server.batches if batch.marks]
        s.stop(0)
    assert sum(marks) == pytest.approx(rate, abs=FULL)
    return sum(marks) / len(marks)


@pytest.mark.slow
async def test_where_starts_are_many_some_tens_share_a_commit(server, clock):
    """With three milliseconds from one commit to the next there would be five."""
    assert await starts_per_commit(server, clock, 1_700) > 40


@pytest.mark.slow
async def test_where_starts_are_few_none_waits_for_others(server, clock):
    """Few of them happen to be due within three milliseconds of one another."""
    assert await starts_per_commit(server, clock, 300) < 3


async def test_who_flushes_waits_for_nobody(server, clock):
    """However many starts there are: the clock stands still, and all is durable."""
    async with Scheduler(store=server, clock=clock, blocked_after=None) as s:
        s.register("nothing", nothing)
        s.add_many("nothing", [(f"job-{number}", "@every 1s") for number in range(1_700)])
        await s.flush()
        await clock.travel(2)
        s.add("nothing", "@every 1h", id="last")
        await s.flush()
        assert any("last" in batch.jobs for batch in server.batches)
        s.stop(0)
