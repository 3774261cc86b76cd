"""A digest is one delivery: one commit settles all that went out in it."""

from scheduler import Outcome
from scheduler.stores.memory import MemoryStore
from uptime_agent.notify import Digest, Rules

HELD = 17
"""Messages in the digest: all but the first three of twenty."""


class Copied(MemoryStore):
    """A store that is copied after each commit, which is what a process finds that comes after a kill."""

    def __init__(self):
        super().__init__()
        self.copies = []

    def commit(self, batch):
        receipt = super().commit(batch)
        left = MemoryStore()
        for each in ("jobs", "states", "ticks"):
            setattr(left._data, each, dict(getattr(self._data, each)))
        self.copies.append(left)
        return receipt


async def test_a_kill_right_after_a_digest_sends_none_of_its_messages_again(world):
    """Whichever commit was the last one. It was so only for the message whose job had sent the digest."""
    world.store = Copied()
    world.rules = Rules(digest=Digest(3, 30))
    world.targets = {f"t{number}": None for number in range(20)}
    async with world.process() as process:
        for target in world.targets:
            process.opens(target)
        await world.clock.travel(29)
        before = len(world.store.copies)
        await world.clock.travel(10)
        assert len(world.ops.taken[-1].messages) == HELD
    again = []
    for copied in world.store.copies[before:]:
        taken, world.store, world.ops.taken = world.ops.taken, copied, []
        async with world.process() as process:
            await world.clock.travel(60)
            assert [job for job in process.jobs if job.endswith("trigger")] == []
            records = await process.scheduler.history(limit=1000)
        again.append(len(world.ops.keys))
        world.ops.taken = taken
        settled = [r for r in records if r.outcome is Outcome.SUCCEEDED and r.result["delivery"] == "delivered"]
        assert len({r.job_id for r in settled}) == len(world.targets)
    assert set(again) <= {0, HELD}
    assert again.count(0) > 1
