"""A check by hand beside the schedule: it counts once, and takes no tick away."""

import pytest

from kit import T0
from schedule import Every, Missed
from scheduler import Overlap
from scheduler.stores.memory import MemoryStore
from scheduler.testing import simulate
from timerqueue.testing import START
from uptime_agent.acts import ActDeps, ActKeeper, Acts, Known
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.standing import TASK, Board, Checked, CheckTask, Recall, Recheck
from uptime_agent.standing.status import TargetStatus


class Agent:
    """An agent of one target, every 60 s, in simulated time. A check takes 5 s."""

    def __init__(self, status=Status.UP, **target):
        self.status = status
        self.target = TargetStatus("api", "http://h", "http", **target)
        self.ended = []

    async def run(self):
        await self.clock.sleep(5)
        return CheckResult(status=self.status, error=None if self.status is Status.UP else "refused")

    def live(self, *asked, seconds=240):
        """Check by hand at these seconds. Return when checks ended."""
        board = Board([self.target])

        def heard(news):
            if isinstance(news, Checked):
                self.ended.append(round(self.clock.wall() - T0))

        async def build(scheduler, clock):
            self.clock = clock
            recall = Recall(scheduler, board.targets, board.remembered, clock)
            scheduler.register(TASK, CheckTask({"api": self}, board.targets, recall.recall, clock).run)
            scheduler.listen(board.listen)
            recheck = Recheck(scheduler, board.targets)
            board.subscribe(recheck.hear)
            board.subscribe(heard)
            deps = ActDeps(now=clock.wall, say=lambda _text: None)
            keeper = ActKeeper(scheduler, deps)
            acts = Acts(scheduler, keeper, deps)
            keeper.follow(Known({"api": frozenset()}))
            every = Every(60, anchor=START)
            scheduler.add(TASK, every, id="api", args=("api",), missed=Missed.SKIP, grace=6, overlap=Overlap.SKIP)
            for instant in asked:
                await clock.sleep(instant - (clock.wall() - T0))
                acts.check_now("api", actor="ann")
            await clock.sleep(seconds - 1 - (clock.wall() - T0))

        simulate(build, seconds, start=START, store=MemoryStore())
        return self.ended


@pytest.mark.parametrize(
    ("asked", "ended"),
    [
        ((30,), [35, 65, 125, 185]),  # between two ticks
        ((60,), [65, 125, 185]),  # as a tick is due
        ((58,), [63, 125, 185]),  # a tick is due during the check
        ((62,), [65, 125, 185]),  # during a check
        ((30, 31, 32), [35, 65, 125, 185]),  # by three people
    ],
)
def test_a_check_by_hand_counts_once(asked, ended):
    """Beside a tick that is due at that moment there is one check, and one result."""
    agent = Agent()
    found = [each for each in agent.live(*asked) if each > 5]
    assert found == ended
    assert agent.target.checks == len(agent.ended)


def test_a_check_by_hand_is_the_attempt_that_was_to_come():
    """The next follows `retry_interval` later, and not at the time of the one that it stands for."""
    agent = Agent(Status.DOWN, max_attempts=3, retry_interval=20.0)
    assert agent.live(23, seconds=58) == [5, 28, 53] or agent.ended == [28, 53]


def test_a_check_by_hand_moves_the_checks_of_a_target_that_is_down():
    """They follow it by `failing_interval`."""
    agent = Agent(Status.DOWN, failing_interval=25.0)
    agent.live(61 + 12, seconds=118)
    assert [each for each in agent.ended if each > 60] == [65, 78, 103]
