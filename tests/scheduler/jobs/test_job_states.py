"""Whatever is done to a job, it goes only where the table of states has a way."""

import math
from datetime import timedelta

import anyio
import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kit import PATIENCE
from schedule import After, At, Cron, Every
from scheduler import (
    ImpossibleTransition,
    JobNotFound,
    JobState,
    Outcome,
    Overlap,
    Retry,
    RunEnded,
    RunMissed,
    RunStarted,
    Scheduler,
)
from scheduler._values.state import TRANSITIONS, LifeStep, advance
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START, ManualClock

WAYS = {(before, after) for ways in TRANSITIONS.values() for before, after in ways.items()}


@pytest.mark.parametrize("step", LifeStep)
@pytest.mark.parametrize("state", JobState)
def test_a_step_is_in_the_table_or_is_refused(step, state):
    """An impossible one is an error of its own kind that names both."""
    if state in TRANSITIONS[step]:
        assert advance(state, step) is TRANSITIONS[step][state]
    else:
        with pytest.raises(ImpossibleTransition, match=f"{state.value} cannot {step.value}"):
            advance(state, step)


def test_every_state_can_be_reached_and_left():
    """No state is there for nothing, and none is a trap but the last."""
    assert {after for _, after in WAYS} == set(JobState) == {before for before, _ in WAYS} | {JobState.GONE}


async def test_a_run_takes_its_job_through_the_states(clock, events):
    """Waiting for its start, for room, running, terminating, and waiting again."""
    async with Scheduler(limit=1, clock=clock, kill_after="1h") as s:
        s.listen(events)

        async def tidy():
            try:
                await clock.sleep(3_600)
            finally:
                with anyio.CancelScope(shield=True):
                    await clock.sleep(10)

        hog = s.add(clock.sleep, Every("1h", anchor=START), id="hog", args=(10,))
        job = s.add(tidy, Every("1h", anchor=START), id="job", timeout="30s")
        assert job.state is JobState.SCHEDULED
        clock.advance(3_600)
        await clock.travel(0)
        assert (hog.state, job.state) == (JobState.RUNNING, JobState.STARTING)
        await clock.travel(10)
        assert (hog.state, job.state) == (JobState.SCHEDULED, JobState.RUNNING)
        await clock.travel(30)
        assert job.state is JobState.TERMINATING
        await clock.travel(10)
        assert job.state is JobState.SCHEDULED
        job.pause()
        assert job.state is JobState.DISABLED
        job.resume()
        assert job.state is JobState.SCHEDULED


@pytest.mark.parametrize("first", ["ends", "times out", "is given up"])
async def test_a_job_with_several_runs_stands_where_the_furthest_of_those_left_does(clock, first):
    """When one of them ends, the job is not taken for running while the other still waits for room."""
    async with Scheduler(limits={"x": 1}, clock=clock, kill_after="2s") as s:

        async def task():
            with anyio.CancelScope(shield=first == "is given up"):
                await clock.sleep(3 if first == "ends" else 60)

        hog = s.add(clock.sleep, "@every 1d", args=(10,), needs="x")
        job = s.add(task, "@every 1d", overlap=Overlap.ALLOW, max_running=2, timeout=None if first == "ends" else "3s")
        job.run_now()
        hog.run_now()
        await clock.travel(0)
        job.update(needs="x")
        job.run_now()
        seen = []
        for seconds in (1, 5, 5):
            await clock.travel(seconds)
            seen.append((job.state, s.statistics().active_tasks))
        s.stop(grace=0)
        await clock.travel(100)
    assert seen == [(JobState.RUNNING, 2), (JobState.STARTING, 1), (JobState.RUNNING, 1)]


LASTING = st.sampled_from([Every("3s"), Every("7s", jitter="2s"), After("4s"), Cron("*/5 * * * * *")])
ENDING = st.sampled_from([At(START.replace(second=20)), Every("2s").between(START, START.replace(second=40))])
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "overlap": st.sampled_from(Overlap),
        "timeout": st.sampled_from(["1s", "3s"]),
        "retry": st.sampled_from([Retry.constant("1s", max_retries=1), Retry.linear("2s", past_next_start=True)]),
        "needs": st.sampled_from([(), "x"]),
        "priority": st.integers(-2, 2),
    },
)


class JobMachine(RuleBasedStateMachine):
    """One job, everything that can be done to it, and a hog that takes its room away now and then."""

    def __init__(self):
        super().__init__()
        self.clock = ManualClock()
        self.portal = anyio.from_thread.start_blocking_portal(self.backend)
        self.call = self.portal.__enter__()
        self.behaviour = "quick"
        self.seen = []
        self.events = []

    @initialize(schedule=LASTING | ENDING, options=OPTIONS)
    def start(self, schedule, options):
        """Make a scheduler with one job."""
        self.scheduler = Scheduler(limit=2, limits={"x": 1}, clock=self.clock, kill_after="2s")
        self.scheduler.listen(self.listen)
        self.job = self.scheduler.add(self.task, schedule, id="job", **options)
        self.hog = self.scheduler.add(self.clock.sleep, "@yearly", args=(math.pi,), needs="x")
        self.removed = False
        self.running = self.call.start_task_soon(self.scheduler.run)
        self.call.call(self.clock.travel, 0)

    def do(self, func, *args):
        """Do it on the loop, and let everything that needs no time come to rest."""
        self.call.call(self.do_there, func, *args)

    async def do_there(self, func, *args):
        """Do it here."""
        try:
            func(*args)
        finally:
            await self.clock.travel(0)

    def listen(self, event):
        """Note each state that the job is seen in."""
        self.seen.append(self.job.state if hasattr(self, "job") else JobState.SCHEDULED)
        self.events.append(event)

    async def task(self):
        """Behave as was last said."""
        behaviour = self.behaviour
        if behaviour == "fails":
            raise ValueError
        if behaviour == "slow":
            await self.clock.sleep(2.5)
        if behaviour == "deaf":
            with anyio.CancelScope(shield=True):
                await self.clock.sleep(5.5)

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0, 2.0, 5.0]))
    def time_passes(self, seconds):
        """Let things happen."""
        self.call.call(self.clock.travel, seconds)

    @rule(seconds=st.sampled_from([-30, 30, -0.3, 3_600]))
    def the_clock_is_set(self, seconds):
        """To and fro."""
        self.do(self.clock.step, seconds)

    @rule(behaviour=st.sampled_from(["quick", "slow", "fails", "deaf"]))
    def behave(self, behaviour):
        """From the next run on."""
        self.behaviour = behaviour

    @rule(verb=st.sampled_from(["pause", "resume"]))
    def pause_or_resume(self, verb):
        """Both are allowed until it is gone."""
        self.ask(getattr(self.job, verb))

    @rule()
    def run_now(self):
        """Allowed as long as it has not been removed and has not finished."""
        self.ask(self.job.run_now)

    def ask(self, verb):
        """Ask it of the job, which refuses it once it is gone, and then alone."""
        try:
            self.do(verb)
        except JobNotFound:
            assert self.job not in self.scheduler.jobs()
        else:
            assert not self.removed

    @rule()
    def hog_the_limit(self):
        """Let somebody else take the room."""
        self.do(self.hog.run_now)

    @rule(schedule=LASTING)
    def change_the_schedule(self, schedule):
        """To one that does not end."""
        self.ask(lambda: self.job.update(schedule=schedule))

    @rule(options=OPTIONS)
    def change_options(self, options):
        """Any of them."""
        self.ask(lambda: self.job.update(**options))

    @precondition(lambda self: not self.removed)
    @rule()
    def remove(self):
        """Once and for all."""
        self.removed = True
        self.do(self.job.remove)

    @invariant()
    def the_books_are_balanced(self):
        """Runs are successes, failures and those that go on; every event has been counted."""
        if not hasattr(self, "job"):
            return
        counts = self.job.statistics()
        of_job = [event for event in self.events if getattr(event, "job_id", None) == "job"]
        ended = [event for event in of_job if isinstance(event, RunEnded)]
        assert counts.runs == len([event for event in of_job if isinstance(event, RunStarted)])
        assert counts.successes == len([event for event in ended if event.outcome is Outcome.SUCCEEDED])
        assert counts.failures == len(ended) - counts.successes
        assert counts.running == counts.runs - len(ended) >= 0
        assert counts.crashes == 0
        assert counts.missed == sum(event.count for event in of_job if isinstance(event, RunMissed))

    @invariant()
    def the_state_says_what_is(self):
        """A job without a run waits, is disabled or is gone; with one it is none of these."""
        if not hasattr(self, "job"):
            return
        active = self.job.statistics().running
        if active:
            assert self.job.state in (JobState.RUNNING, JobState.TERMINATING)
        elif self.removed:
            assert self.job.state is JobState.GONE
        else:
            assert self.job.state in (JobState.SCHEDULED, JobState.STARTING, JobState.DISABLED, JobState.GONE)

    @invariant()
    def a_job_that_waits_has_a_next_start_or_a_reason(self):
        """None is forgotten: it is in the heap, or running, or paused, or gone."""
        if not hasattr(self, "job") or self.job not in self.scheduler.jobs():
            return
        if self.job.state is JobState.SCHEDULED:
            assert self.job.next_start is not None
        if self.job.state is JobState.DISABLED:
            assert self.job.next_start is None
            assert self.job.error is not None

    @invariant()
    def limits_hold(self):
        """Nobody has more than there is."""
        if hasattr(self, "job"):
            statistics = self.scheduler.statistics()
            assert 0 <= statistics.active_tasks <= 2
            assert 0 <= statistics.limits["x"].used <= 1

    def teardown(self):
        """Stop it, and see that nothing is left."""
        try:
            if hasattr(self, "job"):
                self.call.call(self.scheduler.stop, 0)
                self.call.call(self.clock.travel, 20)
                self.running.result(PATIENCE)
                assert self.scheduler.statistics().active_tasks == 0
                assert self.scheduler.statistics().limits["x"].used == 0
                assert self.job.statistics().crashes == 0
        finally:
            self.portal.__exit__(None, None, None)


class AsyncioMachine(JobMachine):
    """On asyncio."""

    backend = "asyncio"


class TrioMachine(JobMachine):
    """On trio."""

    backend = "trio"


FEW = settings(max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
AsyncioMachine.TestCase.settings = FEW
TrioMachine.TestCase.settings = FEW
TestOnAsyncio = AsyncioMachine.TestCase
TestOnTrio = TrioMachine.TestCase


# -- a job that is gone ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["removed", "removed while paused", "removed while it runs", "ended"])
@pytest.mark.parametrize("store", [None, MemoryStore], ids=["memory", "store"])
async def test_a_job_that_is_gone_says_so_and_its_verbs_raise(clock, how, store):
    """It was SCHEDULED for good, and pause, resume and update of it did nothing without a word."""

    async def work():
        await clock.sleep(5)

    async with Scheduler(clock=clock, store=store and store()) as s:
        s.register("work", work)
        schedule = At(clock.now() + timedelta(seconds=1)) if how == "ended" else Every("10s", anchor=clock.now())
        job = s.add("work", schedule, id="a")
        await clock.travel(11 if how == "removed while it runs" else 3)
        if how == "removed while paused":
            job.pause()
        if how == "ended":
            assert job.state is JobState.RUNNING
        else:
            job.remove()
        assert (job.state is JobState.GONE) == (how in {"removed", "removed while paused"})
        await clock.travel(20)
        assert job.state is JobState.GONE
        for verb in (
            job.pause,
            job.resume,
            job.run_now,
            lambda: job.set_next_start(clock.now()),
            lambda: job.update(priority=1),
        ):
            with pytest.raises(JobNotFound, match="job 'a' has been removed, or its schedule has ended"):
                verb()
        job.remove()
        assert job.next_start is None
        assert job.next_starts(3) == []
        assert job.state is JobState.GONE
    assert repr(job).endswith("gone>")


# -- what runs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [None, MemoryStore], ids=["memory", "store"])
@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.ALLOW])
async def test_a_run_that_goes_on_is_no_crash(clock, store, overlap):
    """It counted as one from its beginning, with a store from its mark, to its end."""

    async def work():
        await clock.sleep(5)

    async with Scheduler(clock=clock, store=store and store()) as s:
        s.register("work", work)
        job = s.add("work", Every("1d"), id="a", overlap=overlap)
        job.run_now()
        await clock.travel(1)
        counts = job.statistics()
        assert (counts.runs, counts.running, counts.crashes, counts.successes) == (1, 1, 0, 0)
        await clock.travel(5)
        counts = job.statistics()
        assert (counts.runs, counts.running, counts.crashes, counts.successes) == (1, 0, 0, 1)
