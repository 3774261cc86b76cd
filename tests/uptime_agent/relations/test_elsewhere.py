"""Elsewhere: how targets stand that other agents have is read when it is needed, by few statements."""

import json
from datetime import timedelta
from threading import Event

import anyio
import pytest

from kit import until
from schedule import At, Every
from scheduler import StoreUnavailable
from scheduler.stores import StoredTick
from scheduler.testing import simulate
from timerqueue.testing import START
from uptime_agent.assembly import checking_of
from uptime_agent.checks import CheckResult, Holdups, Resolver, Status
from uptime_agent.checks.tcp.tcp_check import TcpCheck
from uptime_agent.config import Network, Target
from uptime_agent.relations import Elsewhere
from uptime_agent.standing import Checked, is_down
from uptime_agent.standing.report import report_of
from uptime_agent.standing.status import TargetStatus
from uptime_agent.targets import CheckDeps
from uptime_agent.text import Redactor, parse_url


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


@pytest.mark.parametrize("trouble", [None, StoreUnavailable("it is away")])
def test_a_check_does_not_know_while_the_store_does_not_say_who_is_down_above(monkeypatch, trouble):
    """It waits for some seconds at the most, opens nothing, and is judged by the next check that hears."""
    patience, long = "uptime_agent.relations.above.PATIENCE", 60  # of this machine's seconds, which may be a busy one
    monkeypatch.setattr(patience, long if trouble else 0.05)
    reports, told = Reports(), []
    reports.trouble = trouble
    if trouble is not None:
        reports.may_answer.set()

    def build(scheduler, clock):
        ways = CheckDeps(Resolver({}), clock, Redactor(), Holdups(clock))
        checking = checking_of(scheduler, ways, Network(), elsewhere=Elsewhere(reports.latest, str))
        every = Every(60, anchor=START)
        check = TcpCheck(url=parse_url("tcp://127.0.0.1:1", {"tcp": None}))
        shop = Target(name="shop", kind="tcp", check=check, schedule=every, depends_on=("router",))
        router = Target(name="router", kind="tcp", check=check, schedule=every, start=START + timedelta(days=1))
        checking.targets.begin([shop, router])
        checking.board.subscribe(lambda news: told.append(news.target.last) if isinstance(news, Checked) else None)
        scheduler.listen(checking.board.listen)

        async def heal():
            monkeypatch.setattr(patience, long)
            reports.trouble, reports.down = None, {"router"}
            reports.may_answer.set()

        scheduler.add(heal, At(START + timedelta(seconds=90)), durable=False)

    simulate(build, 130, limits={"tcp": 9, "host:*": 9})
    said = "it is away" if trouble else "no answer within 0.05 s"
    assert [each.status for each in told] == [Status.UNKNOWN, Status.DOWN]
    assert f"nobody knows how the targets above it stand: {said}" in told[0].error
    assert told[1].cause == "router"
