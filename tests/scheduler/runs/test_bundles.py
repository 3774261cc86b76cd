"""Runs that are due together share a place in the pool: nobody can tell, but for what it costs.

Where a job has a priority each run has a place of its own. So every scenario here is played twice, the second time with
such a job, which never starts: the same has to come of both.
"""

import asyncio
import gc
import threading
import weakref
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import partial

import anyio
import pytest
from anyio.lowlevel import checkpoint

from kit import PATIENCE
from schedule import At, Every, Missed
from scheduler import Outcome, Overlap, Retry, RunEnded, RunMissed, RunStarted, Scheduler, Subtask, current_run
from scheduler._jobs.current import RUN
from scheduler._runs.run import Run
from timerqueue import seeded_random
from timerqueue.testing import ManualClock

SECOND = Every("1s")


def runs_of(job):
    """Count those of its runs that are still in memory."""
    return sum(isinstance(each, Run) and each.job is job for each in gc.get_objects())


class Story:
    """What happened, by whom."""

    def __init__(self, scheduler, clock):
        self.s = scheduler
        self.clock = clock
        self.said = []
        self.most = 0
        self.inside = 0

    async def quick(self, name):
        self.said.append((name, current_run().job_id, current_run().attempt))

    async def slow(self, name, seconds):
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            self.said.append(f"{name} begins")
            await self.clock.sleep(seconds)
            self.said.append(f"{name} ends")
        finally:
            self.inside -= 1

    async def fails(self, name):
        self.said.append(name)
        raise ValueError(name)

    async def turns(self, name):
        await checkpoint()
        self.said.append(name)

    async def answers(self, name):
        return f"{name} says"

    async def parent(self, name, count):
        return [Subtask(self.quick, f"{name}.{number}") for number in range(count)]

    async def removes(self, *ids):
        for id in ids:
            self.s.get(id).remove()
        self.said.append(f"removed {ids}")

    async def stops(self):
        self.s.stop(grace=0)
        self.said.append("stops")

    async def cancels_its_task(self):
        asyncio.current_task().cancel()
        self.said.append("cancels")


def event_log(events):
    """Everything but what names a place in memory."""
    return [(type(event).__name__, getattr(event, "job_id", None), getattr(event, "outcome", None)) for event in events]


async def played(play, *, together, limit=100, seconds=5.0, listens=True):
    """What becomes of a scenario."""
    clock, events = ManualClock(), []
    s = Scheduler(limit=limit, clock=clock, random=seeded_random(7))
    story = Story(s, clock)
    if not together:
        s.add(story.quick, Every("10000d"), id="far", args=("far",), priority=1)
    play(s, story)
    async with s:
        if listens:
            s.listen(events.append)
        await clock.travel(seconds)
        statistics = {job.id: job.statistics() for job in s.jobs() if job.id != "far"}
        of_all = s.statistics()
        story.said.append((of_all.active_tasks, of_all.waiting_tasks, of_all.missed, of_all.runs))
        s.stop(grace=0)
    return story.said, event_log(events), statistics, story.most


async def assert_alike(play, **options):
    """Nobody can tell the difference, but for the order of those that wait, which trio draws by lot."""
    together, alone = [await played(play, together=each, **options) for each in (True, False)]
    assert sorted(map(str, together[0])) == sorted(map(str, alone[0]))
    assert sorted(map(str, together[1])) == sorted(map(str, alone[1]))
    assert together[2:] == alone[2:]


def add_all(s, *jobs, **options):
    """Add jobs that are all due at the same instants."""
    start = datetime.fromtimestamp(s._clock.wall() + 1, UTC)
    for number, (func, *args) in enumerate(jobs):
        s.add(func, SECOND, id=f"job-{number}", args=args, start=start, **options)


@pytest.mark.parametrize("listens", [True, False])
async def test_runs_that_never_wait(listens):
    """In the order in which they were added."""
    await assert_alike(lambda s, t: add_all(s, *[(t.quick, name) for name in "abcdef"]), listens=listens)


@pytest.mark.parametrize("listens", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_runs_that_wait_and_runs_that_do_not(limit, listens):
    """Who waits keeps the unit; the limit holds; nobody is forgotten."""

    def play(s, t):
        add_all(
            s, (t.quick, "a"), (t.slow, "b", 0.3), (t.quick, "c"), (t.turns, "d"), (t.slow, "e", 0.4), (t.quick, "f")
        )

    said, _, statistics, most = await played(play, together=True, limit=limit, listens=listens)
    await assert_alike(play, limit=limit, listens=listens)
    assert most <= limit
    assert {each.runs for each in statistics.values()} <= {4, 5}
    assert ("c", "job-2", 1) in said


async def test_runs_that_fail_answer_and_have_subtasks():
    """What is not plain is told and counted as ever."""

    def play(s, t):
        add_all(s, (t.fails, "a"), (t.answers, "b"), (t.parent, "c", 5), (t.quick, "d"), (partial(t.quick, "e"),))

    await assert_alike(play)
    _, log, statistics, _ = await played(play, together=True)
    assert ("RunEnded", "job-0", Outcome.FAILED) in log
    assert statistics["job-0"].failures == statistics["job-0"].runs >= 4


async def test_failures_are_tried_again():
    """An attempt is counted from two."""
    await assert_alike(
        lambda s, t: add_all(s, (t.fails, "a"), (t.fails, "b"), retry=Retry.exponential("0.2s", max_retries=2)),
        seconds=2.5,
    )


async def test_a_run_that_removes_the_next_of_its_bundle():
    """The next never begins, and those behind it do."""

    def play(s, t):
        add_all(s, (t.removes, "job-1", "job-3"), (t.quick, "b"), (t.quick, "c"), (t.slow, "d", 1), (t.quick, "e"))

    await assert_alike(play, seconds=1.5)
    said, _, _, _ = await played(play, together=True, seconds=1.5)
    assert ("b", "job-1", 1) not in said
    assert ("e", "job-4", 1) in said


async def test_a_run_that_removes_its_own_job():
    """It is cancelled, and takes nobody with it."""
    await assert_alike(lambda s, t: add_all(s, (t.removes, "job-0"), (t.quick, "b"), (t.slow, "c", 0.2)), seconds=1.5)


async def test_a_run_that_stops_the_scheduler():
    """What is behind it in the bundle is missed, and `run` returns."""
    with anyio.fail_after(PATIENCE):
        said, log, _, _ = await played(
            lambda s, t: add_all(s, (t.quick, "a"), (t.stops,), (t.quick, "c")), together=True, seconds=1.5
        )
    assert "stops" in said
    assert ("c", "job-2", 1) not in said
    assert [name for name, *_ in log].count("RunMissed") == 1


async def test_a_job_that_a_thread_removes_while_its_batch_is_worked_off_does_not_start():
    """Whoever has returned from `remove` sees no more runs of it, though the loop is in the middle of a turn."""
    clock = ManualClock()
    async with Scheduler(clock=clock) as s:
        story = Story(s, clock)

        def another_thread_removes():
            thread = threading.Thread(target=s.get("job-1").remove)
            thread.start()
            thread.join()

        s._core.queue.push(clock.monotonic() + 1, another_thread_removes)  # a timer before them in the same batch
        add_all(s, (story.quick, "a"), (story.quick, "b"), (story.quick, "c"))
        await clock.travel(1.5)
        s.stop(grace=0)
    assert [name for name, *_ in story.said] == ["a", "c"]


async def test_waiting_runs_can_be_removed_and_are_missed():
    """They wait in one place with others; those keep it."""

    def play(s, t):
        add_all(s, *[(t.slow, name, 0.9) for name in "abcdef"])

    clock = ManualClock()
    async with Scheduler(limit=1, clock=clock) as s:
        story = Story(s, clock)
        play(s, story)
        await clock.travel(1.1)
        assert (s.statistics().active_tasks, s.statistics().waiting_tasks) == (1, 5)
        s.get("job-1").remove()
        s.get("job-2").remove()
        assert (s.statistics().active_tasks, s.statistics().waiting_tasks) == (1, 3)
        await clock.travel(2.5)
        s.stop(grace=0)
    begun = [what for what in story.said if "begins" in what]
    assert begun[:3] == ["a begins", "d begins", "e begins"]


async def test_a_place_of_which_all_have_gone_is_nobodys():
    """It does not count as waiting, and the next goes in its stead."""
    clock = ManualClock()
    async with Scheduler(limit=1, clock=clock) as s:
        story = Story(s, clock)
        s.add(story.slow, SECOND, id="long", args=("long", 100), start="now")
        await clock.travel(0)
        add_all(s, *[(story.quick, name) for name in "abcdef"])
        await clock.travel(1.1)
        assert s.statistics().waiting_tasks == 6
        for number in range(6):
            s.get(f"job-{number}").remove()
        assert s.statistics().waiting_tasks == 0
        s.get("long").remove()
        last = s.add(story.quick, SECOND, id="last", args=("last",), start="now")
        await clock.travel(0)
        assert last.statistics().successes == 1
        assert (s.statistics().active_tasks, s.statistics().waiting_tasks) == (0, 0)
        s.stop(grace=0)


@pytest.mark.parametrize("has_priorities", [True, False])
async def test_a_job_that_a_listener_removes_before_its_batch_begins_does_not_run(has_priorities):
    """It is missed, once, and nothing of it begins."""
    clock, events = ManualClock(), []
    async with Scheduler(limit=1, clock=clock) as s:
        story = Story(s, clock)

        def removes(event):
            events.append(event)
            if isinstance(event, RunMissed) and event.job_id == "job-1" and len(s.jobs()) > 2:
                s.get("job-0").remove()

        add_all(s, (story.quick, "a"), (story.slow, "b", 1.5))
        if has_priorities:
            s.add(story.quick, Every("10000d"), id="far", args=("far",), priority=1)
        else:
            s.add(story.quick, Every("10000d"), id="far", args=("far",))
        s.listen(removes)
        await clock.travel(4.5)
        s.stop(grace=0)
    begun = [event.due for event in events if isinstance(event, RunStarted) and event.job_id == "job-0"]
    missed = [event.first_due for event in events if isinstance(event, RunMissed) and event.job_id == "job-0"]
    assert len(begun) == 1
    assert len(missed) == 1
    assert not set(begun) & set(missed)


async def test_an_exception_that_outlives_its_run_holds_nothing_else():
    """Neither what the run set in its context, nor the runs that came after it."""
    clock, kept, alive = ManualClock(), [], weakref.WeakSet()
    variable = ContextVar("variable")

    class Big:
        pass

    async with Scheduler(clock=clock) as s:

        async def fails():
            big = Big()
            alive.add(big)
            variable.set(big)
            del big
            kept.append(ValueError("kept"))
            raise kept[0]

        story = Story(s, clock)
        add_all(s, (fails,), (story.quick, "b"))
        await clock.travel(1.5)
        s.stop(grace=0)
    gc.collect()
    assert len(kept) == 1
    assert not alive


async def test_an_exception_of_a_subtask_holds_neither_its_run_nor_what_its_parent_has_set():
    """It goes through the frame of the loop that ran the subtask."""
    clock, kept, alive = ManualClock(), [], weakref.WeakSet()
    variable = ContextVar("variable")

    class Big:
        pass

    async with Scheduler(clock=clock) as s:

        async def fails():
            kept.append(ValueError("kept"))
            raise kept[0]

        async def parent():
            big = Big()
            alive.add(big)
            variable.set(big)
            return [Subtask(fails)]

        job = s.add(parent, SECOND, id="a", start="now")
        await clock.travel(0.5)
        gc.collect()
        assert len(kept) == 1
        assert not alive
        assert runs_of(job) == 0
        s.stop(grace=0)


async def test_subtasks_that_are_cancelled_while_they_wait_hold_nothing():
    """Their place in the line may stand there for long."""
    clock, alive = ManualClock(), weakref.WeakSet()
    variable = ContextVar("variable")

    class Big:
        pass

    async with Scheduler(clock=clock, limit=2) as s:
        story = Story(s, clock)

        async def parent():
            big = Big()
            alive.add(big)
            variable.set(big)
            await clock.sleep(0.1)
            return [Subtask(story.quick, "late")]

        job = s.add(parent, "@every 1h", id="a", start="now", timeout=1)
        s.add(story.slow, "@every 1h", id="long", args=("long", 1000.0), start="now")
        await clock.travel(0.05)
        s.resize(limit=1)
        await clock.travel(0.5)
        assert (s.statistics().waiting_tasks, len(alive)) == (1, 1)
        await clock.travel(2)
        gc.collect()
        assert s.statistics().waiting_tasks == 0
        assert not alive
        assert runs_of(job) == 0
        s.stop(grace=0)


async def test_what_waits_in_a_bundle_is_missed_at_the_end():
    """`run` does not wait for what never began."""
    clock, events = ManualClock(), []
    with anyio.fail_after(PATIENCE):
        async with Scheduler(limit=1, clock=clock) as s:
            s.listen(events.append)
            add_all(s, *[(Story(s, clock).slow, name, 100) for name in "abcdef"])
            await clock.travel(1.1)
            s.stop(grace=0)
    assert [type(event).__name__ for event in events].count("RunMissed") == 5


async def test_the_statistics_count_a_run_while_it_goes_on():
    """As one that has not ended: for its job and for the scheduler, and only once."""
    clock, seen = ManualClock(), []
    async with Scheduler(clock=clock) as s:

        async def looks():
            seen.append((s.get("a").statistics(), s.statistics()))
            await clock.sleep(0.5)
            seen.append((s.get("a").statistics(), s.statistics()))

        s.add(looks, SECOND, id="a")
        await clock.travel(1.9)
        s.stop(grace=0)
    for job, scheduler in seen[:2]:
        assert (job.runs, job.successes, job.running, job.crashes) == (1, 0, 1, 0)
        assert job.last_start is not None
        assert scheduler.runs == scheduler.lateness["default"].total == 1


@pytest.mark.parametrize("count", [1, 10, 500])
async def test_subtasks_of_one_task_share_a_place_too(count):
    """All of them run, under the same limit."""
    await assert_alike(lambda s, t: add_all(s, (t.parent, "a", count), (t.parent, "b", count)), limit=3, seconds=1.5)


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_subtasks_go_before_the_rest_of_a_bundle(limit):
    """Started jobs finish first, as they do where each run has a place of its own."""
    clock = ManualClock()
    async with Scheduler(limit=limit, clock=clock) as s:
        story = Story(s, clock)

        async def entry(name):
            story.said.append(name)
            return [Subtask(story.quick, f"{name}.{number}") for number in range(2)]

        add_all(s, (entry, "a"), (entry, "b"), (entry, "c"))
        await clock.travel(1.5)
        s.stop(grace=0)
    said = [what if isinstance(what, str) else what[0] for what in story.said]
    assert said == ["a", "a.0", "a.1", "b", "b.0", "b.1", "c", "c.0", "c.1"]


async def test_subtasks_in_a_bundle_end_with_their_run():
    """Removing the job drops those that have not begun."""
    clock = ManualClock()
    async with Scheduler(limit=1, clock=clock) as s:
        story = Story(s, clock)

        async def parent():
            return [Subtask(story.slow, f"{number}", 1.0) for number in range(5)]

        job = s.add(parent, SECOND, id="a", start="now")
        await clock.travel(0.5)
        job.remove()
        await clock.travel(5)
        assert (s.statistics().active_tasks, s.statistics().waiting_tasks) == (0, 0)
        s.stop(grace=0)
    assert story.said == ["0 begins"]


async def test_a_run_whose_subtasks_go_on_ends_with_them():
    """A timeout cancels them, and the run is over when they are: it does not wait in a bundle any more."""
    clock, events = ManualClock(), []
    async with Scheduler(clock=clock) as s:
        s.listen(events.append)

        async def stubborn():
            try:
                await clock.sleep(10)
            finally:
                with anyio.CancelScope(shield=True):
                    await clock.sleep(1)

        async def parent():
            return Subtask(stubborn)

        async def other():
            pass

        add_all(s, (other,), (parent,), timeout=None)
        s.get("job-1").update(timeout=0.3)
        await clock.travel(2)
        assert not [event for event in events if isinstance(event, RunEnded) and event.job_id == "job-1"]
        await clock.travel(0.5)
        ended = [event for event in events if isinstance(event, RunEnded) and event.job_id == "job-1"]
        assert [(event.outcome, round(event.duration, 3)) for event in ended] == [(Outcome.TIMED_OUT, 1.3)]
        s.stop(grace=0)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_run_that_cancels_its_own_task_ends_alone():
    """The next run of the bundle waits undisturbed."""
    await assert_alike(lambda s, t: add_all(s, (t.cancels_its_task,), (t.slow, "b", 0.2), (t.quick, "c")), seconds=1.5)


async def test_runs_side_by_side_are_counted_once_and_in_order():
    """The last start is that of the run that began last, whoever ends last."""
    clock = ManualClock()
    async with Scheduler(clock=clock) as s:
        lengths = iter([0.6, 0.1])

        async def work():
            await clock.sleep(next(lengths))

        job = s.add(work, Every("100d"), id="a", overlap=Overlap.ALLOW)
        job.run_now()
        await clock.travel(0.2)
        job.run_now()
        await clock.travel(0.01)
        last_start = job.statistics().last_start
        await clock.travel(1)
        statistics = job.statistics()
        s.stop(grace=0)
    assert statistics.last_start == last_start
    assert (statistics.runs, statistics.successes) == (2, 2)


async def test_a_run_keeps_its_type_when_its_job_gets_another():
    """What has begun counts as what it was."""
    clock = ManualClock()
    async with Scheduler(clock=clock, limits={"x": 1}) as s:
        job = s.add(clock.sleep, Every("100d"), id="a", args=(1,))
        job.run_now()
        await clock.travel(0.5)
        job.update(needs="x")
        await clock.travel(1)
        counts = {kind: each.total for kind, each in s.statistics().lateness.items()}
        assert (job.statistics().runs, job.statistics().successes) == (1, 1)
        s.stop(grace=0)
    assert counts == {"default": 1, "x": 0}


async def test_starts_that_were_missed_are_counted_once_on_the_second():
    """Also when the clock stands exactly at a slot."""
    clock = ManualClock()
    async with Scheduler(clock=clock) as s:
        ran = []

        async def work():
            ran.append(1)

        job = s.add(work, SECOND, id="a", start=datetime.fromtimestamp(clock.wall() + 1, UTC))
        await clock.travel(0.5)
        for _ in range(50):
            before = job.statistics()
            clock.advance(6.0)
            await clock.travel(0)
            after = job.statistics()
            assert (after.runs - before.runs) + (after.missed - before.missed) == 6
        s.stop(grace=0)


async def test_a_callable_object_is_called_in_the_context_of_its_run():
    """Its call may be code of the user's: that knows in which run it is, and what it sets is gone with the run."""
    clock, seen = ManualClock(), []
    variable = ContextVar("variable", default="unset")

    async def nothing():
        pass

    class Check:
        def __init__(self):
            self.__call__ = nothing  # by which it says that what it returns can be awaited

        def __call__(self):
            seen.append((current_run().job_id, variable.get()))
            variable.set("set")
            return nothing()

    async with Scheduler(clock=clock) as s:
        add_all(s, (Check(),), (Check(),), (Check(),))
        await clock.travel(1)
        assert seen == [("job-0", "unset"), ("job-1", "unset"), ("job-2", "unset")]
        s.stop(grace=0)
    assert variable.get() == "unset"


async def test_what_waits_in_a_bundle_is_counted_one_by_one():
    """A place in the pool that many share is not one task for those who ask how much waits."""
    clock = ManualClock()
    async with Scheduler(clock=clock, limit=2) as s:
        story = Story(s, clock)
        add_all(s, *[(story.slow, name, 0.5) for name in "abcdef"])
        await clock.travel(1)
        statistics = s.statistics()
        assert (statistics.active_tasks, statistics.waiting_tasks, statistics.active_jobs) == (2, 4, 6)
        s.get("job-5").remove()
        assert s.statistics().waiting_tasks == 3
        await clock.travel(0.5)
        assert (s.statistics().active_tasks, s.statistics().waiting_tasks) == (2, 1)
        s.stop(grace=0)


async def test_a_listener_that_removes_all_that_waits_leaves_the_rest_of_its_batch():
    """Also when the batch is still being put together: what is due behind them begins."""
    clock, said = ManualClock(), []
    async with Scheduler(clock=clock) as s:
        story = Story(s, clock)

        def removes(event):
            if isinstance(event, RunMissed):
                for name in ("job-0", "job-1"):
                    s.get(name).remove()

        add_all(s, (story.quick, "a"), (story.quick, "b"), (story.slow, "c", 1.5), (story.quick, "d"))
        s.listen(removes)
        await clock.travel(2.6)  # the second tick of "c" finds its first still running: it is missed
        said += story.said
        assert [job.id for job in s.jobs()] == ["job-2", "job-3"]
        assert [each for each in said if each[0] == "d"] == [("d", "job-3", 1)] * 2
        assert [each for each in said if each[0] in "ab"] == [("a", "job-0", 1), ("b", "job-1", 1)]
        s.stop(grace=0)


async def test_a_job_that_has_run_once_is_counted_when_somebody_asks():
    """Whether by then it is gone, runs again, or fails."""
    clock = ManualClock()
    outcomes = []

    async def job():
        if outcomes:
            raise ValueError(outcomes.pop())

    async with Scheduler(clock=clock) as s:
        [first] = [s.add(job, SECOND, start=datetime.fromtimestamp(clock.wall() + 1, UTC))]
        once = s.add(job, "@at 2100-01-01T00:00:00+00:00")
        await clock.travel(1)
        counts = first.statistics()
        assert (counts.runs, counts.successes, counts.last_outcome) == (1, 1, Outcome.SUCCEEDED)
        assert counts.last_successful_finish == counts.last_finish == counts.last_start == clock.wall()
        assert first.statistics() == counts
        outcomes.append("no")
        await clock.travel(1)
        failed = first.statistics()
        assert (failed.runs, failed.successes, failed.failures, failed.consecutive_failures) == (2, 1, 1, 1)
        assert (failed.last_successful_finish, failed.last_finish) == (counts.last_finish, clock.wall())
        await clock.travel(1)
        better = first.statistics()
        assert (better.runs, better.successes, better.consecutive_failures) == (3, 2, 0)
        assert better.last_successful_finish == better.last_finish == clock.wall()
        assert once.statistics().runs == 0
        s.stop(grace=0)


async def test_what_was_missed_gives_no_place_in_the_line():
    """After a gap a tick stands behind what was due before it."""
    clock, said = ManualClock(), []
    wall = clock.wall()

    async def note(name):
        said.append(name)

    async with Scheduler(clock=clock, limit=1, limits={"a": 1}) as s:
        s.add(partial(clock.sleep, 10), "@every 1h", start=datetime.fromtimestamp(wall + 0.2, UTC))
        await clock.travel(0.3)
        s.add(note, SECOND, id="late", args=("late",), start=datetime.fromtimestamp(wall + 1, UTC))
        s.add(note, "@every 1h", args=("older",), start=datetime.fromtimestamp(wall + 2.5, UTC), needs="a")
        clock.advance(3.7)  # the process stood still: of the slots at 1, 2, 3 and 4 only the last runs
        await clock.travel(0)
        s.get("late").update(schedule="@every 1d")  # no further slots
        await clock.travel(10)
        assert said == ["older", "late"]
        s.stop(grace=0)


async def test_after_a_gap_what_has_started_still_goes_on_first():
    """Its subtasks are newer than the slots that were missed, and not than the one that runs."""
    clock, said = ManualClock(), []

    async def note(name):
        said.append(name)

    async def parent():
        await clock.sleep(1)
        return [Subtask(note, "subtask")]

    async with Scheduler(clock=clock, limit=1) as s:
        s.add(parent, "@every 1h", start=datetime.fromtimestamp(clock.wall() + 0.2, UTC))
        await clock.travel(0.3)
        s.add(note, "@every 5s", args=("late",))
        clock.advance(600)
        await clock.travel(0)
        assert said == ["subtask", "late"]
        s.stop(grace=0)


@pytest.mark.parametrize("options", [{}, {"kwargs": {"name": 1}}, {"missed": Missed.SKIP}, {"inline": True}])
async def test_runs_leave_nothing_for_the_garbage_collector(options):
    """Neither those that begin at once, nor those that wait and come to stand for newer ticks."""
    clock = ManualClock()

    async def job(name=None):
        pass

    def inline(name=None):
        pass

    async def blocks():
        await clock.sleep(3.5)

    async with Scheduler(clock=clock, limit=1) as s:
        s.add(blocks, "@every 5s")
        for _ in range(20):
            s.add(inline if options.get("inline") else job, SECOND, **options)
        await clock.travel(5)
        gc.collect()
        gc.disable()
        try:
            await clock.travel(20)
            alive = sum(isinstance(each, Run) and each.owner is s._core.runs for each in gc.get_objects())
        finally:
            gc.enable()
        assert s.statistics().runs > 100
        assert alive <= 21  # what waits or runs at this moment
        s.stop(grace=0)


async def test_a_place_of_which_all_were_removed_is_free_at_once():
    """Also for one who asks in the same turn."""
    clock, seen = ManualClock(), []

    async def first():
        s.get("job").remove()
        seen.append((s.statistics().active_tasks, s.statistics().waiting_tasks))

    async def other():
        pass

    async with Scheduler(clock=clock, limit=2, limits={"a": 5}) as s:
        start = datetime.fromtimestamp(clock.wall() + 1, UTC)
        s.add(first, "@every 1h", start=start, needs="a")
        s.add(other, "@every 1h", start=start, id="job")
        await clock.travel(1)
        s.stop(grace=0)
    assert seen == [(1, 0)]


async def test_asking_for_statistics_changes_nothing_of_a_run():
    """It is asked from other threads, too."""
    clock = ManualClock()

    async def job():
        await clock.sleep(2)

    async with Scheduler(clock=clock) as s:
        job = s.add(job, "@every 1h", start="now")
        await clock.travel(1)
        assert job.statistics().runs == 1
        [run] = job.runs
        assert run.sparse is None
        s.stop(grace=0)


async def test_priorities_that_come_in_the_middle_of_a_turn_sort_all_of_it():
    """What was collected before the first job with a priority goes by its due time as well."""
    clock, said = ManualClock(), []
    wall = clock.wall()

    async def note(name):
        said.append(name)

    async with Scheduler(clock=clock, limit=1) as s:

        def adds(event):
            if isinstance(event, RunMissed) and event.job_id == "third":
                s.add(note, "@every 1000d", args=("never",), priority=5)

        s.listen(adds)
        for seconds, name in ((1, "late"), (2.6, "third")):
            s.add(note, SECOND, id=name, args=(name,), start=datetime.fromtimestamp(wall + seconds, UTC))
        s.add(note, At(datetime.fromtimestamp(wall + 2.5, UTC)), args=("older",))
        clock.advance(4)  # of "late" the slot at 4 runs, of "third" that at 3.6
        await clock.travel(0)
        assert said == ["older", "third", "late"]
        s.stop(grace=0)


async def test_a_subtask_that_removes_its_job_is_the_last_to_begin():
    """It is cancelled itself when it next waits; those behind it in its bundle never begin."""
    clock = ManualClock()
    async with Scheduler(clock=clock) as s:
        story = Story(s, clock)

        async def removes():
            story.said.append("removes")
            job.remove()
            await story.slow("it", 1.0)

        async def parent():
            return [Subtask(story.quick, "first"), Subtask(removes), *(Subtask(story.quick, "late") for _ in range(5))]

        job = s.add(parent, SECOND, id="a", start="now")
        await clock.travel(0.5)
        assert (s.statistics().active_tasks, s.statistics().waiting_tasks, s.jobs()) == (0, 0, [])
        s.stop(grace=0)
    assert story.said == [("first", "a", 1), "removes", "it begins"]


async def test_a_run_knows_how_many_of_its_tasks_have_not_ended():
    """Those of a bundle that have not begun count one by one, those that wait too."""
    clock = ManualClock()
    async with Scheduler(limit=2, clock=clock) as s:
        story = Story(s, clock)
        runs = []

        async def parent():
            runs.append(RUN.get())
            return [
                Subtask(story.quick, "quick"),
                *(Subtask(story.slow, number, 1.0) for number in range(4)),
                Subtask(story.quick, "timed", timeout="5s"),
            ]

        s.add(parent, SECOND, id="a", start="now")
        counts = []
        for _ in range(4):
            await clock.travel(1.0 if counts else 0.5)
            counts.append(runs[0].open_tasks)
        s.stop(grace=0)
    assert counts == [4, 2, 0, 0]
