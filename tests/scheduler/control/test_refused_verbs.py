"""A verb that is refused has changed nothing: neither here, nor in the store, nor for any listener; from any thread."""

import logging
import threading
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from schedule import At, Every, Missed, ScheduleError
from scheduler import InvalidJob, Overlap, Scheduler, SchedulerError, UnknownLimit
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START

NAIVE = datetime(2030, 1, 1)
LATER = START + timedelta(days=1)
PAST = START - timedelta(days=1)
LONG = "x" * 2_000_000
HALF = "\ud800"


def nothing(*_args, **_kwargs):
    """Take no time."""


async def other():
    """Take no time either."""


def generator():
    """Do nothing when it is called."""
    yield


def both(**options):
    """Refused by `add`, under three rules of conflict, and by `update`."""
    name = ", ".join(f"{name}={str(value)[:20]}" for name, value in options.items())
    return {
        f"add {name}": lambda s: s.add("nothing", "@every 1h", id="new", **options),
        f"add {name} update": lambda s: s.add("nothing", "@every 2h", id="a", on_conflict="update", **options),
        f"add {name} replace": lambda s: s.add("nothing", "@every 2h", id="a", on_conflict="replace", **options),
        f"update {name}": lambda s: s.get("a").update(**options),
        f"update schedule and {name}": lambda s: s.get("a").update(schedule="@every 2h", **options),
    }


REFUSED = {
    **both(needs=5),
    **both(needs="nowhere"),
    **both(needs={"http": 3}),
    **both(timeout=-1, priority=3),
    **both(timeout="400000000d"),
    **both(retry=3),
    **both(overlap="never"),
    **both(overlap=Overlap.REPLACE, missed=Missed.ALL),
    **both(max_running=0),
    **both(grace=-1),
    **both(catch_up=10**9),
    **both(delivery="never"),
    **both(tags=5, needs="unheard"),
    **both(args=5, needs="http"),
    **both(kwargs=5),
    **both(name=5),
    **both(unknown=5),
    **both(inline="yes"),
    **both(inline=1),
    "add durable": lambda s: s.add("nothing", "@every 1h", id="new", durable=0),
    "replace durable": lambda s: s.add("nothing", "@every 2h", id="a", durable="no", on_conflict="replace"),
    "add no id": lambda s: s.add("nothing", "@every 1h", id=""),
    "add an id of a number": lambda s: s.add("nothing", "@every 1h", id=5),
    "add a taken id": lambda s: s.add("nothing", "@every 1h", id="a", tags=["b"]),
    "add no schedule": lambda s: s.add("nothing", b"@every 5s", id="new", needs="http"),
    "add a wrong schedule": lambda s: s.add("nothing", "every monday", id="new"),
    "add a schedule that is over": lambda s: s.add("nothing", At(PAST), id="new", needs="http"),
    "replace by a schedule that is over": lambda s: s.add("nothing", At(PAST), id="a", on_conflict="replace"),
    "update to a schedule that is over": lambda s: s.add("nothing", At(PAST), id="a", on_conflict="update"),
    "add a naive start": lambda s: s.add("nothing", "@every 1h", id="new", start=NAIVE),
    "add a start in words": lambda s: s.add("nothing", "@every 1h", id="new", start="soon"),
    "add an unknown conflict": lambda s: s.add("nothing", "@every 2h", id="a", on_conflict="overwrite"),
    "add an unknown task": lambda s: s.add("nobody", "@every 1h", id="new"),
    "add a generator": lambda s: s.add(generator, "@every 1h", id="new", durable=False),
    "update func": lambda s: s.get("a").update(func=5),
    "update a schedule": lambda s: s.get("a").update(schedule="often", priority=2),
    "update to a schedule without a start": lambda s: s.get("a").update(schedule=At(PAST), priority=2),
    "update start alone": lambda s: s.get("a").update(start="now"),
    "update a naive start": lambda s: s.get("a").update(schedule="@every 2h", start=NAIVE),
    "update start in words": lambda s: s.get("a").update(schedule="@every 2h", start="soon"),
    "pause reason": lambda s: s.get("a").pause(5),
    "pause NUL": lambda s: s.get("a").pause("x\0y"),
    "pause half a character": lambda s: s.get("a").pause(HALF),
    "pause at length": lambda s: s.get("a").pause(LONG),
    "pause naive": lambda s: s.get("a").pause(until=NAIVE),
    "pause past": lambda s: s.get("a").pause(until=PAST),
    "pause until a number": lambda s: s.get("a").pause(until=5),
    "pause all reason": lambda s: s.pause(reason=5),
    "pause all NUL": lambda s: s.pause(reason="x\0y"),
    "pause all at length": lambda s: s.pause(reason=LONG),
    "pause all past": lambda s: s.pause(until=PAST),
    "pause a number": lambda s: s.pause(5),
    "pause a tag NUL": lambda s: s.pause("x\0y"),
    "resume a number": lambda s: s.resume(5),
    "set_next_start naive": lambda s: s.get("a").set_next_start(NAIVE),
    "set_next_start number": lambda s: s.get("a").set_next_start(5),
    "next_starts": lambda s: s.get("a").next_starts(-1),
    "get": lambda s: s.get("nobody"),
    "resize": lambda s: s.resize(0),
    "resize one of two": lambda s: s.resize(limits={"http": 5, "dns": 0}),
    "resize both": lambda s: s.resize(7, {"http": "many"}),
    "register": lambda s: s.register("no name", nothing),
    "register another": lambda s: s.register("nothing", other),
    "register no function": lambda s: s.register("fine", 5),
    "register inline": lambda s: s.register("fine", nothing, inline="yes"),
    "register to replace": lambda s: s.register("nothing", other, replace=1),
    "task": lambda s: s.task("no name")(nothing),
    "listen": lambda s: s.listen(5),
    "stop": lambda s: s.stop(grace="soon"),
    "stop for ever": lambda s: s.stop(grace="400000000d"),
}  # fmt: skip


def snapshot(s, store):
    """All that anybody could see of it."""
    shown = ("id", "func", "args", "kwargs", "call", "schedule", "policy", "tags", "name", "state", "error")
    jobs = [(job, *(getattr(job, name) for name in shown), job.next_start, job.statistics()) for job in s.jobs()]
    counts = s.statistics()
    seen = [jobs, s.pauses(), s.state, counts.limits, counts.missed, sorted(counts.lateness), counts.waiting_tasks]
    seen.append([*s._tasks.names(), s._tasks.name_of(nothing), s._tasks.get("nothing")])
    if store is not None:
        data = store._data
        seen.append((dict(data.jobs), dict(data.pauses), dict(data.states), {**data.ticks}))
        seen.append((counts.store.trouble, counts.store.unsaved))
    return seen


def refuse(s, verb):
    """Call it, and see that it is refused: here and at once."""
    with pytest.raises((SchedulerError, ScheduleError, UnknownLimit, ValueError, TypeError)):
        verb(s)


@pytest.mark.parametrize("place", ["here", "another thread"])
@pytest.mark.parametrize("kind", ["memory", "store"])
async def test_a_refused_verb_has_changed_nothing(clock, events, kind, place):
    """Each verb with each kind of argument that makes no sense."""
    store = None if kind == "memory" else MemoryStore()
    async with Scheduler(clock=clock, store=store, limits={"http": 2, "dns": 2}) as s:
        s.register("nothing", nothing, inline=True)
        s.add("nothing", Every("1h", anchor=START), id="a", args=("x",), tags=["blue"], name="a name", timeout="1m")
        s.add("nothing", Every("1h", anchor=START), id="held")
        s.get("held").pause("for a reason", until=LATER)
        s.pause("green", reason="so that there is one", until=LATER)
        await s.flush()
        await clock.travel(1)
        s.listen(events)
        before = snapshot(s, store)
        for name, verb in REFUSED.items():
            if place == "here":
                refuse(s, verb)
            else:
                await anyio.to_thread.run_sync(refuse, s, verb)
            await clock.travel(0)
            await s.flush()
            assert snapshot(s, store) == before, name
            assert events == [], name
        await clock.travel(3_600)
        assert s.get("a").statistics().successes == 1
        assert s.get("held").statistics().runs == 0


@pytest.mark.parametrize("kind", ["memory", "store"])
async def test_a_refused_verb_before_the_start_has_changed_nothing(clock, events, kind):
    """What is only known to be wrong once the store has been read is another matter."""
    store = None if kind == "memory" else MemoryStore()
    s = Scheduler(clock=clock, store=store, limits={"http": 2, "dns": 2})
    s.register("nothing", nothing, inline=True)
    s.add("nothing", Every("1h", anchor=START), id="a", args=("x",), tags=["blue"], name="a name", timeout="1m")
    s.listen(events)
    before = snapshot(s, store)
    for name, verb in REFUSED.items():
        refuse(s, verb)
        assert snapshot(s, store) == before, name
        assert events == [], name
    async with s:
        await clock.travel(3_600)
        assert s.get("a").statistics().successes == 1


@pytest.mark.parametrize("args", [(datetime(2026, 1, 1, tzinfo=UTC),), (HALF,), ({1: 2},), (LONG,), (float("nan"),)])
async def test_arguments_that_no_store_can_hold_are_refused_and_nothing_has_changed(clock, events, args):
    """By add and by update, with a store."""
    store = MemoryStore()
    async with Scheduler(clock=clock, store=store, limits={"http": 2}) as s:
        s.register("nothing", nothing, inline=True)
        s.add("nothing", Every("1h", anchor=START), id="a")
        await s.flush()
        s.listen(events)
        before = snapshot(s, store)
        for verb in (
            lambda s: s.add("nothing", "@every 1h", id="new", args=args, needs="http"),
            lambda s: s.add("nothing", "@every 2h", id="a", args=args, on_conflict="replace"),
            lambda s: s.add("nothing", "@every 2h", id="a", args=args, on_conflict="update"),
            lambda s: s.get("a").update(args=args, priority=2),
            lambda s: s.get("a").update(schedule="@every 2h", kwargs={"x": args[0]}),
        ):
            refuse(s, verb)
            await anyio.to_thread.run_sync(refuse, s, verb)
            await clock.travel(0)
            await s.flush()
            assert snapshot(s, store) == before
            assert events == []


@pytest.mark.parametrize("kind", ["memory", "store"])
async def test_after_the_end_verbs_are_refused_and_change_nothing(clock, kind):
    """A scheduler runs once."""
    store = None if kind == "memory" else MemoryStore()
    async with Scheduler(clock=clock, store=store) as s:
        s.register("nothing", nothing, inline=True)
        job = s.add("nothing", Every("1h", anchor=START), id="a")
        await s.flush()
    before = snapshot(s, None)
    for verb in (
        lambda s: s.add("nothing", "@every 1h", id="new"),
        lambda s: s.add("nothing", "@every 1h", id="a", on_conflict="replace"),
        lambda s: s.add("nothing", "@every 1h", id="a", on_conflict="update"),
        lambda _: job.run_now(),
        lambda _: job.set_next_start(LATER),
    ):
        refuse(s, verb)
        assert snapshot(s, None) == before


@pytest.mark.parametrize("wrong", [{"needs": 5}, {"args": 5}, {"start": NAIVE}, {"inline": "yes"}, {"tags": 5}])
async def test_an_add_that_is_refused_takes_no_number(clock, wrong):
    """Jobs without an id are numbered as they come; a number that a job had comes again for none."""
    async with Scheduler(clock=clock) as s:
        assert s.add(nothing, "@every 1h").id == "job-1"
        for _ in range(3):
            refuse(s, lambda s: s.add(nothing, "@every 1h", **wrong))
        job = s.add(nothing, "@every 1h")
        assert job.id == "job-2"
        job.remove()
        assert s.add(nothing, "@every 1h").id == "job-3"


ONE = {"overlap": Overlap.REPLACE}
OTHER = {"missed": Missed.ALL}


def in_a_thread(*calls):
    """Call them in another thread, one after another, while the loop stands still. What they raised."""
    raised = []

    def call_all():
        for call in calls:
            try:
                call()
            except SchedulerError as error:
                raised.append(error)
            else:
                raised.append(None)

    thread = threading.Thread(target=call_all)
    thread.start()
    thread.join()
    return raised


@pytest.fixture
def errors(caplog):
    """What was logged as an error."""
    return lambda: [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("kind", ["memory", "store"])
@pytest.mark.parametrize(("first", "second"), [(ONE, OTHER), (OTHER, ONE)])
async def test_of_two_updates_that_do_not_fit_together_the_second_is_refused(clock, errors, kind, first, second):
    """In the thread that asks, though the first has not been applied yet; and what fits is applied."""
    store = None if kind == "memory" else MemoryStore()
    async with Scheduler(clock=clock, store=store) as s:
        s.register("nothing", nothing, inline=True)
        job = s.add("nothing", Every("1h", anchor=START), id="a")
        calls = [lambda: job.update(**first), lambda: job.update(**second), lambda: job.update(priority=2)]
        assert list(map(type, in_a_thread(*calls))) == [type(None), InvalidJob, type(None)]
        await clock.travel(0)
        assert {name: getattr(job.policy, name) for name in first} == first
        assert {name: getattr(job.policy, name) for name in second} != second
        assert job.policy.priority == 2
        assert errors() == []
        await clock.travel(1)
        job.update(**dict.fromkeys(first, Overlap.SKIP if first is ONE else Missed.LATEST), **second)
        assert {name: getattr(job.policy, name) for name in second} == second


async def test_an_update_on_the_loop_leaves_those_that_were_asked_for_before_possible(clock, errors):
    """It is applied before them."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, Every("1h", anchor=START), id="a")
        assert in_a_thread(lambda: job.update(**ONE)) == [None]
        with pytest.raises(InvalidJob, match="choose one of them"):
            job.update(**OTHER)
        job.update(priority=2)
        await clock.travel(0)
        assert (job.policy.overlap, job.policy.missed, job.policy.priority) == (Overlap.REPLACE, Missed.LATEST, 2)
        assert errors() == []


async def test_an_update_after_an_add_that_updates_is_checked_against_what_that_makes(clock, errors):
    """As if it had been applied already."""
    async with Scheduler(clock=clock) as s:
        job = s.add(nothing, Every("1h", anchor=START), id="a", **ONE)
        renew = [lambda: s.add(nothing, Every("1h", anchor=START), id="a", on_conflict="update", **OTHER)]
        assert list(map(type, in_a_thread(*renew, lambda: job.update(**ONE)))) == [type(None), InvalidJob]
        await clock.travel(0)
        assert (job.policy.overlap, job.policy.missed) == (Overlap.SKIP, Missed.ALL)
        assert errors() == []


async def test_two_updates_before_the_start_that_do_not_fit_together(clock, errors):
    """The second is refused at once, though nothing is applied before the store has been read."""
    s = Scheduler(clock=clock, store=MemoryStore())
    s.register("nothing", nothing, inline=True)
    job = s.add("nothing", Every("1h", anchor=START), id="a")
    job.update(**ONE)
    with pytest.raises(InvalidJob, match="choose one of them"):
        job.update(**OTHER)
    async with s:
        await clock.travel(3_600)
        assert (job.policy.overlap, job.policy.missed) == (Overlap.REPLACE, Missed.LATEST)
        assert job.statistics().successes == 1
        assert errors() == []


async def test_an_update_that_does_not_fit_what_stands_in_the_store_ends_alone(clock, errors):
    """Nobody could know when it was asked for: the job stays as its row says, and an error tells."""
    store = MemoryStore()
    for takes_back in (False, True):
        s = Scheduler(clock=clock, store=store.another())
        s.register("nothing", nothing, inline=True)
        job = s.add("nothing", Every("1h", anchor=START), id="a", on_conflict="keep", **({} if takes_back else OTHER))
        if takes_back:
            job.update(**ONE)
        async with s:
            await clock.travel(3_600)
            assert (job.policy.overlap, job.policy.missed) == (Overlap.SKIP, Missed.ALL)
            assert job.statistics().runs == takes_back + 1
        assert [text for text in errors() if "'a' is not updated" in text] == errors()
        assert len(errors()) == takes_back


async def test_an_update_beside_one_that_changes_the_function_keeps_its_name_in_the_store(clock):
    """Each changes what it names, and no more."""
    store = MemoryStore()
    async with Scheduler(clock=clock, store=store) as s:
        s.register("nothing", nothing, inline=True)
        s.register("other", other)
        job = s.add("nothing", Every("1h", anchor=START), id="a")
        assert in_a_thread(lambda: job.update(func="other"), lambda: job.update(priority=2)) == [None, None]
        await clock.travel(0)
        await s.flush()
        ((row, _),) = [each for chunk in store.load() for each in chunk]
        assert (job.func, row.task, job.policy.priority) == (other, "other", 2)
