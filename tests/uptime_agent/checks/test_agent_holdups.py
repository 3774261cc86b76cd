"""What was late through our own fault says nothing about the target."""

import anyio
import anyio.lowlevel
import pytest

from kit import when
from scheduler import Outcome, RunEnded
from uptime_agent.checks.contract.result import Finding, Status
from uptime_agent.checks.holdups import TICK, Holdups
from uptime_agent.checks.kinds import BY_SCHEME
from uptime_agent.standing.flapping import TargetStanding
from uptime_agent.standing.status import TargetStatus, fold
from uptime_agent.text.url import parse_url


class LateClock:
    """A clock that comes back from each sleep so many seconds late."""

    def __init__(self, late):
        self.now = 100.0
        self.late = late
        self.ticks = self.ended = 0
        self.asleep = anyio.Event()
        self.wakes = None

    def monotonic(self):
        return self.now

    async def sleep(self, seconds):
        self.ticks += 1
        self.asleep.set()
        if self.wakes is not None:
            await self.wakes.wait()
        await anyio.lowlevel.checkpoint()
        self.now += seconds + self.late
        self.ended += 1


async def test_late_ticks_add_up():
    """The event loop was busy elsewhere, or the machine stood still."""
    clock = LateClock(0.2)
    holdups = Holdups(clock)
    async with anyio.create_task_group() as group:
        group.start_soon(holdups.watch)
        with holdups.needed():
            while clock.ticks < 4:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert holdups.seconds == pytest.approx(0.2 * clock.ended)
    assert clock.ended >= 3


async def test_a_tick_that_is_overdue_counts_before_it_comes():
    """What the holdup has made late is looked at in the same turn of the loop."""
    clock = LateClock(0)
    clock.wakes = anyio.Event()
    holdups = Holdups(clock)
    async with anyio.create_task_group() as group:
        with holdups.needed():
            group.start_soon(holdups.watch)
            await clock.asleep.wait()
            assert holdups.seconds == 0
            clock.now += TICK + 0.3
            assert holdups.seconds == pytest.approx(0.3)
        group.cancel_scope.cancel()


async def test_it_does_not_tick_while_nothing_is_checked():
    """An agent that waits for its next check sleeps."""
    clock = LateClock(0)
    holdups = Holdups(clock)
    async with anyio.create_task_group() as group:
        group.start_soon(holdups.watch)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert clock.ticks == 0
        with holdups.needed():
            await clock.asleep.wait()
        group.cancel_scope.cancel()


class Lost(Holdups):
    """Loses so many seconds whenever a target is asked."""

    def __init__(self, clock, seconds):
        super().__init__(clock)
        self._looks = 0
        self._each = seconds

    @property
    def seconds(self):
        self._looks += 1
        return self._looks * self._each


def tcp(port, **options):
    """Make a TCP check."""
    return BY_SCHEME["tcp"].make(url=parse_url(f"tcp://127.0.0.1:{port}", {"tcp": None}), **options)


@pytest.mark.parametrize(
    ("lost", "status", "said"),
    [
        (0.0, Status.DOWN, "(receive)"),
        (0.02, Status.DOWN, "(receive)"),
        (0.2, Status.UNKNOWN, "held up for 200 ms meanwhile"),
    ],
)
async def test_no_answer_in_time_is_unknown_if_it_was_we_who_were_held_up(
    serve, answers, target_check, lost, status, said
):
    """By more than a tenth of the time that there was, or 25 ms; and the error says so."""
    server = await serve(answers.silent)
    made = target_check(tcp(server.port, expect="hello"), timeout=0.1)
    made = target_check(tcp(server.port, expect="hello"), timeout=0.1, holdups=Lost(made.clock, lost))
    result = await made.run()
    assert result.status is status
    assert result.error.startswith(f"no answer from 127.0.0.1:{server.port} within 0.1 s (receive)")
    assert result.error.endswith(said)


async def test_what_is_certain_stays_so_however_long_we_were_held_up(target_check, free_port):
    """A refusal does not come from being late."""
    made = target_check(tcp(free_port))
    result = await target_check(tcp(free_port), holdups=Lost(made.clock, 100.0)).run()
    assert (result.status, result.error) == (Status.DOWN, f"connection refused by 127.0.0.1:{free_port}")


class SlowToConnect:
    """A check whose connection does not come about in time."""

    url = parse_url("tcp://127.0.0.1:1", {"tcp": None})
    secrets = frozenset()

    async def attempt(self, at):
        raise TimeoutError


@pytest.mark.parametrize(("lost", "status"), [(0.0, Status.DOWN), (5.0, Status.UNKNOWN)])
async def test_no_connection_in_time_is_judged_in_the_same_way(target_check, lost, status):
    """The share of an address ends like the whole."""
    made = target_check(SlowToConnect())
    result = await target_check(SlowToConnect(), holdups=Lost(made.clock, lost)).run()
    assert result.status is status
    assert result.error.startswith("no connection to 127.0.0.1:1 in time")


class Well:
    """A check that finds its target well."""

    url = parse_url("tcp://127.0.0.1:1", {"tcp": None})
    secrets = frozenset()

    async def attempt(self, at):
        return Finding()


@pytest.mark.parametrize(("lost", "status"), [(0.0, Status.DEGRADED), (5.0, Status.UNKNOWN)])
async def test_slow_is_unknown_if_the_slowness_may_be_ours(target_check, lost, status):
    """Without it the answer would have come in time."""
    made = target_check(Well())
    result = await target_check(Well(), degraded_above=1e-9, holdups=Lost(made.clock, lost)).run()
    assert result.status is status
    assert ("held up" in result.error) is (status is Status.UNKNOWN)


async def test_what_is_unknown_moves_no_state(target_check):
    """Nor does it count as a check that found its target up or down."""
    target = TargetStatus("a", "tcp://127.0.0.1:1", "tcp")
    run = RunEnded("a", when(0.0), when(0.0), when(1.0), 1, 0.0, 1.0, Outcome.SUCCEEDED, None)
    made = target_check(SlowToConnect())
    target.record(fold([await target_check(Well()).run()]), run)
    before = target.state
    target.record(fold([await target_check(SlowToConnect(), holdups=Lost(made.clock, 5.0)).run()]), run)
    assert (target.state, before.status, before.checks) == (before, TargetStanding.UP, 1)
