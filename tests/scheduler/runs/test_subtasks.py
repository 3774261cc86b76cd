"""Tasks that return further tasks."""

import anyio
import anyio.lowlevel
import pytest

from kit import since_start
from schedule import ScheduleError
from scheduler import NotASubtask, Outcome, RunEnded, RunStarted, Scheduler, Subtask, current_run


async def answer(value):
    """Return what it was given."""
    return value


async def test_a_run_ends_with_the_last_of_its_subtasks(clock, events):
    """Results come in the order in which they ended; the last is the result."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def child(seconds):
            await clock.sleep(seconds)
            return seconds

        async def parent():
            return [Subtask(child, 3), Subtask(child, 1), Subtask(child, 2)]

        s.add(parent, "@every 1h", start="now")
        await clock.travel(2.5)
        assert events.of(RunEnded) == []
        await clock.travel(1)
        (ended,) = events.of(RunEnded)
        assert ended.results == (1, 2, 3)
        assert ended.result == 3
        assert ended.duration == pytest.approx(3)


async def test_subtasks_may_return_subtasks_without_a_bound_on_depth(clock, events):
    """A chain of a thousand costs no stack."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def link(left):
            return Subtask(link, left - 1) if left else "end"

        s.add(link, "@every 1h", start="now", args=(1_000,))
        await clock.travel(0)
        assert events.of(RunEnded)[0].results == ("end",)


async def test_a_single_subtask_and_a_list_and_a_tuple_are_all_taken(clock, events):
    """As are keyword arguments."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def one():
            return Subtask(answer, value=1)

        async def pair():
            return Subtask(answer, 2), Subtask(one)

        s.add(pair, "@every 1h", start="now")
        await clock.travel(0)
        assert sorted(events.of(RunEnded)[0].results) == [1, 2]


@pytest.mark.parametrize("value", [[], (), [1, 2], {}, "text", 0, False, {"a": [1]}])
async def test_anything_else_is_a_result(clock, events, value):
    """An empty list holds no subtasks, so it is one too. Only None is no result."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(answer, "@every 1h", args=(value,), start="now")
        await clock.travel(0)
        assert events.of(RunEnded)[0].results == (value,)


async def test_none_is_no_result(clock, events):
    """A task that returns nothing has none."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(answer, "@every 1h", args=(None,), start="now")
        await clock.travel(0)
        assert events.of(RunEnded)[0].results == ()
        assert events.of(RunEnded)[0].result is None


async def test_each_subtask_takes_one_unit_and_the_parent_has_returned_its_own(clock):
    """With a limit of one a tree of subtasks does not block itself."""
    seen = []
    async with Scheduler(limit=1, clock=clock) as s:

        async def node(depth):
            seen.append(s.statistics().active_tasks)
            return [Subtask(node, depth - 1), Subtask(node, depth - 1)] if depth else None

        s.add(node, "@every 1h", args=(4,), start="now")
        await clock.travel(0)
        assert seen == [1] * 31


async def test_subtasks_of_started_jobs_go_before_new_jobs(clock):
    """What has begun is finished first."""
    order = []
    async with Scheduler(limit=1, clock=clock) as s:

        async def child(name):
            order.append(name)

        async def parent(name):
            await clock.sleep(1)
            return [Subtask(child, f"{name}{number}") for number in (1, 2)]

        for name in "ab":
            s.add(parent, "@every 1h", id=name, args=(name,), start="now")
        await clock.travel(3)
        assert order == ["a1", "a2", "b1", "b2"]


async def test_what_has_begun_is_finished_first_however_long_the_others_have_waited(clock, events):
    """Else many would begin, none would end, and all would time out."""
    async with Scheduler(limit=1, clock=clock) as s:
        s.listen(events)

        async def parent():
            return [Subtask(clock.sleep, 1), Subtask(clock.sleep, 1)]

        for number in range(100):
            s.add(parent, "@every 1h", id=f"{number}", start="now", timeout="3s")
        await clock.travel(200)
    assert events.outcomes() == [Outcome.SUCCEEDED] * 100
    assert [since_start(event.started) for event in events.of(RunStarted)] == [2 * turn for turn in range(100)]


async def test_subtasks_of_newer_runs_keep_no_job_from_a_limit_for_ever(clock):
    """Their parents begin all the time, for they need nothing; their rank goes by the age of their run."""
    async with Scheduler(clock=clock, limits={"x": 1}) as s:

        async def parent():
            return [Subtask(clock.sleep, 1, needs="x") for _ in range(3)]

        for number in range(5):
            s.add(parent, "@every 5s", id=f"{number}")
        job = s.add(answer, "@every 1m", args=(None,), needs="x")
        await clock.travel(1200)
        assert job.statistics().runs >= 9
        s.stop(grace=0)


async def test_subtasks_need_limits_of_their_own(clock):
    """They do not inherit their parent's."""
    async with Scheduler(clock=clock, limits={"outer": 1, "inner": 2}) as s:
        peak = []

        async def child():
            peak.append((s.statistics().limits["inner"].used, s.statistics().limits["outer"].used))
            await clock.sleep(1)

        async def parent():
            return [Subtask(child, needs="inner") for _ in range(6)]

        s.add(parent, "@every 1h", needs="outer", start="now")
        await clock.travel(3)
        assert len(peak) == 6
        assert max(peak) == (2, 0)


async def test_a_subtask_may_be_changed_until_it_is_returned(clock, events):
    """What it needs and how long it may take is asked when the run takes it, of a subclass of one's own too."""

    class Own(Subtask):
        needs = (("small", 1),)

        def __init__(self, func):
            self.func, self.args, self.kwargs, self.call, self.timeout = func, (), {}, Subtask(func).call, None

    async with Scheduler(clock=clock, limits={"small": 1}) as s:
        s.listen(events)
        inside, most = set(), []

        async def sleeps(name):
            inside.add(name)
            most.append(len(inside))
            await clock.sleep(1)
            inside.discard(name)

        async def own():
            await sleeps("own")

        async def parent():
            limited = [Subtask(sleeps, name) for name in "ab"]
            for each in limited:
                each.needs = (("small", 1),)
            return [*limited, Own(own)]

        async def slow_parent():
            timed = Subtask(sleeps, "timed")
            timed.timeout = 0.2
            return timed

        s.add(parent, "@every 1h", id="limited", start="now")
        await clock.travel(5)
        s.add(slow_parent, "@every 1h", id="timed", start="now")
        await clock.travel(5)
        assert most == [1, 1, 1, 1]
        assert events.outcomes("limited") == [Outcome.SUCCEEDED]
        assert events.outcomes("timed") == [Outcome.TIMED_OUT]


async def test_a_failing_subtask_fails_the_run_and_leaves_its_siblings_alone(clock, events):
    """All of them end first; the error is that of the first that raised."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)

        async def child(number):
            await clock.sleep(number)
            if number in (1, 2):
                raise ValueError(number)
            return number

        async def parent():
            return [Subtask(child, number) for number in (3, 2, 1)]

        s.add(parent, "@every 1h", start="now")
        await clock.travel(4)
        (ended,) = events.of(RunEnded)
        assert ended.outcome is Outcome.FAILED
        assert ended.error == "child(1): ValueError: 1"
        assert ended.results == (3,)


async def test_subtasks_know_the_run_they_belong_to(clock):
    """The same tick, however deep."""
    seen = []
    async with Scheduler(clock=clock) as s:

        async def node(depth):
            run = current_run()
            seen.append((run.job_id, run.due, run.attempt))
            return Subtask(node, depth - 1) if depth else None

        s.add(node, "@every 1h", id="a", args=(2,), start="now")
        await clock.travel(0)
        assert len(set(seen)) == 1
        assert len(seen) == 3


async def test_endless_recursion_ends_in_an_error_that_names_the_job(clock, events):
    """After `max_subtasks`; the next run and other jobs are as ever."""
    async with Scheduler(clock=clock, max_subtasks=50) as s:
        s.listen(events)

        async def endless():
            return [Subtask(endless), Subtask(endless)]

        s.add(endless, "@every 1h", id="endless", start="now")
        s.add(answer, "@every 1h", id="other", args=(1,), start="now")
        await clock.travel(0)
        (ended,) = events.of(RunEnded, job_id="endless")
        assert ended.outcome is Outcome.FAILED
        assert "'endless' asked for more than 50 subtasks" in ended.error
        assert "max_subtasks" in ended.error
        assert events.outcomes("other") == [Outcome.SUCCEEDED]
        assert s.statistics().active_tasks == s.statistics().waiting_tasks == 0


async def test_exactly_as_many_subtasks_as_allowed_are_no_error(clock, events):
    """The bound itself is inside."""
    async with Scheduler(clock=clock, max_subtasks=3) as s:
        s.listen(events)

        async def parent():
            return [Subtask(answer, number) for number in range(3)]

        s.add(parent, "@every 1h", start="now")
        await clock.travel(0)
        assert events.outcomes() == [Outcome.SUCCEEDED]


async def test_a_mixed_list_is_a_failure_that_says_what_was_wrong(clock, events):
    """Neither half of it is believed: no subtask runs."""
    begun = []

    async def child():
        begun.append(1)

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(answer, "@every 1h", args=([Subtask(child), 42],), start="now")
        await clock.travel(0)
        (ended,) = events.of(RunEnded)
        assert ended.outcome is Outcome.FAILED
        assert NotASubtask.__name__ in ended.error
        assert "42 among subtasks" in ended.error
        assert begun == []


async def stray(begun):
    """Stand for work that must not get lost."""
    begun.append(1)


async def promised(begun):
    """Is an async generator."""
    yield Subtask(stray, begun)


WRAPPINGS = {
    "generator": lambda begun: (Subtask(stray, begun) for _ in range(3)),
    "async generator": promised,
    "map": lambda begun: map(Subtask, [stray]),
    "coroutine": stray,
    "list of coroutines": lambda begun: [stray(begun), stray(begun)],
    "coroutine among subtasks": lambda begun: [Subtask(stray, begun), stray(begun)],
    "set": lambda begun: {Subtask(stray, begun)},
    "dict": lambda begun: {"a": Subtask(stray, begun)},
    "nested list": lambda begun: [[Subtask(stray, begun)]],
    "deep": lambda begun: {"a": [1, ({"b": frozenset([Subtask(stray, begun)])},)]},
}


@pytest.mark.parametrize("where", ["a job", "a subtask"])
@pytest.mark.parametrize("wrapping", WRAPPINGS.values(), ids=WRAPPINGS)
async def test_work_in_a_wrapping_in_which_nobody_runs_it_is_a_failure(clock, events, wrapping, where):
    """It would be lost without a word. A coroutine among it is closed, or Python would complain in another test."""
    begun = []

    async def task():
        return wrapping(begun)

    async def parent():
        return Subtask(task)

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(task if where == "a job" else parent, "@every 1h", start="now")
        await clock.travel(0)
        (ended,) = events.of(RunEnded)
    assert ended.outcome is Outcome.FAILED
    assert NotASubtask.__name__ in ended.error
    assert "return" in ended.error
    assert begun == []


def in_a_circle():
    """Return a list that holds itself."""
    circle = [1]
    circle.append(circle)
    return circle


@pytest.mark.parametrize(
    "value", [[], {}, set(), {"a": [1, {"b": (2, None)}]}, [[1], [2]], "text", {1, 2}, range(3), Subtask, in_a_circle()]
)
async def test_a_plain_result_stays_a_result(clock, events, value):
    """However it is nested, and even if it is empty."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(answer, "@every 1h", args=(value,), start="now")
        await clock.travel(0)
        (ended,) = events.of(RunEnded)
    assert ended.outcome is Outcome.SUCCEEDED
    assert ended.results[0] is value


async def test_of_a_large_result_only_the_first_things_are_looked_at(clock, events):
    """To look at all of it would hold the loop: what comes later stays a result."""
    looked_at = []

    class Counting(dict):
        def values(self):
            looked_at.append(1)
            return super().values()

    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add(answer, "@every 1h", args=([Counting() for _ in range(5_000)],), start="now")
        await clock.travel(0)
        assert events.outcomes() == [Outcome.SUCCEEDED]
    assert 0 < len(looked_at) <= 1_000


async def test_a_subtask_that_needs_an_unknown_limit_fails_its_run(clock, events):
    """The error names it and what there is."""
    async with Scheduler(clock=clock, limits={"http": 1}) as s:
        s.listen(events)
        s.add(answer, "@every 1h", args=(Subtask(answer, 1, needs="htpp"),), start="now")
        await clock.travel(0)
        (ended,) = events.of(RunEnded)
        assert ended.outcome is Outcome.FAILED
        assert "'htpp'" in ended.error
        assert "http" in ended.error
        assert s.statistics().active_tasks == 0


@pytest.mark.parametrize("timeout", [-1, "soon", float("nan"), 0])
def test_a_senseless_timeout_of_a_subtask_is_refused_where_it_is_made(timeout):
    """In the task that makes it, whose traceback shows the line."""
    with pytest.raises((ScheduleError, ValueError), match=r"timeout|duration"):
        Subtask(answer, 1, timeout=timeout)


def test_a_subtask_of_something_that_cannot_be_called_is_refused():
    """It would fail later, where nobody sees who made it."""
    with pytest.raises((TypeError, ValueError), match="call"):
        Subtask("answer", 1)


async def test_subtasks_of_different_jobs_do_not_mix_up_their_results(clock, events):
    """A thousand at a time, each run gets its own."""
    async with Scheduler(limit=20, clock=clock) as s:
        s.listen(events)

        async def child(job, number):
            await anyio.lowlevel.checkpoint()
            return job, number

        async def parent(job):
            return [Subtask(child, job, number) for number in range(10)]

        for job in range(100):
            s.add(parent, "@every 1h", id=f"{job}", args=(job,), start="now")
        for _ in range(5):
            await clock.travel(0)
        for ended in events.of(RunEnded):
            assert sorted(ended.results) == [(int(ended.job_id), number) for number in range(10)]
        assert len(events.of(RunEnded)) == 100
