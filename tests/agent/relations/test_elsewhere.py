"""Elsewhere: how targets stand that other agents have is read when it is needed, by few statements."""

import json
from threading import Event

import anyio
import pytest

from kit import until
from scheduler import StoreUnavailable
from scheduler.agent.checks import CheckResult, Status
from scheduler.agent.relations import Elsewhere
from scheduler.agent.targets import is_down
from scheduler.agent.targets.report import report_of
from scheduler.agent.targets.status import TargetStatus
from scheduler.stores import StoredTick


class Reports:
    """A store's last reports, which it gives once it is let. `down`: the targets that are."""

    def __init__(self):
        self.asked, self.down, self.may_answer, self.trouble = [], set(), Event(), None

    def latest(self, names):
        self.asked.append(list(names))
        assert self.may_answer.wait(60)
        if self.trouble is not None:
            raise self.trouble
        return [self._tick(name) for name in names]

    def _tick(self, name):
        status = Status.DOWN if name in self.down else Status.UP
        report = report_of([CheckResult(status=status)], TargetStatus(name, "http://h", "http"))
        return StoredTick(name, 1_000_000, 1, 1, "succeeded", 1_000_000, 2_000_000, result=json.dumps(report))


async def test_those_who_ask_at_once_share_a_statement():
    """Whoever asks while the store answers somebody else waits for the next answer: that one may be too old."""
    reports = Reports()
    elsewhere = Elsewhere(reports.latest, str)
    async with anyio.create_task_group() as group:
        group.start_soon(elsewhere.read, ["a"])
        await until(lambda: reports.asked)
        for number in range(20):
            group.start_soon(elsewhere.read, ["a", f"b{number % 5}"])
        await anyio.wait_all_tasks_blocked()
        reports.down.add("a")
        reports.may_answer.set()
    assert list(map(len, reports.asked)) == [1, 6]
    assert is_down(elsewhere.of("a").state)
    assert not is_down(elsewhere.of("b3").state)


async def test_what_could_not_be_read_is_asked_for_again():
    """Nothing is known of it until then."""
    reports = Reports()
    reports.may_answer.set()
    reports.trouble = StoreUnavailable("away")
    elsewhere = Elsewhere(reports.latest, str)
    with pytest.raises(StoreUnavailable):
        await elsewhere.read(["a"])
    assert elsewhere.of("a").state is None
    reports.trouble = None
    await elsewhere.read(["b"])
    assert elsewhere.of("a").status is Status.UP
