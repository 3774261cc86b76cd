"""What a check asks of the targets above its own: their past, once, and how they stand."""

import anyio

from scheduler import Scheduler, StoreUnavailable
from scheduler.stores.memory import MemoryStore
from timerqueue import SystemClock
from uptime_agent.relations import Above, Here, Parents
from uptime_agent.standing import Recall
from uptime_agent.standing.status import TargetStatus

NAMES = [f"target-{number}" for number in range(20)]


class Counted(Parents):
    """Parents that note for whom it is asked who is above."""

    def __init__(self, targets):
        super().__init__(targets)
        self.asked = []

    def above(self, name):
        """Note, and answer."""
        self.asked.append(name)
        return super().above(name)


def above_of(scheduler, parents):
    """Make what a check asks of those above, with the recall and the parents that it goes by."""
    names = {*parents, *(each for of in parents.values() for each in of)}
    targets = {name: TargetStatus(name, "", "") for name in names}
    recall, counted = Recall(scheduler, targets, print, SystemClock()), Counted(targets)
    above = Above(targets, counted, Here(targets, recall), recall)
    above.follow(parents)
    counted.asked.clear()
    return above, recall, counted


async def test_those_above_a_target_are_looked_for_once_and_again_when_they_may_be_others():
    """Not with each check: of a group there may be thousands."""
    async with Scheduler(store=MemoryStore()) as scheduler:
        parents = {NAMES[0]: tuple(NAMES[1:])}
        above, recall, counted = above_of(scheduler, parents)
        for _ in range(3):
            await above.recall(NAMES[0])
        assert (counted.asked, all(map(recall.has, NAMES))) == ([NAMES[0]], True)
        above.forget(NAMES[5])
        await above.recall(NAMES[0])
        above.follow(parents)
        await above.recall(NAMES[0])
        assert (counted.asked, recall.has(NAMES[5])) == ([NAMES[0]] * 3, True)
        scheduler.stop()


class Away(MemoryStore):
    """A store whose history cannot be reached the first `misses` times."""

    misses = 0

    def history(self, *args, **kwargs):
        """Fail, or answer."""
        if self.misses:
            self.misses -= 1
            raise StoreUnavailable("away")
        return super().history(*args, **kwargs)


async def test_one_who_is_cut_off_leaves_the_past_of_a_target_to_others():
    """Many checks ask for the past of the one above them: it is not lost with the check that asked first."""
    store = Away()
    async with Scheduler(store=store) as scheduler:
        above, recall, _ = above_of(scheduler, {"shop": ("router",), "router": ()})
        store.misses = 1
        with anyio.CancelScope() as scope:
            scope.cancel()
            await above.recall("router")  # it waits before it asks again
        assert not recall.has("router")
        await above.recall("shop")
        assert recall.has("router")
        assert recall.has("shop")
        scheduler.stop()
