"""How often history is asked how targets stood: not where nothing is remembered, else once for each."""

from collections import Counter

import pytest

from schedule import Every
from scheduler import Scheduler
from scheduler.stores.memory import MemoryStore
from timerqueue import SystemClock
from timerqueue.testing import ManualClock
from uptime_agent.checks import CheckResult, Status
from uptime_agent.standing import Board, Recall
from uptime_agent.standing.report import report_of
from uptime_agent.standing.status import TargetStatus

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
