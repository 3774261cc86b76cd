"""How many starts share a commit, counted while a ManualClock is turned: the store answers in no time of that clock."""

import pytest

from inline_store import InlineStore, ask_inline
from kit import nothing
from scheduler import Scheduler
from scheduler._commits import FULL


@pytest.fixture
def server(monkeypatch):
    ask_inline(monkeypatch)
    return InlineStore()


async def starts_per_commit(server, clock, rate):
    """So many start in a second, counted in half of one. Then somebody flushes, while the clock stands still."""
    async with Scheduler(store=server, clock=clock, blocked_after=None) as s:
        s.register("nothing", nothing)
        s.add_many("nothing", [(f"job-{number}", "@every 1s") for number in range(rate)])
        await s.flush()
        await clock.travel(1.5)
        server.batches.clear()
        await clock.travel(0.5)
        marks = [len(batch.marks) for batch in server.batches if batch.marks]
        s.add("nothing", "@every 1h", id="last")
        await s.flush()
        assert "last" in server.batches[-1].jobs
        s.stop(0)
    assert sum(marks) == pytest.approx(rate / 2, abs=FULL)
    return sum(marks) / len(marks)


async def test_where_starts_are_many_some_tens_share_a_commit(server, clock):
    """With three milliseconds from one commit to the next there would be six. Who flushes waits for no more of them."""
    assert await starts_per_commit(server, clock, 2_000) > 40


async def test_where_starts_are_few_none_waits_for_others(server, clock):
    """Few of them happen to be due within three milliseconds of one another."""
    assert await starts_per_commit(server, clock, 300) < 3
