"""Attempts and failing intervals as starts of the target's own job: nothing waits in a slot, and the grid stays."""

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from kit import T0, examples, no_hint, relative
from schedule import After, At, Every, Missed
from scheduler import MissedReason, Outcome, RunEnded, RunMissed, SchedulerStarted
from scheduler.stores.memory import MemoryStore
from scheduler.testing import simulate
from timerqueue.testing import START
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.standing import TASK, Board, CheckTask, Closed, Opened, Recall, Recheck
from uptime_agent.standing.flapping import TargetStanding
from uptime_agent.standing.status import TargetStatus

STATUS = {"u": Status.UP, "d": Status.DOWN, "?": Status.UNKNOWN}

REST = 10.0
"""Seconds after a death in which nothing starts again that it has cut off."""


class Scripted:
    """A check that finds what a series says, one letter a run, and the last from then on; each takes its time."""

    def __init__(self, series, takes=1.0):
        self.series, self.takes, self.runs, self.clock = series, takes, 0, None

    async def run(self):
        letter = self.series[min(self.runs, len(self.series) - 1)]
        self.runs += 1
        await self.clock.sleep(self.takes)
        return CheckResult(status=STATUS[letter], error=None if letter == "u" else "refused")


class World:
    """One target in a simulated agent: when its checks began, what was told, how it stands."""

    def __init__(self, series, *, schedule=None, takes=1.0, store=None, **options):
        self.check = Scripted(series, takes)
        self.schedule = Every(60, anchor=START) if schedule is None else schedule
        self.options = options
        self.store = MemoryStore() if store is None else store
        self.told = []
        self.begin()

    def begin(self):
        self.target = TargetStatus("api", "http://h", "http", **self.options)
        self.board = Board([self.target])

    def build(self, scheduler, clock):
        self.check.clock = clock
        recall = Recall(scheduler, self.board.targets, self.board.remembered, clock)
        scheduler.register(TASK, CheckTask({"api": self.check}, self.board.targets, recall.recall, clock).run)
        recheck = Recheck(scheduler, self.board.targets, rest=REST)
        self.board.subscribe(recheck.hear)
        scheduler.listen(recheck.listen, RunEnded)
        scheduler.listen(lambda _event: recheck.make_up(), SchedulerStarted)
        self.board.subscribe(lambda news: self.told.append(news) if isinstance(news, (Opened, Closed)) else None)
        scheduler.listen(self.board.listen)
        scheduler.add(
            TASK,
            self.schedule,
            id="api",
            args=("api",),
            missed=Missed.SKIP,
            grace=6,
            tags=(TASK,),
            on_conflict="update",
        )

    def live(self, seconds, since=0.0, *, is_killed=False):
        """Play so many seconds; return when checks began, from the start of the first process on. One that is killed
        writes nothing in its last moment.
        """
        begin = START + timedelta(seconds=since)

        def build(scheduler, clock):
            self.build(scheduler, clock)
            if is_killed:
                scheduler.add(self._kill, At(begin + timedelta(seconds=seconds - 0.001)), id="kill", durable=False)

        self.found = simulate(build, seconds, start=begin, store=self.store, crash_floor=REST)
        return relative(run.started for run in self.found.runs("api"))

    async def _kill(self):
        self.store = self.store.another()
        self.store.open(0, no_hint)


def times_of(news):
    """Say what is told of incidents, and when."""
    return [("+", each.incident.began - T0) if isinstance(each, Opened) else ("-", each.ended - T0) for each in news]


def test_a_target_is_down_ten_seconds_after_its_first_failure_and_its_timeouts():
    """Every 60 s, three attempts 5 s apart, each with a timeout of 1 s: down 2 * 5 s after the first has failed."""
    world = World("uuud", max_attempts=3, retry_interval=5.0)
    assert world.live(330) == [60, 120, 180, 240, 246, 252, 300]
    assert times_of(world.told) == [("+", 253.0)]
    assert world.target.state.status is TargetStanding.DOWN
    assert world.target.state.ends.down == 2  # attempts that were not final are counted where they came


def test_attempts_hold_no_slot_meanwhile():
    """Another check of a pool of one has its turn between two attempts."""
    world = World("uuud", max_attempts=3, retry_interval=5.0)
    began = set()

    async def other():
        began.add(round(world.check.clock.wall() - T0, 3))

    def build(scheduler, clock):
        world.build(scheduler, clock)
        scheduler.add(other, Every(1, anchor=START), id="other", durable=False)

    simulate(build, 280, store=world.store, limit=1)
    assert began >= {242, 243, 244, 245, 248, 249, 250, 251}


@pytest.mark.parametrize(
    ("most", "series", "attempts", "finals"),
    [
        (2, "duu", [1, 2, 1], "nff"),
        (2, "dddd", [1, 2, 1, 1], "nfff"),
        (3, "ddduu", [1, 2, 3, 1, 1], "nnfff"),
        (3, "uuuddu", [1, 1, 1, 1, 2, 3], "fffnnf"),
        (1, "duu", [1, 1, 1], "fff"),
        (2, "uuud?d", [1, 1, 1, 1, 1, 2], "fffnff"),
    ],
)
def test_heartbeat_attempts_as_runs_by_series(most, series, attempts, finals):
    """The same attempts as within one run (heartbeat.md 5), and one that is unknown is none."""
    world = World(series, max_attempts=most, retry_interval=5.0)
    seen = []
    world.board.subscribe(
        lambda news: seen.append(news.target.last) if hasattr(news, "is_change") else None,
    )
    world.live(60.0 * len(series) + 59)
    del seen[len(series) :]
    assert [each.attempt for each in seen] == attempts
    assert "".join("f" if each.is_final else "n" for each in seen) == finals


def test_an_attempt_that_is_not_final_changes_no_status_and_opens_nothing():
    """The target recovers in its second attempt, and nobody hears of it."""
    world = World("uuudu", max_attempts=2, retry_interval=5.0)
    assert world.live(299) == [60, 120, 180, 240, 246]
    state = world.target.state
    assert (state.status, state.number, state.up, state.down) == (TargetStanding.UP, 0, 4, 1)
    assert (world.target.status, world.target.changes, world.told) == (Status.UP, 0, [])


def test_a_regular_start_that_comes_first_is_the_attempt():
    """No check is set beyond it, and none takes its place."""
    world = World("uuud", max_attempts=3, retry_interval=90.0)
    assert world.live(370) == [60, 120, 180, 240, 300, 360]
    assert times_of(world.told) == [("+", 361.0)]


def test_without_an_interval_there_is_one_run_as_ever():
    """The attempts within it are the check's own business."""
    world = World("uuud", max_attempts=3)
    assert world.live(300.5) == [60, 120, 180, 240, 300]
    assert world.target.attempts() == 1
    assert TargetStatus("api", "http://h", "http", 3).attempts() == 3


def test_a_target_that_is_not_well_is_checked_at_its_failing_interval():
    """On a grid of its own from the start that found it down, until it is up; the regular grid stays."""
    world = World("uuuddddu", failing_interval=15.0)
    assert world.live(370) == [60, 120, 180, 240, 255, 270, 285, 300, 360]
    assert times_of(world.told) == [("+", 241.0), ("-", 301.0)]


def test_a_failing_interval_that_is_shorter_than_a_check_leaves_slots_out():
    """As an interval does: the check never runs twice at a time, nor at once again."""
    world = World("uuud", takes=7.0, failing_interval=3.0)
    assert world.live(269) == [60, 120, 180, 240, 249, 258, 267]


def test_attempts_after_a_pause_count_from_their_end():
    """With `@after` the schedule itself goes on from the last attempt."""
    world = World("uuudd", schedule=After(60), max_attempts=2, retry_interval=5.0)
    began = world.live(249)
    assert [round(later - recheck) for recheck, later in pairwise(began)] == [61, 61, 61, 6]
    assert times_of(world.told) == [("+", 190.0)]


@pytest.mark.parametrize(("away_until", "began"), [(243.0, 246.0), (247.0, 247.0)])
def test_an_attempt_that_was_due_is_kept_over_a_restart(away_until, began):
    """The process dies after the first attempt; the next one makes the second, when it was due or at once."""
    world = World("uuud", max_attempts=2, retry_interval=5.0)
    assert world.live(242) == [60, 120, 180, 240]
    world.begin()
    assert world.live(300.5 - away_until, since=away_until)[0] == pytest.approx(began, abs=0.01)
    (opened,) = world.told
    assert opened.incident.began - T0 == pytest.approx(began + 1)
    assert (world.target.state.number, world.target.state.ends.down) == (1, 1)


def test_an_attempt_that_is_too_late_after_a_restart_gives_way_to_the_regular_start():
    """It is left out like any check, and the next one is the second attempt all the same."""
    world = World("uuud", max_attempts=2, retry_interval=5.0)
    world.live(242)
    world.begin()
    assert world.live(62, since=270.0) == [300]
    (missed,) = [event for event in world.found.events if isinstance(event, RunMissed)]
    assert missed.reason is MissedReason.LATE
    assert times_of(world.told) == [("+", 301.0)]


@settings(max_examples=examples(60))
@given(
    st.text("ud?", min_size=1, max_size=30),
    st.integers(1, 4),
    st.sampled_from([0.0, 5.0, 45.0, 100.0]),
    st.sampled_from([None, 7.0, 30.0, 200.0]),
)
def test_the_regular_grid_is_never_left(series, most, retry, failing):
    """Whatever comes between: each regular start has its check."""
    world = World(series, max_attempts=most, retry_interval=retry, failing_interval=failing)
    began = world.live(600.5)
    assert {each for each in began if each % 60 == 0} == set(range(60, 601, 60))
    assert not [event for event in world.found.events if isinstance(event, RunMissed)]
    runs = [event for event in world.found.events if isinstance(event, RunEnded)]
    assert {run.outcome for run in runs} <= {Outcome.SUCCEEDED, Outcome.CANCELLED}
    assert world.target.counts.total() == len([run for run in runs if run.outcome is Outcome.SUCCEEDED])


@pytest.mark.parametrize(
    ("options", "ends_at", "after_a_death", "after_a_stop"),
    [
        ({"failing_interval": 15.0}, 255.5, 270, 270),
        ({"failing_interval": 4.0}, 248.5, 264, 252),
        ({"max_attempts": 2, "retry_interval": 20.0}, 261.5, 284.5, 281.5),
        ({"max_attempts": 2, "retry_interval": 1.0}, 242.5, 255.5, 245.5),
        ({"failing_interval": 15.0}, 240.5, 255, 255),
        ({"retry_interval": 5.0}, 240.5, 300, 300),
        ({}, 240.5, 300, 300),
    ],
)
@pytest.mark.parametrize("is_killed", [True, False])
def test_a_check_that_is_cut_off_is_made_up_for(options, ends_at, after_a_death, after_a_stop, is_killed):
    """By a death or by a stop: nobody had set the next one, so the regular one was next, which may be hours away. Of a
    target that was well until then, too: nobody knows what would have been found. After a death it rests first.
    """
    world = World("uuud", **options)
    world.live(ends_at, is_killed=is_killed)
    world.begin()
    began = world.live(60, since=ends_at + 3.0)
    assert next(each for each in began if each > ends_at) == (after_a_death if is_killed else after_a_stop)


def test_a_check_that_died_with_its_process_rests_no_longer_than_its_interval():
    """Ten seconds were twenty checks of a target that is asked twice a second."""
    world = World("u", schedule=Every(0.5, anchor=START), takes=0.1)
    world.live(20.05, is_killed=True)
    world.begin()
    assert world.live(2, since=21.2)[-4:] == [21.5, 22.0, 22.5, 23.0]
