"""Many jobs are added in one call: each as `add` would have added it, all of them or none."""

import gc
import itertools
from datetime import timedelta
from decimal import Decimal

import anyio
import pytest
from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync

from kit import PATIENCE, Recorder, lines_of, nothing, until
from schedule import After, Cron, Every, Schedule
from scheduler import (
    AlreadyStopped,
    DuplicateJob,
    InvalidJob,
    JobAdded,
    JobChanged,
    NewJob,
    Overlap,
    ScheduleError,
    Scheduler,
    UnknownLimit,
    UnknownTask,
)
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START

GOOD = ("good", "@every 10s")


def what_it_is(job):
    """Return all that a handle says of its job."""
    said = (job.id, job.schedule, job.args, job.kwargs, job.name, job.tags, job.policy, job.state, job.error)
    return *said, job.next_start, job.next_starts(2)


def what_there_is(s):
    """Return what may not change when a call is refused."""
    return [what_it_is(job) for job in s.jobs()], s.statistics()


ALIKE = {
    "the id and the schedule": (("a", "@every 10s"), {}),
    "arguments": (("a", "@every 10s", (1, 2)), {"args": (1, 2)}),
    "a list of arguments": (("a", "@every 10s", [1, 2]), {"args": [1, 2]}),
    "keywords": (("a", "@every 10s", (), {"n": 1}), {"kwargs": {"n": 1}}),
    "a list instead of a tuple": (["a", "@every 10s", [1]], {"args": [1]}),
    "a name and tags": (NewJob("a", "@every 10s", name="A", tags=["web"]), {"name": "A", "tags": ["web"]}),
    "one tag": (NewJob("a", "@every 10s", tags="web"), {"tags": "web"}),
    "no id": ((None, "@every 10s"), {"id": None}),
}


@pytest.mark.parametrize(("new", "added"), ALIKE.values(), ids=ALIKE)
async def test_what_is_said_of_one_of_many_means_what_it_means_to_add(clock, new, added):
    """Positions are those of `add`, id first; a NewJob has names for them."""
    one, many = Scheduler(clock=clock), Scheduler(clock=clock)
    expected = one.add(nothing, "@every 10s", **{"id": "a", **added})
    (job,) = many.add_many(nothing, [new])
    assert what_it_is(job) == what_it_is(expected)
    assert many.jobs() == [job]
    assert many.get(job.id) is job


SCHEDULES = {
    "a grid": Every("10s"),
    "a grid of its own": Every("10s", anchor=START),
    "a grid with jitter": Every("10s", jitter="2s"),
    "counted from the end": After("10s"),
    "cron": Cron("*/5 * * * *"),
    "a place by hash": "H * * * *",
    "text": "@every 10s",
    "once": "@at 2100-01-01T00:00:00Z",
}
OPTIONS = {
    "by default": {},
    "now": {"start": "now"},
    "at an instant": {"start": START + timedelta(minutes=7)},
    "with options": {"timeout": 5, "overlap": Overlap.ALLOW, "priority": 3, "needs": "disk"},
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
async def test_each_of_many_starts_when_it_would_have_started_alone(clock, schedule, options):
    """Its phase, its jitter and its first start are those of its own id."""
    limits = {"disk": 2}
    one, many = Scheduler(clock=clock, limits=limits), Scheduler(clock=clock, limits=limits)
    expected = [one.add(nothing, schedule, id=id, **options) for id in "abc"]
    jobs = many.add_many(nothing, [(id, schedule) for id in "abc"], **options)
    assert [what_it_is(job) for job in jobs] == [what_it_is(job) for job in expected]


async def test_many_jobs_run_each_with_its_own_arguments(clock):
    """Beside each other, as ever."""
    ran = []

    async def work(number, *, unit="s"):
        ran.append((number, unit))

    async with Scheduler(clock=clock) as s:
        s.add_many(work, [("a", "@every 10s", (1,)), ("b", "@every 10s", (2,), {"unit": "m"})], start="now")
        s.add_many(work, ((f"c-{number}", "@every 10s", (number,)) for number in (3, 4)), start="now")
        await clock.travel(0)
        assert ran == [(1, "s"), (2, "m"), (3, "s"), (4, "s")]
        await clock.travel(20)
        assert sorted(set(ran)) == [(1, "s"), (2, "m"), (3, "s"), (4, "s")]
        assert len(ran) > 8


async def test_the_tags_of_the_call_are_those_of_all(clock):
    """Each has its own beside them, and a pause of a tag that they share holds all."""
    async with Scheduler(clock=clock) as s:
        s.pause("shop", reason="moving")
        first, second = s.add_many(nothing, [GOOD, NewJob("b", "@every 10s", tags={"web"})], tags="shop")
        assert (first.tags, second.tags) == ({"shop"}, {"shop", "web"})
        assert [job.error for job in (first, second)] == ["tag 'shop' is paused: moving"] * 2
        assert [job.next_start for job in (first, second)] == [None, None]
        s.resume("shop")
        assert None not in [job.next_start for job in (first, second)]


async def test_listeners_hear_of_each_job_in_their_order(clock, events):
    """As if they had been added one by one."""
    async with Scheduler(clock=clock) as s:
        s.listen(events)
        s.add_many(nothing, [(id, "@every 10s") for id in "cab"])
        assert [event.job_id for event in events.of(JobAdded)] == ["c", "a", "b"]


WRONG = {
    "no job": ("good", InvalidJob, r"it must be a NewJob, or a tuple such as \(id, schedule\)"),
    "no schedule": (("a",), InvalidJob, r"it must be a NewJob.*not \('a',\)"),
    "too much": (("a", "@every 1s", (), None, None, (), 7), InvalidJob, "it must be a NewJob"),
    "a mapping": ({"id": "a"}, InvalidJob, "it must be a NewJob"),
    "an empty id": (("", "@every 1s"), InvalidJob, "id must be a text with something in it"),
    "a number for an id": ((7, "@every 1s"), InvalidJob, "id must be a text"),
    "a schedule that cannot be read": (("a", "@every"), ScheduleError, "cannot read the schedule '@every'"),
    "bytes for a schedule": (("a", b"@every 1s"), InvalidJob, "schedule must be a Schedule"),
    "what never starts": (("a", "@at 2000-01-01T00:00:00Z"), InvalidJob, r"@at 2000-\S+ has no start after now"),
    "a text for arguments": (("a", "@every 1s", "xyz"), InvalidJob, "args must be a tuple or list"),
    "a list for keywords": (("a", "@every 1s", (), [1]), InvalidJob, "kwargs must be a mapping"),
    "a number for a name": (NewJob("a", "@every 1s", name=7), InvalidJob, "name must be a text"),
    "a number for tags": (NewJob("a", "@every 1s", tags=7), InvalidJob, "tags must be texts"),
    "an id that is taken": (("taken", "@every 1s"), DuplicateJob, "there is a job 'taken' already"),
    "an id that comes twice": (("good", "@every 1s"), DuplicateJob, r"its id 'good' is that of jobs\[0\] too"),
}


@pytest.mark.parametrize(("wrong", "error", "text"), WRONG.values(), ids=WRONG)
async def test_one_wrong_job_refuses_all_of_them_and_is_named(clock, events, wrong, error, text):
    """The error is the one of `add`, with the index; nothing has changed, and nobody is told of anything."""
    s = Scheduler(clock=clock)
    s.add(nothing, "@every 1h", id="taken")
    s.listen(events)
    before = what_there_is(s)
    with pytest.raises(error, match=rf"^jobs\[2\]: {text}"):
        s.add_many(nothing, [GOOD, ("fine", "@every 1s"), wrong, ("last", "@every 1s")])
    assert what_there_is(s) == before
    assert events == []


REFUSED = {
    "a text": (("a", "@every 1s"), {}, InvalidJob, r"jobs\[0\]: it must be a NewJob"),
    "a mapping": ({"a": "@every 1s"}, {}, InvalidJob, "^jobs must be a list of jobs"),
    "nothing": (None, {}, InvalidJob, "^jobs must be a list of jobs"),
    "an option that makes no sense": ([GOOD], {"timeout": -1}, InvalidJob, "^timeout"),
    "an unknown limit": ([GOOD], {"needs": "gpu"}, UnknownLimit, "gpu"),
    "an answer that there is not": ([GOOD], {"on_conflict": "merge"}, InvalidJob, "^on_conflict must be"),
    "a start for other schedules": ([("a", "0 0 * * *")], {"start": "phase"}, InvalidJob, r"^jobs\[0\]: start="),
    "a naive start": ([GOOD], {"start": START.replace(tzinfo=None)}, InvalidJob, r"^jobs\[0\]: start must be"),
    "tags that are none": ([GOOD], {"tags": 7}, InvalidJob, "^tags must be texts"),
}


@pytest.mark.parametrize(("jobs", "options", "error", "text"), REFUSED.values(), ids=REFUSED)
async def test_what_makes_no_sense_for_all_is_refused_in_the_words_of_add(clock, jobs, options, error, text):
    """Nothing has changed; a kind of job that was never added does not show up in the statistics."""
    s = Scheduler(clock=clock, limits={"disk": 1})
    before = what_there_is(s)
    with pytest.raises(error, match=text):
        s.add_many(nothing, jobs, **options)
    assert what_there_is(s) == before


async def test_a_function_that_is_none_is_refused_before_the_jobs_are_looked_at(clock):
    """As in `add`."""
    s = Scheduler(clock=clock)
    jobs = iter([GOOD])
    with pytest.raises(InvalidJob, match="func must be something that can be called"):
        s.add_many(7, jobs)
    assert next(jobs) is GOOD


async def test_an_error_of_the_callers_own_generator_goes_through_and_adds_nothing(clock):
    """It is no error of ours."""

    def jobs():
        yield GOOD
        raise KeyError("mine")

    s = Scheduler(clock=clock)
    with pytest.raises(KeyError, match="mine"):
        s.add_many(nothing, jobs())
    assert s.jobs() == []


async def test_no_jobs_are_none(clock):
    """An empty list is no mistake."""
    async with Scheduler(clock=clock) as s:
        assert s.add_many(nothing, []) == []


async def test_after_stop_nothing_can_be_added(clock):
    """As in `add`."""
    s = Scheduler(clock=clock)
    s.stop()
    for jobs in ([GOOD], []):
        with pytest.raises(AlreadyStopped):
            s.add_many(nothing, jobs)


async def test_jobs_that_are_there_may_be_kept(clock):
    """The answer has the one that is there in its place, and the others are added."""
    s = Scheduler(clock=clock)
    there = s.add(nothing, "@every 1h", id="b")
    a, b, c = s.add_many(nothing, [(id, "@every 10s") for id in "abc"], on_conflict="keep")
    assert b is there
    assert b.schedule == Every("1h")
    assert s.jobs() == [b, a, c]


async def test_jobs_that_are_there_may_be_updated(clock):
    """They stay the same jobs, with another schedule and other arguments."""
    s = Scheduler(clock=clock)
    there = s.add(nothing, "@every 1h", id="b")
    a, b = s.add_many(nothing, [("a", "@every 10s"), ("b", "@every 10s", (1,))], on_conflict="update")
    assert b is there
    assert (b.schedule, b.args) == (Every("10s"), (1,))
    assert a.args == ()


async def test_jobs_that_are_there_may_be_replaced(clock):
    """They are gone, and others have their ids."""
    s = Scheduler(clock=clock)
    there = s.add(nothing, "@every 1h", id="b")
    _, b = s.add_many(nothing, [("a", "@every 10s"), ("b", "@every 10s")], on_conflict="replace")
    assert b is not there
    assert s.get("b") is b
    assert there not in s.jobs()


async def test_an_update_that_one_job_cannot_have_changes_none(clock):
    """A job that is stored cannot become one that is not: the one before it stays as it is too."""
    async with Scheduler(clock=clock, store=MemoryStore()) as s:
        s.register("work", nothing)
        s.add("work", "@every 1h", id="stored")
        loose = s.add(nothing, "@every 1h", id="loose", durable=False)
        await s.flush()
        with pytest.raises(InvalidJob, match=r"^jobs\[1\]: job 'stored' is stored"):
            s.add_many(nothing, [("loose", "@every 1s"), ("stored", "@every 1s")], on_conflict="update", durable=False)
        assert loose.schedule == Every("1h")


@pytest.mark.parametrize("is_early", [False, True], ids=["while it runs", "before the store has been read"])
async def test_many_stored_jobs_are_there_after_a_restart(clock, is_early):
    """With their arguments and their next starts."""
    store = MemoryStore()
    s = Scheduler(clock=clock, store=store)
    s.register("work", nothing)
    new = [("a", "@every 10s", [1, {"x": 2}]), NewJob("b", "0 0 * * *", kwargs={"n": 1}, name="B", tags=["web"])]
    if is_early:
        s.add_many("work", new)
    async with s:
        if not is_early:
            s.add_many("work", new)
        await s.flush()
        before = [what_it_is(job) for job in s.jobs()]
        s.stop(grace=0)
    again = Scheduler(clock=clock, store=store)
    again.register("work", nothing)
    async with again:
        assert [what_it_is(job) for job in sorted(again.jobs(), key=lambda job: job.id)] == before
        assert all(job.task == "work" for job in again.jobs())


async def test_what_is_stored_is_no_business_of_the_caller_any_more(clock):
    """Whatever becomes of the list that was given, the job is called with what it was."""
    async with Scheduler(clock=clock, store=MemoryStore()) as s:
        s.register("work", nothing)
        given = [1]
        (job,) = s.add_many("work", [("a", "@every 10s", (given,))])
        given.append(2)
        assert job.args == ([1],)


class Mine(Schedule):
    """A schedule that no store knows."""

    def next(self, after):
        return after + timedelta(days=1)


UNSTORABLE = {
    "no id": ((None, "@every 1s"), "a stored job needs an id"),
    "an argument that JSON does not know": (("a", "@every 1s", (object(),)), "args"),
    "a schedule of one's own": (("a", Mine()), "schedule"),
    "an id that cannot be shown": (("a\n", "@every 1s"), "id must be 1 to 512 printable characters"),
}


@pytest.mark.parametrize(("wrong", "text"), UNSTORABLE.values(), ids=UNSTORABLE)
async def test_one_that_cannot_be_stored_refuses_all(clock, wrong, text):
    """Nothing of the others reaches the store."""
    store = MemoryStore()
    async with Scheduler(clock=clock, store=store) as s:
        s.register("work", nothing)
        with pytest.raises(InvalidJob, match=rf"^jobs\[1\]: {text}"):
            s.add_many("work", [GOOD, wrong])
        await s.flush()
        assert s.jobs() == []
    store.open(0, lambda: None)
    assert list(itertools.chain(*store.load())) == []


async def test_a_task_that_nobody_has_registered_is_named(clock):
    """As in `add`."""
    async with Scheduler(clock=clock, store=MemoryStore()) as s:
        with pytest.raises(UnknownTask, match="'work'"):
            s.add_many("work", [GOOD])


async def test_many_jobs_are_added_from_another_thread(clock):
    """They start in the loop's."""
    ran = []

    async def work(number):
        ran.append(number)

    async with Scheduler(clock=clock) as s:
        jobs = [(f"job-{number}", "@every 10s", (number,)) for number in range(50)]
        added = await run_sync(lambda: s.add_many(work, jobs))
        assert s.jobs() == added
        await clock.travel(10)
        assert sorted(ran) == list(range(50))


@pytest.mark.parametrize(
    ("schedule", "share"), [(Every("1h"), 0.8), ("@every 1h", 0.7)], ids=["one schedule", "its text"]
)
@pytest.mark.parametrize("is_stored", [False, True], ids=["in memory", "stored"])
async def test_one_of_many_takes_fewer_steps_than_one_alone(clock, schedule, is_stored, share):
    """Lines of Python are counted, no time is taken."""
    number = 200
    lines = []
    for add_all in (
        lambda s: [s.add(nothing, schedule, id=f"job-{index}") for index in range(number)],
        lambda s: s.add_many(nothing, [(f"job-{index}", schedule) for index in range(number)]),
    ):
        async with Scheduler(clock=clock, store=MemoryStore() if is_stored else None) as s:
            s.register("nothing", nothing)
            lines.append(lines_of(add_all, s))
    alone, together = lines
    assert together < share * alone


HOURLY = Every("1h", jitter="1m")
SAME = [
    ("a", "@every 10s", (1,)),
    ("b", Cron("H * * * *"), (), {"n": [1]}),
    NewJob("c", HOURLY, tags="t"),
]
OTHER = {
    "schedule": ("a", "@every 20s", (1,)),
    "arguments": ("a", "@every 10s", (2,)),
    "keywords": ("b", "H * * * *", (), {"n": [1, 2]}),
    "tags": NewJob("c", HOURLY, tags="u"),
    "name": NewJob("a", "@every 10s", (1,), name="A"),
}


def fields_of(job):
    """Return what an update may change of a job."""
    return job.id, str(job.schedule), job.args, dict(job.kwargs), job.name, job.tags, job.policy


@pytest.mark.parametrize("is_stored", [False, True], ids=["in memory", "stored"])
async def test_jobs_that_are_there_as_they_are_to_be_are_not_touched(clock, is_stored):
    """A service says all its jobs each minute. Nothing is written, told or planned for those that stay."""
    store = MemoryStore() if is_stored else None
    async with Scheduler(clock=clock, store=store) as s:
        s.register("work", nothing)
        before = s.add_many("work", SAME, timeout=5)
        await s.flush()
        told = Recorder()
        s.listen(told)
        starts = [job.next_start for job in before]

        assert s.add_many("work", SAME, timeout=5, on_conflict="update") == before
        assert await run_sync(lambda: s.add_many("work", SAME, timeout=5, on_conflict="update")) == before

        assert s.statistics().store is None or s.statistics().store.unsaved == 0
        assert told == []
        assert [job.next_start for job in before] == starts


@pytest.mark.parametrize("is_stored", [False, True], ids=["in memory", "stored"])
@pytest.mark.parametrize("other", OTHER.values(), ids=OTHER)
async def test_a_job_that_differs_is_changed_among_those_that_do_not(clock, is_stored, other):
    """In whatever it differs; and new ones are added beside them, in the order in which all were given."""
    given = [other if job[0] == other[0] else job for job in SAME]
    store = MemoryStore() if is_stored else None
    async with Scheduler(clock=clock, store=store) as s, Scheduler(clock=clock) as fresh:
        s.register("work", nothing)
        s.add_many("work", SAME)
        expected = fresh.add_many(nothing, [*given, GOOD])
        found = s.add_many("work", [*given, GOOD], on_conflict="update")
        assert [fields_of(job) for job in found] == [fields_of(job) for job in expected]
        assert s.jobs() == found


@pytest.mark.parametrize(
    ("before", "after"),
    [(1, True), (True, 1), (1, 1.0), (0, False), (0.0, -0.0), ([1], [True]), ({"a": [0]}, {"a": [0.0]})],
)
async def test_equal_arguments_that_json_tells_apart_are_a_change(clock, before, after):
    """Python calls them equal, and the task sees the difference: as `add` compares them."""
    async with Scheduler(clock=clock) as s:
        jobs = s.add_many(nothing, [("a", "@every 1h", (before,)), ("b", "@every 1h", (), {"x": before})])
        s.add_many(nothing, [("a", "@every 1h", (after,)), ("b", "@every 1h", (), {"x": after})], on_conflict="update")
        assert [repr(jobs[0].args), repr(jobs[1].kwargs["x"])] == [repr((after,)), repr(after)]


async def test_equal_arguments_of_any_kind_are_no_change(clock):
    """Objects, empty values and dicts in another order."""
    some = Decimal(7)
    told, given = (
        Recorder(),
        [
            ("a", "@every 1h", (some, 0, 0.0, "", None, False, [], {"a": 1, "b": [2.5]})),
            ("b", "@every 1h", (Decimal(8),), {"x": 1, "y": Decimal(9)}),
        ],
    )
    same = [
        ("a", "@every 1h", (some, 0, 0.0, "", None, False, [], {"b": [2.5], "a": 1})),
        ("b", "@every 1h", (Decimal(8),), {"y": Decimal(9), "x": 1}),
    ]
    async with Scheduler(clock=clock) as s:
        jobs = s.add_many(lambda *_, **__: None, given)
        s.listen(told)
        s.add_many(jobs[0].func, same, on_conflict="update")
        assert told == []


async def test_options_of_the_call_change_each_job(clock):
    """Another timeout, another function, and back: what all have in common is compared too."""
    async with Scheduler(clock=clock) as s:
        jobs = s.add_many(nothing, SAME)
        s.add_many(nothing, SAME, timeout=7, on_conflict="update")
        assert {job.policy.timeout for job in jobs} == {7.0}
        s.add_many(int, SAME, timeout=7, on_conflict="update")
        assert {job.func for job in jobs} == {int}


async def test_a_job_that_is_to_become_something_else_is_said_anew(clock):
    """Its change waits for the loop, and what is said after it holds."""
    async with Scheduler(clock=clock) as s:
        jobs = s.add_many(nothing, SAME)

        def update_and_say_again():
            jobs[0].update(args=(9,))
            s.add_many(nothing, SAME, on_conflict="update")

        await run_sync(update_and_say_again)
        await until(lambda: not s._registry.updates.is_asked(jobs[0]))
        assert jobs[0].args == (1,)


async def test_an_unchanged_job_costs_few_steps_and_no_memory(clock):
    """Lines of Python are counted, and objects: it was five times as many, and memory rose with each call."""
    number = 300
    async with Scheduler(clock=clock, store=MemoryStore()) as s:
        s.register("work", nothing)

        def say():
            s.add_many("work", [(f"job-{n}", "@every 1h", (n,)) for n in range(number)], on_conflict="update")

        say()
        await s.flush()
        say()
        gc.collect()
        before = len(gc.get_objects())
        lines = lines_of(say)
        gc.collect()
        assert len(gc.get_objects()) - before < number
        assert lines < 60 * number


def args_in(store):
    """The arguments of all jobs that are stored, by their ids."""
    return {row.id: row.args for chunk in store.load() for row, _ in chunk}


@pytest.mark.parametrize("is_stored", [False, True], ids=["in memory", "stored"])
async def test_jobs_that_another_thread_changes_change_a_few_at_a_time(is_stored):
    """The loop stood still until the last of them was another one: for three seconds, with 50,000 jobs."""
    number, found = 3_000, []
    async with Scheduler(store=MemoryStore() if is_stored else None) as s:
        s.register("work", nothing)
        jobs = s.add_many("work", [(f"job-{n}", "@every 1h", (n,)) for n in range(number)])
        beside = s.add("work", "@every 1h", id="beside")
        s.listen(lambda event: found.append(event.job_id), JobChanged)
        given = [(f"job-{n}", "@every 2h", (n,)) for n in range(number)]
        await run_sync(lambda: s.add_many("work", given, on_conflict="update"))
        with anyio.fail_after(PATIENCE):
            while not found:
                await checkpoint()
            await beside.run_now()
            assert len(found) < number  # a run came between
            await s.flush() if is_stored else await until(lambda: len(found) == number)
        assert found == [job.id for job in jobs]
        assert {job.schedule for job in jobs} == {Every("2h")}


async def test_what_is_asked_of_a_job_that_is_about_to_change_comes_after_that():
    """On the loop and in other threads; and it is what is stored."""
    number, store = 1_000, MemoryStore()
    async with Scheduler(store=store) as s:
        s.register("work", nothing)
        jobs = s.add_many("work", [(f"job-{n}", "@every 1h") for n in range(number)])

        def say_and_update():
            s.add_many("work", [(f"job-{n}", "@every 1h", (n,)) for n in range(number)], on_conflict="update")
            jobs[-1].update(args=("by a thread",))

        await run_sync(say_and_update)
        jobs[-2].update(args=("on the loop",))
        jobs[-3].remove()
        await s.flush()
        assert [job.args for job in jobs[-2:]] == [("on the loop",), ("by a thread",)]
        assert jobs[0].args == (0,)
        assert args_in(store)["job-998"] == '["on the loop"]'
        assert args_in(store)["job-999"] == '["by a thread"]'
        assert len(args_in(store)) == number - 1


async def test_jobs_that_were_to_change_as_the_scheduler_stopped_have_changed():
    """What was asked for before the stop is stored."""
    number, store = 1_000, MemoryStore()
    async with Scheduler(store=store) as s:
        s.register("work", nothing)
        s.add_many("work", [(f"job-{n}", "@every 1h") for n in range(number)])
        given = [(f"job-{n}", "@every 1h", (n,)) for n in range(number)]
        await run_sync(lambda: s.add_many("work", given, on_conflict="update"))
    assert args_in(store) == {f"job-{n}": f"[{n}]" for n in range(number)}
