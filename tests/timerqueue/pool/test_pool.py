"""A task group with room for so many at a time: who runs, who waits, and how each ends."""

import asyncio
import gc
import itertools
import logging
import math
import random
import weakref
from collections import Counter
from contextvars import ContextVar
from functools import partial

import anyio
import pytest
from anyio.lowlevel import cancel_shielded_checkpoint, checkpoint

from kit import nothing, settle
from timerqueue import LifecycleError, TaskPool, UnknownLimit, Work, needs_of
from timerqueue.testing import ManualClock

variable = ContextVar("variable", default="untouched")

asyncio_only = pytest.mark.parametrize("anyio_backend", ["asyncio"])
both_backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])


class Gate:
    """Tasks that come in, are counted, and wait until they are let out."""

    def __init__(self):
        self.inside = []
        self.left = []
        self.opened = anyio.Event()

    async def enter(self, name=None):
        self.inside.append(name)
        try:
            await self.opened.wait()
            self.left.append(name)
        finally:
            self.inside.remove(name)


class Told(Work):
    """Work that notes what it is told."""

    def __init__(self, func, *args, needs=()):
        super().__init__(needs)
        self.func = func
        self.args = args
        self.told = []

    def open(self, now):
        self.told.append("open")
        return self.func(*self.args)

    def close(self, value, error, now):
        self.told.append(type(error).__name__ if error is not None else value)

    def drop(self):
        self.told.append("drop")


def leaves(error):
    """List the errors in a group of groups."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in leaves(each)]
    return [error]


# Running and waiting


async def test_what_is_started_runs_once_with_its_arguments():
    """Before anybody has to wait for anything."""
    calls = []

    async def task(*args):
        calls.append(args)

    async with TaskPool() as pool:
        pool.start_soon(task, 1, "two")
        assert calls == []
        await settle()
        assert calls == [(1, "two")]


async def test_what_is_started_early_waits_for_the_pool_to_be_entered():
    """As jobs are added to a scheduler before it runs."""
    gate = Gate()
    pool = TaskPool(1)
    for name in "ab":
        pool.start_soon(gate.enter, name)
    await settle()
    assert (gate.inside, pool.active, pool.waiting) == ([], 1, 1)
    async with pool:
        gate.opened.set()
    assert gate.left == ["a", "b"]


async def test_anything_that_can_be_awaited_can_be_run():
    """A coroutine is the usual case and not the only one."""
    ran = []

    class Awaitable:
        def __await__(self):
            yield from checkpoint().__await__()
            ran.append("awaited")

    async with TaskPool() as pool:
        pool.start_soon(Awaitable)
        pool.start_soon(partial(nothing))
    assert ran == ["awaited"]


async def test_no_more_than_its_capacity_run():
    """The rest waits, in order, and is counted."""
    gate = Gate()
    async with TaskPool(2) as pool:
        for name in "abcde":
            pool.start_soon(gate.enter, name)
        await settle()
        assert gate.inside == ["a", "b"]
        assert (pool.active, pool.waiting) == (2, 3)
        gate.opened.set()
    assert sorted(gate.left) == list("abcde")
    assert (pool.active, pool.waiting) == (0, 0)


async def test_a_full_limit_holds_up_no_other():
    """Work that needs something else goes past."""
    gate = Gate()
    async with TaskPool(10, {"http": 1, "server:*": 1}) as pool:
        for needs in ("http", "http", "server:1", "server:1", "server:2", ()):
            pool.start_soon(gate.enter, needs, needs=needs)
        await settle()
        assert gate.inside == ["http", "server:1", "server:2", ()]
        assert {name: (each.used, each.waiting) for name, each in pool.statistics().limits.items()} == {
            "http": (1, 1),
            "server:1": (1, 1),
            "server:2": (1, 0),
        }
        gate.opened.set()
    assert set(pool.statistics().limits) == {"http"}


async def test_an_unknown_limit_is_refused_and_costs_nothing():
    """The misspelt name is an error where it was written."""
    async with TaskPool(limits={"http": 1}) as pool:
        with pytest.raises(UnknownLimit, match="'htpp'"):
            pool.start_soon(nothing, needs="htpp")
        with pytest.raises(ValueError, match="never room for 2"):
            pool.start_soon(nothing, needs={"http": 2})
        assert pool.active == 0


@pytest.mark.parametrize("size", [0, -1, 1.5, math.nan, True, "1"])
@pytest.mark.parametrize("name", ["capacity", "http"])
def test_a_size_that_means_nothing_is_refused(name, size):
    """When the pool is made and when it is resized."""
    sizes = {"capacity": size} if name == "capacity" else {"limits": {"http": size}}
    with pytest.raises(ValueError, match=f"{name} must be a whole number from 1"):
        TaskPool(**sizes)
    with pytest.raises(ValueError, match=f"{name} must be a whole number from 1"):
        TaskPool().resize(**sizes)


@pytest.mark.parametrize("seed", range(5))
async def test_limits_hold_in_a_crowd(seed):
    """Whatever comes, waits, fails and is cancelled in whatever order."""
    chance = random.Random(seed)
    sizes = {"a": 3, "b": 1, "server:1": 2, "server:2": 2}
    used, worst = Counter(), Counter()

    async def task(needs):
        taken = Counter({**needs, "capacity": 1})
        used.update(taken)
        try:
            worst.update({name: max(0, used[name] - worst[name]) for name in taken})
            for _ in range(chance.randrange(4)):
                await checkpoint()
            if chance.random() < 0.1:
                raise ValueError
        finally:
            used.subtract(taken)

    async with TaskPool(5, {"a": 3, "b": 1, "server:*": 2}) as pool:
        works = []
        for _ in range(400):
            needs = {
                name: chance.choice([1, 1, sizes[name]]) for name in chance.sample(list(sizes), chance.randrange(3))
            }
            works.append(pool.start_soon(task, needs, needs=needs, priority=chance.randrange(3)))
            if chance.random() < 0.3:
                pool.cancel(chance.choice(works))
            if chance.random() < 0.3:
                await checkpoint()
    assert worst == {"capacity": 5, **sizes}
    assert (pool.active, pool.waiting, set(pool.statistics().limits)) == (0, 0, {"a", "b"})


# Order


async def start_in_turn(pool, clock, *tasks):
    """Fill a pool of one, let the tasks come in with pauses, and return the order in which they ran."""
    order, gate = [], Gate()

    async def note(name):
        order.append(name)

    async with pool:
        pool.start_soon(gate.enter)
        for name, priority, pause in tasks:
            clock.advance(pause)
            pool.start_soon(note, name, priority=priority)
        gate.opened.set()
    return order


async def test_priority_goes_before_the_order_of_arrival():
    """Larger is sooner; equals keep their order."""
    clock = ManualClock()
    tasks = [("a", 0, 0), ("b", 1, 0), ("c", 0, 0), ("d", 2, 0), ("e", 1, 0), ("f", -1, 0)]
    assert "".join(await start_in_turn(TaskPool(1, clock=clock), clock, *tasks)) == "dbeacf"


async def test_waiting_outweighs_priority_in_the_end():
    """One step of priority is worth ten seconds."""
    clock = ManualClock()
    tasks = [("waits", 0, 0), ("just ahead", 1, 9), ("too late", 1, 2), ("urgent", 5, 0)]
    order = await start_in_turn(TaskPool(1, clock=clock), clock, *tasks)
    assert order == ["urgent", "just ahead", "waits", "too late"]


# Sizes that change


async def test_a_larger_capacity_starts_what_waits():
    """At once, without anybody having to end."""
    gate = Gate()
    async with TaskPool(1, {"a": 1}) as pool:
        for name in "bcd":
            pool.start_soon(gate.enter, name)
        await settle()
        assert gate.inside == ["b"]
        pool.resize(math.inf)
        await settle()
        assert gate.inside == ["b", "c", "d"]
        gate.opened.set()


async def test_a_limit_can_be_set_and_taken_away_again():
    """Heartbeat: unlimited, limit 1 blocks the second, unlimited releases it."""
    gate = Gate()
    async with TaskPool(limits={"http": math.inf}) as pool:
        pool.resize(limits={"http": 1})
        for name in "ab":
            pool.start_soon(gate.enter, name, needs="http")
        await settle()
        assert gate.inside == ["a"]
        pool.resize(limits={"http": math.inf})
        await settle()
        assert gate.inside == ["a", "b"]
        gate.opened.set()


async def test_a_smaller_limit_lets_what_runs_go_on():
    """Nothing is cut off, and nothing starts until there is room again."""
    gates = [Gate() for _ in range(4)]
    async with TaskPool(limits={"http": 3}) as pool:
        for gate in gates:
            pool.start_soon(gate.enter, needs="http")
        await settle()
        pool.resize(limits={"http": 1})
        for gate in gates[:3]:
            assert gates[3].inside == []
            gate.opened.set()
            await settle()
        assert gates[3].inside == [None]
        gates[3].opened.set()


# Context


async def test_a_task_sees_the_context_of_its_starter():
    """As it was at the call, whatever has happened since."""
    seen = []

    async def look():
        seen.append(variable.get())

    async with TaskPool() as pool:
        variable.set("then")
        pool.start_soon(look)
        variable.set("later")
        pool.start_soon(look)
    assert seen == ["then", "later"]


@pytest.mark.parametrize("waits", [False, True])
async def test_what_a_task_sets_stays_with_it(waits):
    """It lasts over its own waits and is gone for the next task on the same worker."""
    seen = []

    async def look_and_set(value):
        seen.append(variable.get())
        variable.set(value)
        if waits:
            await checkpoint()
        seen.append(variable.get())

    async with TaskPool(1) as pool:
        for value in (1, 2, 3):
            pool.start_soon(look_and_set, value)
    assert seen == ["untouched", 1, "untouched", 2, "untouched", 3]
    assert variable.get() == "untouched"


async def test_work_of_ones_own_has_the_context_of_the_pool_to_itself():
    """As it was when the pool was entered, for each run anew."""
    seen = []

    async def look_and_set(value):
        seen.append(variable.get())
        variable.set(value)

    variable.set("as entered")
    async with TaskPool(1) as pool:
        variable.set("later")
        for value in (1, 2):
            pool.submit(Told(look_and_set, value))
    assert seen == ["as entered"] * 2


async def test_what_a_task_sets_reaches_what_it_starts():
    """A subtask inherits, at whatever depth."""
    seen = []

    async def descend(pool, depth):
        seen.append(variable.get())
        variable.set(depth)
        await checkpoint()
        if depth < 3:
            pool.start_soon(descend, pool, depth + 1)

    async with TaskPool() as pool:
        pool.start_soon(descend, pool, 1)
    assert seen == ["untouched", 1, 2]


# Failures


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("error", [ValueError, SystemExit, GeneratorExit, BaseExceptionGroup])
async def test_what_a_task_raises_is_logged_and_the_others_go_on(error, waits, caplog):
    """Nothing that a task does ends the pool, and nothing ends in silence."""
    gate = Gate()

    async def fail():
        if waits:
            await checkpoint()
        raise error("boom", [KeyError()]) if error is BaseExceptionGroup else error("boom")

    async with TaskPool(2) as pool:
        pool.start_soon(gate.enter, "before")
        pool.start_soon(fail)
        pool.start_soon(gate.enter, "after")
        await settle()
        assert gate.inside == ["before", "after"]
        gate.opened.set()
    assert sorted(gate.left) == ["after", "before"]
    assert [(record.levelno, isinstance(record.exc_info[1], error)) for record in caplog.records] == [
        (logging.ERROR, True)
    ]


async def test_an_error_that_counts_as_false_is_logged_with_its_traceback(caplog):
    """`logging` leaves out the traceback of a bare exception that is false."""

    class Empty(Exception):
        def __len__(self):
            return 0

    async def fail():
        raise Empty

    async with TaskPool() as pool:
        pool.start_soon(fail)
    assert [record.exc_info[0] for record in caplog.records] == [Empty]


@pytest.mark.parametrize("error", [ValueError, StopIteration])
async def test_what_a_task_raises_before_there_is_a_coroutine_is_logged_too(error, caplog):
    """A callable may fail before it returns something to await."""

    def fail():
        raise error

    async with TaskPool() as pool:
        pool.start_soon(fail)
        pool.start_soon(nothing)
    assert [record.exc_info[0] for record in caplog.records] == [error]
    assert pool.active == 0


async def test_a_callable_that_returns_nothing_to_await_is_logged(caplog):
    """It has run, on the loop, and somebody should know."""
    async with TaskPool() as pool:
        pool.start_soon(int)
    assert [record.exc_info[0] for record in caplog.records] == [TypeError]


@asyncio_only
@pytest.mark.parametrize("waits", [False, True])
async def test_a_cancellation_of_its_own_making_ends_that_task_alone(waits):
    """Awaiting something that was cancelled raises the same error as being cancelled."""
    gate = Gate()

    async def await_something_cancelled():
        if waits:
            await checkpoint()
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    async with TaskPool(2) as pool:
        pool.start_soon(gate.enter, "before")
        for _ in range(5):
            pool.start_soon(await_something_cancelled)
        pool.start_soon(gate.enter, "after")
        await settle()
        assert gate.inside == ["before", "after"]
        gate.opened.set()
    assert sorted(gate.left) == ["after", "before"]


@asyncio_only
@pytest.mark.parametrize("waits_before", [False, True])
@pytest.mark.parametrize("waits_after", [False, True])
async def test_a_task_that_cancels_the_task_it_runs_in_hits_nobody_else(waits_before, waits_after):
    """It found asyncio's current task, which is the worker; that worker serves others too."""
    gate = Gate()

    async def cancel_current_task():
        if waits_before:
            await checkpoint()
        asyncio.current_task().cancel()
        if waits_after:
            await checkpoint()

    async with TaskPool(3) as pool:
        pool.start_soon(gate.enter, "before")
        for name in range(3):
            pool.start_soon(cancel_current_task)
            pool.start_soon(gate.enter, name)
            await settle()
        gate.opened.set()
    assert sorted(gate.left, key=str) == [0, 1, 2, "before"]


@both_backends
@pytest.mark.parametrize("waits", [False, True])
def test_keyboard_interrupt_goes_through(backend, waits):
    """It means the program and not the task that happened to run."""
    gate_left = []

    async def interrupt():
        if waits:
            await checkpoint()
        raise KeyboardInterrupt

    async def main():
        gate = Gate()
        gate_left.append(gate.left)
        async with TaskPool() as pool:
            pool.start_soon(gate.enter)
            pool.start_soon(interrupt)

    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)) as caught:
        anyio.run(main, backend=backend)
    assert [type(leaf) for leaf in leaves(caught.value)] == [KeyboardInterrupt]
    assert gate_left == [[]]


# Cancelling


async def test_cancelling_running_work_ends_it_where_it_stands():
    """Its unit goes to the next, and what it cleans up is cleaned up."""
    gate = Gate()
    async with TaskPool(1) as pool:
        first, second = Told(gate.enter, "first"), Told(gate.enter, "second")
        pool.submit(first)
        pool.submit(second)
        await settle()
        pool.cancel(first)
        pool.cancel(first)
        await settle()
        assert gate.inside == ["second"]
        gate.opened.set()
    assert first.told == ["open", anyio.get_cancelled_exc_class().__name__]
    assert second.told == ["open", None]


@pytest.mark.parametrize("needs", [(), "http"])
async def test_cancelling_waiting_work_drops_it(needs):
    """Wherever in the line it stood; the others move up."""
    gate = Gate()
    async with TaskPool(3, {"http": 1}) as pool:
        fill = [pool.start_soon(gate.enter, "fill", needs=needs) for _ in range(1 if needs else 3)]
        works = [Told(gate.enter, name, needs=fill[0].needs) for name in "abcd"]
        for work in works:
            pool.submit(work)
        await settle()
        for dropped in (works[1], works[0], works[0]):
            pool.cancel(dropped)
        assert pool.waiting == 2
        gate.opened.set()
    assert [work.told for work in works] == [["drop"], ["drop"], ["open", None], ["open", None]]


@pytest.mark.parametrize("old", ["", "http"])
@pytest.mark.parametrize("new", ["", "http", "dns"])
async def test_waiting_work_may_ask_for_something_else(old, new):
    """It begins when there is room for that, and those behind it move up."""
    gate = Gate()
    async with TaskPool(3, {"http": 1, "dns": 1}) as pool:
        hogs = [pool.start_soon(gate.enter, needs=needs) for needs in ((), old or (), new or ())]
        work, behind = (Told(gate.enter, needs=needs_of(old)) for _ in range(2))
        pool.submit(work, behind)
        await settle()
        assert pool.ask_anew(work, needs_of(new), 0)
        assert (work.told, pool.waiting) == ([], 2 + (old == new == "http"))
        gate.opened.set()
        await settle()
        assert not pool.ask_anew(hogs[0], (), 0)
    assert work.told == behind.told == ["open", None]
    assert {limit.used for limit in pool.statistics().limits.values()} == {0}


async def test_work_that_was_about_to_begin_may_ask_for_something_else():
    """It gives back what it held, and overtakes nobody for the new."""
    gate = Gate()
    async with TaskPool(2, {"http": 1, "dns": 1}) as pool:
        work, behind = Told(gate.enter, "work", needs=needs_of("http")), Told(gate.enter, "x", needs=needs_of("http"))
        pool.start_soon(gate.enter, "hog", needs="dns")
        pool.submit(work, behind)
        assert pool.ask_anew(work, needs_of("dns"), 0)
        await settle()
        assert gate.inside == ["hog", "x"]
        gate.opened.set()
    assert work.told == behind.told == ["open", None]


async def test_what_runs_or_has_ended_asks_for_nothing_else():
    """It keeps what it holds."""
    gate = Gate()
    async with TaskPool(2, {"http": 1, "dns": 1}) as pool:
        work = Told(gate.enter, needs=needs_of("http"))
        pool.submit(work)
        await settle()
        assert not pool.ask_anew(work, needs_of("dns"), 0)
        assert pool.statistics().limits["http"].used == 1
        gate.opened.set()
        await settle()
        assert not pool.ask_anew(work, needs_of("dns"), 0)
        assert work.needs == needs_of("http")


async def test_cancelling_work_that_was_about_to_begin_gives_its_unit_on():
    """It holds a unit although it has not begun."""
    gate = Gate()
    async with TaskPool(1) as pool:
        about_to = Told(gate.enter, "about to")
        pool.submit(about_to)
        pool.start_soon(gate.enter, "next")
        pool.cancel(about_to)
        assert (pool.active, pool.waiting) == (1, 0)
        await settle()
        assert gate.inside == ["next"]
        gate.opened.set()
    assert about_to.told == ["drop"]


async def test_cancelling_what_has_ended_does_nothing():
    """Its worker may be busy with somebody else's work by then."""
    gate = Gate()
    async with TaskPool(1) as pool:
        ended = pool.start_soon(checkpoint)
        await settle()
        pool.start_soon(gate.enter)
        await settle()
        pool.cancel(ended)
        pool.kill(ended)
        await settle()
        assert gate.inside == [None]
        gate.opened.set()
    assert gate.left == [None]


async def test_cancelling_work_whose_wait_has_just_ended_hits_nobody_else():
    """The cancellation may come too late for it, and must not be left to the next."""
    async with TaskPool(2) as pool:
        for _ in range(10):
            gate, later = Gate(), Gate()
            work = pool.start_soon(gate.enter)
            await settle()
            gate.opened.set()
            pool.cancel(work)
            for _ in range(5):
                pool.start_soon(later.enter)
            later.opened.set()
            await settle()
            assert later.left == [None] * 5
            assert pool.active == 0


async def test_work_may_cancel_itself():
    """It ends at its next wait, or when it returns."""
    works, went_on = [], []

    async def cancel_myself(pool, *, waits):
        pool.cancel(works[-1])
        if waits:
            await checkpoint()
            went_on.append("too far")

    async with TaskPool() as pool:
        for waits in (True, False, True):
            works.append(Told(lambda waits=waits: cancel_myself(pool, waits=waits)))
            pool.submit(works[-1])
            await settle()
        assert pool.active == 0
        gate = Gate()
        pool.start_soon(gate.enter)
        gate.opened.set()
    assert went_on == []
    assert gate.left == [None]


async def test_work_may_cancel_and_group_within_itself():
    """Cancel scopes, task groups and threads work in it as in any task."""
    seen = []

    async def task():
        with anyio.move_on_after(0):
            await anyio.Event().wait()
        seen.append("moved on")
        async with anyio.create_task_group() as group:
            group.start_soon(checkpoint)
            group.start_soon(anyio.Event().wait)
            await checkpoint()
            group.cancel_scope.cancel()
        seen.append(await anyio.to_thread.run_sync(str, "thread"))

    async with TaskPool(1) as pool:
        for _ in range(2):
            pool.start_soon(task)
    assert seen == ["moved on", "thread"] * 2


async def ignore_cancellation(told, *, awaits_when_closed=False):
    """Wait for ever, whatever happens."""
    try:
        while True:
            try:
                await anyio.Event().wait()
            except anyio.get_cancelled_exc_class():
                told.append("ignored")
    finally:
        told.append("closed")
        if awaits_when_closed:
            await cancel_shielded_checkpoint()


@pytest.mark.parametrize("awaits_when_closed", [False, True])
async def test_killing_work_frees_its_units_and_ends_it_by_force(awaits_when_closed):
    """For work that ignores its cancellation, even if it also refuses to be closed."""
    told, gate = [], Gate()
    async with TaskPool(1, {"http": 1}) as pool:
        stubborn = Told(lambda: ignore_cancellation(told, awaits_when_closed=awaits_when_closed), needs=(("http", 1),))
        pool.submit(stubborn)
        pool.start_soon(gate.enter, "next", needs="http")
        await settle()
        pool.kill(stubborn)
        assert (pool.active, pool.waiting) == (1, 0)
        pool.kill(stubborn)
        await settle()
        assert gate.inside == ["next"]
        gate.opened.set()
    assert told[-1] == "closed"
    assert len(stubborn.told) == 2
    gc.collect()  # a coroutine that was left half closed complains when it is collected: here and not in a later test
    assert pool.active == 0
    assert pool.statistics().limits["http"].used == 0


async def test_killing_work_that_was_cancelled_before_ends_it():
    """As the scheduler does when the grace is over."""
    told = []
    async with TaskPool(1) as pool:
        stubborn = pool.start_soon(ignore_cancellation, told)
        await settle()
        pool.cancel(stubborn)
        with anyio.CancelScope(shield=True):
            await checkpoint()
        assert pool.active == 1
        pool.kill(stubborn)
        assert pool.active == 0
    assert told[-1] == "closed"


async def test_killing_work_that_would_have_obeyed_returns_its_units_once():
    """It ends by itself at the cancellation, after its units were returned."""
    gate = Gate()
    async with TaskPool(2) as pool:
        work = pool.start_soon(gate.enter)
        other = pool.start_soon(gate.enter)
        await settle()
        pool.kill(work)
        await settle()
        assert pool.active == 1
        pool.cancel(other)
    assert pool.active == 0


async def test_killing_waiting_work_drops_it():
    """There is nothing to force."""
    gate = Gate()
    async with TaskPool(1) as pool:
        pool.start_soon(gate.enter)
        waiting = Told(nothing)
        pool.submit(waiting)
        pool.kill(waiting)
        gate.opened.set()
    assert waiting.told == ["drop"]


# The end


async def test_leaving_waits_for_everything():
    """Also for what is started by what it waits for."""
    ended = []

    async def branch(pool, depth):
        await checkpoint()
        if depth:
            for _ in range(3):
                pool.start_soon(branch, pool, depth - 1)
        ended.append(depth)

    async with TaskPool(2) as pool:
        pool.start_soon(branch, pool, 5)
    assert Counter(ended) == {5: 1, 4: 3, 3: 9, 2: 27, 1: 81, 0: 243}


async def test_leaving_with_an_error_cancels():
    """Running work is cancelled, waiting work is told that it never began, and the error goes on."""
    gate = Gate()
    works = [Told(gate.enter, name) for name in "abc"]

    async def leave_with_an_error(pool):
        async with pool:
            for work in works:
                pool.submit(work)
            await settle()
            raise ValueError("mine")

    pool = TaskPool(1)
    with pytest.raises((ValueError, ExceptionGroup)) as caught:
        await leave_with_an_error(pool)
    assert [str(leaf) for leaf in leaves(caught.value)] == ["mine"]
    cancelled = anyio.get_cancelled_exc_class().__name__
    assert [work.told for work in works] == [["open", cancelled], ["drop"], ["drop"]]
    assert (pool.active, pool.waiting, gate.inside) == (0, 0, [])


@pytest.mark.parametrize("is_leaving", [False, True])
async def test_cancelling_from_outside_cancels(is_leaving):
    """Whether the block is still at work or already waits for its tasks to end."""
    gate = Gate()
    with anyio.CancelScope() as scope:
        async with TaskPool(1) as pool:
            for _ in range(3):
                pool.start_soon(gate.enter)
            await settle()
            async with anyio.create_task_group() as group:
                if is_leaving:
                    scope.cancel()
                else:
                    group.start_soon(anyio.Event().wait)
                    group.start_soon(checkpoint)
                    scope.cancel()
    assert scope.cancelled_caught
    assert gate.inside == gate.left == []
    assert pool.statistics().workers == 0


async def test_cleaning_up_may_wait_under_a_shield():
    """Leaving with an error waits for that."""
    cleaned = []

    async def task():
        try:
            await anyio.Event().wait()
        finally:
            with anyio.CancelScope(shield=True):
                await settle()
                cleaned.append("up")

    with anyio.CancelScope() as scope:
        async with TaskPool() as pool:
            pool.start_soon(task)
            await settle()
            scope.cancel()
            await checkpoint()
    assert cleaned == ["up"]


async def test_nothing_starts_after_the_end():
    """It is an error each time, and not silence."""
    async with TaskPool() as pool:
        pool.start_soon(nothing)
    for _ in range(2):
        with pytest.raises(LifecycleError, match="stopped"):
            pool.start_soon(nothing)
    assert (pool.active, pool.waiting) == (0, 0)


async def test_a_pool_is_entered_once():
    """Neither inside itself nor a second time."""
    async with TaskPool() as pool:
        with pytest.raises(LifecycleError):
            await pool.__aenter__()
    with pytest.raises(LifecycleError):
        await pool.__aenter__()


async def test_an_empty_pool_is_drained_at_once():
    """There is nothing to wait for."""
    async with TaskPool() as pool:
        await pool.drained()


async def test_any_number_may_wait_until_it_is_drained():
    """Each of them hears of it, also one who came when another already waited."""
    gate, told = Gate(), []

    async def wait(pool, name):
        await pool.drained()
        told.append(name)

    async with TaskPool() as pool:
        pool.start_soon(gate.enter)
        async with anyio.create_task_group() as group:
            for name in range(3):
                group.start_soon(wait, pool, name)
                await settle()
            gate.opened.set()
            await settle()
            group.cancel_scope.cancel()
    assert sorted(told) == [0, 1, 2]


@pytest.mark.parametrize("end", ["cancel", "kill"])
async def test_cancelling_the_last_work_drains_the_pool(end):
    """However it ends."""
    async with TaskPool(1) as pool:
        running = pool.start_soon(anyio.Event().wait)
        waiting = pool.start_soon(nothing)
        await settle()
        async with anyio.create_task_group() as group:
            group.start_soon(pool.drained)
            await settle()
            pool.cancel(waiting)
            getattr(pool, end)(running)


# Workers


async def test_ten_thousand_tasks_that_do_not_wait_need_few_workers():
    """Work that waits for room is an entry in a queue, not a coroutine."""
    most = 0

    async def look(pool):
        nonlocal most
        most = max(most, pool.workers.size)

    async with TaskPool(100) as pool:
        for _ in range(10_000):
            pool.start_soon(look, pool)
        await pool.drained()
        assert 1 <= most <= 100  # nobody knows yet that they do not wait
        most = 0
        for _ in range(10_000):
            pool.start_soon(look, pool)
    assert 1 <= most <= 10


@pytest.mark.parametrize("count", [1, 10, 2_500])
async def test_as_many_tasks_as_wait_at_the_same_time_run_at_the_same_time(count):
    """More than are kept as spare workers, too, and twice in a row."""
    async with TaskPool(math.inf) as pool:
        for _ in range(2):
            gate = Gate()
            for _ in range(count):
                pool.start_soon(gate.enter)
            for _ in range(2 * count + 10):
                await checkpoint()
            assert len(gate.inside) == count
            gate.opened.set()
            await pool.drained()
            assert len(gate.left) == count
        await settle()
        assert pool.statistics().workers <= 1_100


async def test_others_have_their_turn_during_a_hundred_thousand_tasks():
    """A worker runs work after work, but only for a slice of time."""
    turns = itertools.count()

    async def count_turns(pool):
        while pool.active:
            next(turns)
            await checkpoint()

    async with anyio.create_task_group() as group, TaskPool(math.inf) as pool:
        for _ in range(100_000):
            pool.start_soon(nothing)
        group.start_soon(count_turns, pool)
    assert next(turns) > 3


async def test_the_current_work_is_known_while_its_code_runs():
    """For a watchdog in another thread, which also sees whether it is still the same step."""
    seen = []

    async def look(pool):
        seen.append((pool.workers.current, pool.workers.steps))
        await settle()
        seen.append((pool.workers.current, pool.workers.steps))

    async with TaskPool() as pool:
        work = pool.start_soon(look, pool)
        await checkpoint()
        await settle()
        assert pool.workers.current is None
    assert [current for current, _ in seen] == [work, work]
    assert seen[0][1] < seen[1][1]


@pytest.mark.parametrize("waits", [False, True])
async def test_finished_work_is_let_go(waits):
    """Its arguments too, while its worker waits for more."""

    class User:
        pass

    async def task(user):
        if waits:
            await checkpoint()

    async with TaskPool() as pool:
        user = User()
        watched = weakref.ref(user)
        pool.start_soon(task, user)
        del user
        await settle()
        gc.collect()
        assert watched() is None


async def test_cancelled_waiting_work_is_let_go():
    """A limit that stays full for hours does not collect what was cancelled meanwhile."""

    class User:
        pass

    gate = Gate()
    async with TaskPool(limits={"http": 1}) as pool:
        pool.start_soon(gate.enter, needs="http")
        pool.start_soon(gate.enter, needs="http")
        users = [User() for _ in range(10_000)]
        watched = [weakref.ref(user) for user in users]
        for user in users:
            pool.cancel(pool.start_soon(gate.enter, user, needs="http"))
        del users, user
        gc.collect()
        assert sum(ref() is not None for ref in watched) <= 2_000
        gate.opened.set()


def test_it_works_on_uvloop():
    """With everything that ends a task in the unusual ways."""
    pytest.importorskip("uvloop")
    told = []

    async def main():
        gate = Gate()
        async with TaskPool(2) as pool:
            stubborn = pool.start_soon(ignore_cancellation, told)
            cancelled = pool.start_soon(gate.enter, "cancelled")
            for name in range(5):
                pool.start_soon(gate.enter, name)
            await settle()
            pool.kill(stubborn)
            pool.cancel(cancelled)
            gate.opened.set()
        return gate.left

    assert sorted(anyio.run(main, backend_options={"use_uvloop": True})) == [0, 1, 2, 3, 4]
    assert told[-1] == "closed"
