"""What a check found says nothing about its target if we are offline, or began too late."""

import anyio
import pytest

from kit import T0, settle
from schedule import Every, Missed
from scheduler.stores.memory import MemoryStore
from scheduler.testing import simulate
from timerqueue.testing import START, ManualClock
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.standing import TASK, Board, CheckTask, Gate, OnlineTarget, Opened, Recheck
from uptime_agent.standing.status import TargetStatus

DOWN = CheckResult(status=Status.DOWN, error="refused")
UP = CheckResult(status=Status.UP)


class Answering:
    """A probe's check: it answers, or not, and takes its time by a clock."""

    def __init__(self, clock, *, is_up=True, takes=0.0):
        self.clock, self.is_up, self.takes, self.asked = clock, is_up, takes, []

    async def run(self):
        self.asked.append(self.clock.monotonic())
        await self.clock.sleep(self.takes)
        return UP if self.is_up else DOWN


@pytest.fixture
def clock():
    """A clock that jumps to where somebody wants to be woken."""
    return ManualClock(autojump=True)


def gate_of(clock, *checks, every=2.0):
    """Make a gate with these probes."""
    return Gate(clock, [OnlineTarget(f"tcp://{number}", each) for number, each in enumerate(checks)], every)


async def test_without_probes_nobody_is_asked_and_we_are_online(clock):
    """As it was before."""
    assert await Gate(clock).why_offline(clock.monotonic()) is None


@pytest.mark.parametrize(("up", "is_offline"), [((True, True), False), ((False, True), False), ((False, False), True)])
async def test_we_are_offline_if_no_probe_answers(clock, up, is_offline):
    """One that does will do; the words name who was asked, and what went wrong."""
    gate = gate_of(clock, *(Answering(clock, is_up=each) for each in up))
    why = await gate.why_offline(clock.monotonic())
    assert why == ("we are offline: no answer from tcp://0, tcp://1 (refused)" if is_offline else None)


async def test_the_first_answer_will_do(clock):
    """The others are not waited for."""
    silent = Answering(clock)
    silent.run = anyio.sleep_forever
    assert await gate_of(clock, silent, Answering(clock)).why_offline(clock.monotonic()) is None


async def test_many_that_fail_together_ask_once(clock):
    """Five thousand targets are no reason to flood anybody."""
    probe = Answering(clock, is_up=False, takes=0.5)
    gate = gate_of(clock, probe)
    found = []
    began = clock.monotonic()

    async def fail():
        found.append(await gate.why_offline(began))

    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(fail)
    assert (gate.rounds, len(probe.asked), len(set(found))) == (1, 1, 1)
    assert found[0] is not None


async def test_an_answer_that_is_older_than_the_failure_does_not_count(clock):
    """The network may have gone since: it is asked again, but not before `every` is over."""
    probe = Answering(clock)
    gate = gate_of(clock, probe, every=2.0)
    began = clock.monotonic()
    assert await gate.why_offline(began) is None
    clock.advance(0.5)
    probe.is_up = False
    assert await gate.why_offline(began) is not None
    assert [each - began for each in probe.asked] == [0.0, 2.0]


async def test_what_began_before_we_were_offline_and_failed_after_it_is_in_doubt(clock):
    """The network is there again when it is asked; it was not meanwhile, as another check has found."""
    probe = Answering(clock, is_up=False)
    gate = gate_of(clock, probe)
    began = clock.monotonic()
    clock.advance(1.0)
    assert await gate.why_offline(clock.monotonic()) is not None
    clock.advance(30.0)
    probe.is_up = True
    assert await gate.why_offline(began) is not None
    assert await gate.why_offline(clock.monotonic()) is None


async def test_one_who_is_cut_off_while_asking_leaves_the_others_an_answer(clock):
    """They ask themselves."""
    probe = Answering(clock)
    released = anyio.Event()
    asked = []

    async def run():
        asked.append(1)
        await released.wait()
        return DOWN

    probe.run = run
    gate = gate_of(clock, probe, every=0.0)
    found = []

    async def fail():
        found.append(await gate.why_offline(began))

    began = clock.monotonic()
    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as inner:
                inner.start_soon(fail)
                await settle()
                group.start_soon(fail)
                await settle()
                scope.cancel()
        await settle()
        released.set()
    assert len(asked) == 2
    assert [each is not None for each in found] == [True]


def live(check, seconds, *, probe=None, grace=6.0, hog=0.0, **options):
    """Simulate a target every 60 s, in a pool of one that something else holds for so long at each minute."""
    target = TargetStatus("api", "http://h", "http", grace=grace, **options)
    board, heard = Board([target]), []
    board.subscribe(heard.append)

    async def nothing_known(_name):
        pass

    def build(scheduler, clock):
        gate = Gate(clock, [] if probe is None else [OnlineTarget("tcp://probe", probe)], 2.0)
        check.clock = clock
        if probe is not None:
            probe.clock = clock
        task = CheckTask({"api": check}, board.targets, nothing_known, clock, gate=gate)
        scheduler.register(TASK, task.run)
        scheduler.listen(board.listen)
        board.subscribe(Recheck(scheduler, board.targets).hear)

        async def holding():
            await clock.sleep(hog)

        if hog:
            scheduler.add(holding, Every(60, anchor=START), id="hog", priority=9, durable=False)
        scheduler.add(TASK, Every(60, anchor=START), id="api", args=("api",), missed=Missed.LATEST)

    simulate(build, seconds, store=MemoryStore(), limit=1)
    return target, [each for each in heard if isinstance(each, Opened)]


class Failing(Answering):
    """A target's check that finds it down from some time on."""

    def __init__(self, after=0.0, takes=1.0):
        super().__init__(None, takes=takes)
        self.after = after

    async def run(self):
        self.is_up = self.clock.wall() - T0 < self.after
        return await super().run()


def test_what_fails_while_we_are_offline_is_unknown():
    """It moves no state and opens nothing, and says why."""
    target, opened = live(Failing(after=200), 400, probe=Answering(None, is_up=False))
    assert (target.status, opened) == (Status.UNKNOWN, [])
    assert target.last.error == "we are offline: no answer from tcp://probe (refused); found: refused"
    assert (target.state.up, target.state.down, target.state.number) == (3, 0, 0)


def test_what_fails_while_we_are_online_is_down():
    """The gate asks only when something fails."""
    probe = Answering(None)
    target, (opened,) = live(Failing(after=200), 320, probe=probe)
    assert (target.status, opened.incident.began - T0) == (Status.DOWN, 241.0)
    assert len(probe.asked) == 2


@pytest.mark.parametrize("after", [0.0, 1e9])
def test_a_check_that_began_later_than_its_grace_says_nothing(after):
    """Neither that its target is up nor that it is down: there was no room for it, and that is our own fault."""
    target, opened = live(Failing(after=after), 100, hog=10.0)
    assert (target.status, target.state, opened) == (Status.UNKNOWN, None, [])
    assert target.last.error.startswith("began 10.00 s late; found: ")
    assert target.last_run.lateness == pytest.approx(10.0)


def test_a_check_within_its_grace_says_what_it_found():
    """A little late is late enough for history, and for nobody else."""
    target, _ = live(Failing(after=1e9), 100, hog=5.0)
    assert (target.status, target.last_run.lateness) == (Status.UP, pytest.approx(5.0))


def test_attempts_go_on_where_they_were_after_one_that_is_in_doubt():
    """An unknown result is no attempt: the two that failed before and after it are the first and the second."""

    class OfflineOnce(Answering):
        async def run(self):
            self.is_up = len(self.asked) != 1
            return await super().run()

    target, (opened,) = live(Failing(after=200), 400, probe=OfflineOnce(None), max_attempts=2, retry_interval=5.0)
    assert opened.incident.began - T0 == 301.0
    assert target.state.ends.down == 1
