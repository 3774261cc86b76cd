"""Maintenance: no target is checked in it, history says so, and nobody is told of what is down before it is over."""

from datetime import timedelta

import pytest

from kit import T0
from schedule import At, Cron, Every, Missed, Window
from scheduler.stores.memory import MemoryStore
from scheduler.testing import simulate
from timerqueue.testing import START
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.show import json_line, plain_line
from uptime_agent.standing import (
    TASK,
    Board,
    Checked,
    CheckedAgain,
    CheckTask,
    Closed,
    Maintenance,
    NotChecked,
    Opened,
    PlannedMaintenance,
    Recall,
)
from uptime_agent.standing.status import TargetStatus


def window(first, length, name="repair", targets=("api",)):
    """Plan a window that opens so many seconds after the start."""
    return PlannedMaintenance(
        name, Window(At(START + timedelta(seconds=first)), timedelta(seconds=length)), frozenset(targets)
    )


class Agent:
    """An agent of one target, every 60 s, in simulated time; it is down between these seconds."""

    def __init__(self, *planned, down=(0, 0), takes=1.0):
        self.planned, self.down, self.takes = planned, down, takes
        self.store, self.heard = MemoryStore(), []

    async def run(self):
        clock = self.clock
        is_down = self.down[0] <= clock.wall() - T0 < self.down[1]
        await clock.sleep(self.takes)
        return CheckResult(status=Status.DOWN if is_down else Status.UP, error="refused" if is_down else None)

    def live(self, seconds, since=0):
        self.target = TargetStatus("api", "http://h", "http")
        board = Board([self.target])
        board.subscribe(lambda news: None if isinstance(news, Checked) else self.heard.append(news))

        async def build(scheduler, clock):
            self.clock = clock
            recall = Recall(scheduler, board.targets, board.remembered, clock)
            maintenance = Maintenance(self.planned)
            task = CheckTask({"api": self}, board.targets, recall.recall, clock, maintenance=maintenance)
            scheduler.register(TASK, task.run)
            scheduler.listen(board.listen)
            every = Every(60, anchor=START)
            scheduler.add(TASK, every, id="api", args=("api",), missed=Missed.SKIP, grace=6, on_conflict="update")
            await clock.sleep(seconds - 0.5)
            self.records = await scheduler.history("api", limit=1_000)

        simulate(build, seconds, start=START + timedelta(seconds=since), store=self.store)
        return [each for each in self.heard if isinstance(each, (Opened, Closed))]


def test_checks_in_a_window_are_recorded_with_its_name():
    """Its start belongs to it, its end does not; a line of history for each, for people and for programs."""
    agent = Agent(window(120, 120))
    agent.live(330)
    lines = [plain_line(each).split("  ", 1)[1] for each in reversed(agent.records)]
    assert [line.split()[0] for line in lines] == ["UP", "SKIPPED", "SKIPPED", "UP", "UP"]
    assert lines[1].startswith("SKIPPED     api  maintenance: repair")
    assert '"maintenance": "repair"' in json_line(agent.records[-2])
    assert agent.target.counts == {Status.UP: 3}
    assert agent.heard == [NotChecked("api", "maintenance: repair"), CheckedAgain("api")]


def test_nothing_opens_in_a_window_and_what_is_still_down_after_it_opens_then():
    """Once."""
    (opened,) = Agent(window(120, 120), down=(130, 900)).live(500)
    assert opened.incident.began - T0 == 241.0
    assert Agent(window(120, 120), down=(130, 200)).live(500) == []


def test_a_check_that_began_before_a_window_and_ends_in_it_is_not_counted():
    """Whoever began to repair did not wait for it."""
    agent = Agent(window(125, 100), down=(100, 150), takes=10.0)
    assert agent.live(300) == []
    assert agent.target.counts == {Status.UP: 2}


def test_an_incident_goes_on_through_a_window_and_closes_after_it():
    """It was told before; that it is over is told as soon as it is known."""
    opened, closed = Agent(window(150, 200), down=(60, 200)).live(700)
    assert (opened.incident.began - T0, closed.incident) == (61.0, opened.incident)
    assert closed.ended - T0 > 350


@pytest.mark.parametrize("checks", [3, 40])
def test_a_target_stands_after_a_restart_in_a_window_as_it_did_before_it(checks):
    """However many checks the window has cost: the incident that was open is the same, and nothing opens twice."""
    agent = Agent(window(230, 60 * checks), down=(60, 1e9))
    (opened,) = agent.live(200 + 60 * checks)
    assert agent.live(300, since=230 + 60 * checks) == [opened]
    assert agent.target.incident == opened.incident


def test_windows_are_found_at_any_instant_in_any_order():
    """A clock that is set back finds them again."""
    nightly = PlannedMaintenance("night", Window(Cron("0 2 * * *"), timedelta(hours=1)), frozenset({"api"}))
    maintenance = Maintenance([nightly, window(7200 + 1800, 3600)])
    hour = 3600.0
    asked = {1.99: None, 2.0: "night", 2.75: "night", 3.0: "repair", 3.4: "repair", 3.5: None, 26.5: "night", 0.0: None}
    assert {at: maintenance.window_at("api", T0 + at * hour) for at in asked} == asked
    assert maintenance.window_at("other", T0 + 2 * hour) is None
