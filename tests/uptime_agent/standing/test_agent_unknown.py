"""What is our own trouble says nothing about a target: no state moves, nothing opens, and no uptime is lost."""

import errno
from datetime import timedelta

import pytest
from attrs import evolve, field, frozen

from kit import T0
from schedule import Cron, Every
from scheduler.stores.memory import MemoryStore
from scheduler.testing import FlakyStore, simulate
from timerqueue.testing import START
from uptime_agent.assembly import checking_of
from uptime_agent.checks import Finding, Holdups, Mode, Resolver, Status
from uptime_agent.config import Network, Target
from uptime_agent.standing import Checked, Closed, Opened, Recheck
from uptime_agent.targets import CheckDeps, holds
from uptime_agent.text import Redactor, parse_url
from uptime_agent.uptime import uptime_over

BEGIN, END, LENGTH = 600, 1_200, 1_800
"""Seconds from the start: the trouble lasts from the first to the second."""


@frozen
class Asked:
    """A check that fails with an error of that number while the trouble lasts, and is up else."""

    url: object
    number: int | None
    takes: tuple = (0.05,)
    clock: list = field(factory=list)
    secrets: frozenset = frozenset()

    async def attempt(self, at):
        (clock,) = self.clock
        with at.watch.measure("connect"):
            await clock.sleep(self.takes[int((clock.wall() - T0) // 60) % len(self.takes)])
        if self.number is not None and BEGIN <= clock.wall() - T0 < END:
            raise OSError(self.number, "it is so")
        return Finding()


def target(name, number, takes=(0.05,), **options):
    """Make a target every 60 s, whose check fails so while the trouble lasts."""
    check = Asked(parse_url(f"tcp://{name}.test:1", {"tcp": None}), number, takes)
    every = Every(60, anchor=START)
    return Target(name=name, kind="tcp", check=check, schedule=every, is_resolved=False, **options)


class World:
    """A target in all that the agent has around it, in simulated time."""

    def __init__(self, number=None, *, probe=None, is_unwritten=False, is_late=False, **options):
        self.target = target("api", number, **options)
        self.probes = () if probe is None else (target("gateway", probe),)
        self.is_unwritten, self.is_late = is_unwritten, is_late
        self.store, self.told, self.statuses = FlakyStore(MemoryStore()), [], []

    def build(self, scheduler, clock):
        for each in (self.target, *self.probes):
            each.check.clock[:] = [clock]
        ways = CheckDeps(Resolver({}), clock, Redactor(), Holdups(clock))
        self.checking = checking_of(scheduler, ways, Network(probes=self.probes))
        self.checking.targets.begin([self.target])
        self.checking.board.subscribe(Recheck(scheduler, self.checking.board.targets).hear)
        self.checking.board.subscribe(self._hear)
        scheduler.listen(self.checking.board.listen)
        if self.is_late:
            self.checking.targets.let_wait("api")

        async def hog():
            if self.is_late and BEGIN <= clock.wall() - T0 < END:
                await clock.sleep(30)

        scheduler.add(hog, Every(60, anchor=START), id="hog", priority=9, durable=False)
        return self._trouble(clock)

    async def _trouble(self, clock):
        if self.is_unwritten:
            await clock.sleep(BEGIN - 5)
            self.store.fail_on = range(1, 10**9)
            await clock.sleep(END + 5 - BEGIN)
            self.store.fail_on = ()

    def _hear(self, news):
        if isinstance(news, (Opened, Closed)):
            self.told.append(news)
        elif isinstance(news, Checked):
            self.statuses.append(news.target.last.status)

    def live(self, seconds, since=0):
        simulate(
            self.build, seconds, start=START + timedelta(seconds=since), store=self.store, limit=1, limits={"tcp": 9}
        )
        return self.checking.board.targets["api"]


def see_that_nothing_has_happened(world, status, known):
    """It was up all the time, as far as anybody knows."""
    assert world.told == []
    assert (status.state.number, status.state.down) == (0, 0)
    found = uptime_over(status.past, T0 + LENGTH, LENGTH)
    assert found.up == 1.0
    assert found.known == pytest.approx(known, abs=0.08)


REASONS = {
    "offline": {"number": errno.ECONNREFUSED, "probe": errno.ECONNREFUSED},
    "late beyond the grace": {"is_late": True},
    "out of descriptors": {"number": errno.EMFILE},
    "no route": {"number": errno.ENETUNREACH},
    "no buffers": {"number": errno.ENOBUFS},
}


@pytest.mark.parametrize("reason", REASONS)
def test_what_is_unknown_moves_no_state_and_counts_against_no_uptime(reason):
    """Ten checks are unknown, and that is all that becomes of it."""
    world = World(**REASONS[reason])
    status = world.live(LENGTH)
    assert world.statuses.count(Status.UNKNOWN) == 10
    assert set(world.statuses) == {Status.UP, Status.UNKNOWN}
    see_that_nothing_has_happened(world, status, 2 / 3)


def test_while_nothing_can_be_written_an_outage_is_an_incident_like_any_other():
    """Checks go on, and each is on record afterwards."""
    world = World(errno.ECONNREFUSED, is_unwritten=True)
    status = world.live(LENGTH)
    opened, closed = world.told
    assert closed.ended - opened.incident.began == pytest.approx(END - BEGIN, abs=61)
    assert len(world.statuses) >= LENGTH / 60 - 1
    assert uptime_over(status.past, T0 + LENGTH, LENGTH).known == pytest.approx(1.0, abs=0.06)
    records = world.store.history("api", limit=1_000)
    assert len(records) == len({each.due_us for each in records}) >= len(world.statuses)


def test_while_the_agent_is_away_nothing_is_known():
    """The next process goes on where the one before it ended."""
    world = World(errno.ECONNREFUSED)
    world.live(BEGIN - 1)
    status = world.live(LENGTH - END, since=END)
    see_that_nothing_has_happened(world, status, 2 / 3)


def test_the_same_trouble_is_an_incident_where_it_is_the_targets():
    """Or none of these tests would show anything."""
    world = World(errno.ECONNREFUSED)
    status = world.live(LENGTH)
    opened, closed = world.told
    assert closed.ended - opened.incident.began == pytest.approx(END - BEGIN, abs=61)
    assert uptime_over(status.past, T0 + LENGTH, LENGTH).up == pytest.approx(2 / 3, abs=0.06)


def test_a_check_that_takes_longer_than_its_interval_leaves_no_gap():
    """What one has found holds until the end of the next, whichever of them took its whole time (beats#29102)."""
    world = World(takes=(0.05, 95.0, 0.05, 0.05, 99.0), timeout=100.0)
    status = world.live(LENGTH)
    assert len(world.statuses) < LENGTH / 60
    found = uptime_over(status.past, T0 + LENGTH, LENGTH - 155)  # the first check has ended by then
    assert (found.up, found.known) == (1.0, pytest.approx(1.0, abs=0.01))


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({"max_attempts": 3}, 60 + 6 + 3 * 10 + 4),
        ({"max_attempts": 2, "mode": Mode.ALL}, 60 + 6 + 2 * 2 * 10 + 4),  # each lookup, then each address
        ({"schedule": Cron("*/5 * * * *")}, 240 + 60 + 10 + 4),
    ],
)
def test_a_check_holds_for_as_long_as_the_next_may_take(options, seconds):
    """With the wait of a failed one for an answer whether we are offline, which is 4 s here."""
    plain = target("api", None)
    assert holds(evolve(plain, **options), 4.0, T0 + 60) == seconds


def test_a_check_that_hangs_beyond_its_timeout_is_cut_off_and_made_again():
    """Its place is free by then, the only one that there is, and it says nothing about its target."""
    world = World(takes=(0.05, 0.05, 1e6, 0.05, 0.05), timeout=10.0)
    status = world.live(600)
    assert world.statuses[:3] == [Status.UP, Status.UNKNOWN, Status.UP]
    assert (status.state.number, status.state.down, world.told) == (0, 0, [])
