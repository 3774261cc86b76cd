"""How often history is asked how targets stood: not where nothing is remembered, else once for each."""

from collections import Counter

import anyio
import pytest

from schedule import Every
from scheduler import Scheduler, StoreUnavailable
from scheduler.stores.memory import MemoryStore
from timerqueue import SystemClock
from timerqueue.testing import ManualClock
from uptime_agent.checks import CheckResult, Status
from uptime_agent.targets import Board, Recall
from uptime_agent.targets.report import report_of
from uptime_agent.targets.status import TargetStatus

NAMES = [f"target-{number}" for number in range(20)]


class Counted(MemoryStore):
    """A store that counts how often its history is asked for."""

    asked = 0

    def history(self, *args, **kwargs):
        """Count, and answer."""
        self.asked += 1
        return super().history(*args, **kwargs)


async def check(_name):
    """Find nothing out."""


async def remembered(store, names):
    """Let an earlier process have checked these."""
    async with Scheduler(store=store) as earlier:
        earlier.register("check", check)
        for name in names:
            await earlier.add("check", Every(3600), id=name, args=(name,)).run_now()
        earlier.stop()


@pytest.mark.parametrize(("past", "asked"), [([], 1), (["target-3"], 1 + len(NAMES)), (["gone"], 1 + len(NAMES))])
async def test_history_is_asked_for_each_target_only_if_there_is_any(past, asked):
    """Five thousand questions to an empty store take as much as the checks of four seconds."""
    store = Counted()
    await remembered(store, past)
    async with Scheduler(store=store) as scheduler:
        recall = Recall(scheduler, {name: TargetStatus(name, "", "") for name in NAMES}, print, SystemClock())
        store.asked = 0
        await recall.recall_all()
        for name in NAMES:
            await recall.recall(name)
        scheduler.stop()
    assert store.asked == asked


async def test_those_above_a_target_are_looked_for_once_and_again_when_they_may_be_others():
    """Not with each check: of a group there may be thousands."""
    asked = []

    def above(name):
        asked.append(name)
        return NAMES[1:]

    async with Scheduler(store=MemoryStore()) as scheduler:
        targets = {name: TargetStatus(name, "", "") for name in NAMES}
        recall = Recall(scheduler, targets, print, SystemClock(), above=above)
        for _ in range(3):
            await recall.recall(NAMES[0])
        assert (asked, all(map(recall.has, NAMES))) == ([NAMES[0]], True)
        recall.forget(NAMES[5])
        await recall.recall(NAMES[0])
        recall.look_again()
        await recall.recall(NAMES[0])
        assert (asked, recall.has(NAMES[5])) == ([NAMES[0]] * 3, True)
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
        targets = {name: TargetStatus(name, "", "") for name in ("router", "shop")}
        recall = Recall(scheduler, targets, print, SystemClock(), above=lambda name: {"router"} - {name})
        store.misses = 1
        with anyio.CancelScope() as scope:
            scope.cancel()
            await recall.recall("router")  # it waits before it asks again
        assert not recall.has("router")
        await recall.recall("shop")
        assert recall.has("router")
        assert recall.has("shop")
        scheduler.stop()


async def test_the_last_check_is_found_far_behind_those_before_the_clock_was_set_back():
    """Ten records would not do: the clock was set back by as much as thirty checks take."""
    clock, store, found = ManualClock(), MemoryStore(), Counter()
    names = ["target"]

    def task(targets):
        async def run(name):
            report = report_of([CheckResult(status=Status.UP, address=str(found.total()))], targets[name])
            found[name] += 1
            return report

        return run

    async def life(seconds):
        targets = {name: TargetStatus(name, "", "") for name in names}
        async with Scheduler(clock=clock, store=store) as scheduler:
            scheduler.register("check", task(targets))
            board = Board(targets.values())
            scheduler.listen(board.listen)
            scheduler.add("check", Every(10), id="target", args=("target",), on_conflict="keep")
            recall = Recall(scheduler, targets, print, clock)
            await recall.recall_all()
            recalled = targets["target"].last
            await clock.travel(seconds)
            await scheduler.flush()
            scheduler.stop()
        return recalled

    await life(400)
    clock.step(-301)
    await life(40)
    last = await life(0)
    assert last.results[0].address == str(found.total() - 1)
