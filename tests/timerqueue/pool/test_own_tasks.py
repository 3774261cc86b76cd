"""What waits has a task of its own: seen from inside it is as a plain task of the event loop."""

import asyncio
import contextvars
import gc
import io
import weakref
from contextlib import suppress

import anyio
import pytest
import trio
from anyio.lowlevel import checkpoint

from kit import settle
from timerqueue import TaskPool, Work

asyncio_only = pytest.mark.parametrize("anyio_backend", ["asyncio"])

variable = contextvars.ContextVar("variable", default="fresh")
keyed = weakref.WeakKeyDictionary()
ROUNDS = 20


def me():
    """Return the present task."""
    return asyncio.current_task()


class Told(Work):
    """Work that notes what its function answered."""

    def __init__(self, func, seen):
        super().__init__()
        self.func = func
        self.seen = seen

    def open(self, now):
        return self.func()

    def close(self, value, error, now):
        self.seen.append(value if error is None else error)


async def stays_the_same():
    first = me()
    await checkpoint()
    return first is me() and first in asyncio.all_tasks()


async def has_a_name():
    await checkpoint()
    return me().get_name().split(".")[-1]


async def has_the_name_that_it_set():
    before = me().get_name().startswith("set by")
    me().set_name("set by somebody")
    return before


async def has_its_coroutine():
    await checkpoint()
    coro = me().get_coro()
    return coro.__name__, coro.cr_code.co_name


async def is_nobody_elses_key():
    found = keyed.get(me(), "fresh")
    keyed[me()] = "used"
    return found


async def is_nobody_elses_key_after_a_wait():
    await checkpoint()
    return await is_nobody_elses_key()


async def has_its_context():
    await checkpoint()
    variable.set("mine")
    get_context = getattr(me(), "get_context", None)
    return "mine" if get_context is None else get_context()[variable]


async def has_a_fresh_context():
    before = variable.get()
    variable.set("used")
    await checkpoint()
    return before, variable.get()


async def is_not_being_cancelled():
    return me().cancelling()


async def is_seen_in_its_stack():
    found = []
    loop, task, seen = asyncio.get_running_loop(), me(), anyio.Event()

    def look():
        stack = io.StringIO()
        task.print_stack(file=stack)
        found.append([frame.f_code.co_name for frame in task.get_stack()])
        found.append("is_seen_in_its_stack" in stack.getvalue() and "is_seen_in_its_stack" in repr(task))
        seen.set()

    loop.call_soon(look)
    await seen.wait()
    return found


async def leads_to_what_it_awaits():
    names, seen, task = [], anyio.Event(), me()

    async def inner():
        await seen.wait()

    def look():
        coro = task.get_coro()
        while getattr(coro, "cr_await", None) is not None and len(names) < 2:
            names.append(coro.__name__)
            coro = coro.cr_await
        seen.set()

    asyncio.get_running_loop().call_soon(look)
    await inner()
    return names


async def has_no_parent_in_anyio():
    return anyio.get_current_task().parent_id is None


async def uncancels_itself():
    me().cancel()
    try:
        await checkpoint()
    except asyncio.CancelledError:
        return me().uncancel()


async def times_out():
    try:
        async with asyncio.timeout(0):
            await anyio.sleep_forever()
    except TimeoutError:
        return me().cancelling()


async def groups():
    async def fail():
        raise ValueError

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            await anyio.sleep_forever()
    except* ValueError:
        pass
    return me().cancelling()


PROBES = [
    stays_the_same,
    has_a_name,
    has_the_name_that_it_set,
    has_its_coroutine,
    is_nobody_elses_key,
    is_nobody_elses_key_after_a_wait,
    has_its_context,
    has_a_fresh_context,
    is_not_being_cancelled,
    is_seen_in_its_stack,
    leads_to_what_it_awaits,
    has_no_parent_in_anyio,
    uncancels_itself,
    times_out,
    groups,
]


@asyncio_only
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__)
async def test_it_is_as_a_task_that_one_makes_oneself(probe):
    """From its first run on, however often it runs. Those that do not wait are run by hand after some of them."""
    plain = await asyncio.get_running_loop().create_task(probe(), name=probe.__name__)
    seen = []

    async with TaskPool(1) as pool:
        for _ in range(ROUNDS):
            pool.submit(Told(probe, seen))
            await pool.drained()
    assert seen == [plain] * ROUNDS


@asyncio_only
@pytest.mark.parametrize("waits", [False, True])
async def test_who_asks_for_the_end_of_its_task_is_told(waits):
    """Done callbacks and finalizers fire for each run, not at the end of the pool."""
    ended, finalized = [], []

    async def hang_on():
        me().add_done_callback(ended.append)
        weakref.finalize(me(), finalized.append, 1)
        if waits:
            await checkpoint()

    async with TaskPool(1) as pool:
        for _ in range(ROUNDS):
            pool.start_soon(hang_on)
            await pool.drained()
        await settle()
        assert len(ended) == ROUNDS
        ended.clear()
        gc.collect()
        assert len(finalized) == ROUNDS


@asyncio_only
async def test_what_a_library_hangs_on_its_task_does_not_grow():
    """Counted in live objects: 335 MB once after 167,000 runs."""

    class State:
        pass

    living = weakref.WeakSet()
    state = weakref.WeakKeyDictionary()

    async def use():
        mine = State()
        living.add(mine)
        state.setdefault(me(), []).append(mine)
        me().add_done_callback(lambda _, kept=mine: None)
        await checkpoint()

    alive = []
    async with TaskPool(10) as pool:
        for _ in range(3):
            for _ in range(200):
                pool.start_soon(use)
            await pool.drained()
            await settle()
            gc.collect()
            alive.append((len(living), len(state)))
    assert alive == [(0, 0)] * 3


@asyncio_only
@pytest.mark.parametrize("waits", [False, True])
async def test_a_cancellation_that_comes_late_hits_nobody(waits):
    """A reference to `my task` that is cancelled after its end once hit the one who ran there by then."""
    tasks, ended = [], []

    async def leave():
        tasks.append(weakref.proxy(me()).cancel)
        if waits:
            await checkpoint()

    async def innocent():
        await settle()
        ended.append(1)

    async with TaskPool(1) as pool:
        for _ in range(ROUNDS):
            pool.start_soon(leave)
            await pool.drained()
            pool.start_soon(innocent)
            await checkpoint()
            for cancel in tasks:
                with suppress(ReferenceError):
                    cancel()
            tasks.clear()
            await pool.drained()
    assert len(ended) == ROUNDS


@asyncio_only
async def test_it_is_cancelled_once():
    """What cleans up with an `await` is not cancelled again at each of them."""
    cleaned = []

    async def clean_up():
        try:
            await anyio.sleep_forever()
        finally:
            await settle()
            cleaned.append(me().cancelling())

    async with TaskPool() as pool:
        work = pool.start_soon(clean_up)
        await settle()
        pool.cancel(work)
        pool.cancel(work)
        await pool.drained()
    assert cleaned == [1]


@asyncio_only
async def test_what_ignores_its_cancellation_costs_no_turns_of_the_loop():
    """Counted in steps of the pool: it was cancelled anew in each turn, and a core ran at full speed."""

    async def swallow():
        while True:
            with suppress(asyncio.CancelledError):
                await anyio.sleep_forever()

    async with TaskPool() as pool:
        work = pool.start_soon(swallow)
        await settle()
        pool.cancel(work)
        await settle()
        before = pool.workers.steps
        for _ in range(50):
            await settle()
        assert pool.workers.steps == before
        pool.kill(work)


async def test_a_shield_holds_until_it_is_left():
    """Anyio's, on asyncio too, where a plain cancellation would go through it."""
    told, go = [], anyio.Event()

    async def shielded():
        with anyio.CancelScope(shield=True):
            await go.wait()
            told.append("done")
        await anyio.sleep_forever()
        told.append("too far")

    async with TaskPool() as pool:
        work = pool.start_soon(shielded)
        await settle()
        pool.cancel(work)
        await settle()
        assert told == []
        go.set()
        await pool.drained()
    assert told == ["done"]


@asyncio_only
async def test_killing_ends_what_waits_for_something_deaf():
    """Its cancellation reaches only what it waits for."""
    told = []

    async def deaf():
        while True:
            try:
                await anyio.sleep_forever()
            except asyncio.CancelledError:
                if told:
                    raise

    async def wait_for_it():
        try:
            await inner
        finally:
            told.append("closed")

    inner = asyncio.get_running_loop().create_task(deaf())
    async with TaskPool() as pool:
        work = pool.start_soon(wait_for_it)
        await settle()
        pool.kill(work)
        await settle()
        assert told == ["closed"]
        inner.cancel()
        await settle()


@asyncio_only
async def test_what_fails_fails_its_task_too_and_asyncio_says_nothing(caplog):
    """Whoever has added a callback finds the error there."""
    errors = []

    async def fail():
        me().add_done_callback(lambda task: errors.append(task.exception()))
        await checkpoint()
        raise ValueError("boom")

    async with TaskPool() as pool:
        for _ in range(3):
            pool.start_soon(fail)
        await pool.drained()
        await settle()
    gc.collect()
    assert [str(error) for error in errors] == ["boom"] * 3
    assert "never retrieved" not in caplog.text


@asyncio_only
async def test_a_task_factory_sees_every_one():
    """Whoever wants to look at each task made looks at these too."""
    seen = []
    loop = asyncio.get_running_loop()

    def factory(loop, coro, **options):
        seen.append(getattr(coro, "__name__", "?"))
        return asyncio.Task(coro, loop=loop, **options)

    async def quiet():
        pass

    loop.set_task_factory(factory)
    try:
        async with TaskPool(1) as pool:
            for _ in range(ROUNDS):
                pool.start_soon(quiet)
    finally:
        loop.set_task_factory(None)
    assert seen.count("quiet") == ROUNDS


async def test_a_function_that_never_waits_shares_a_task_once_that_is_known():
    """It is run by hand then, in a row."""
    tasks = set()

    async def quiet():
        tasks.add(anyio.get_current_task().id)

    async with TaskPool(1) as pool:
        for _ in range(ROUNDS):
            pool.start_soon(quiet)
        await pool.drained()
        known = len(tasks)
        for _ in range(100):
            pool.start_soon(quiet)
    assert len(tasks) - known < 10


@asyncio_only
async def test_only_what_is_known_never_to_wait_can_see_that_it_shares_a_task():
    """The difference that docs/timerqueue.md names: the name, the coroutine and the context of that task."""
    names = []

    async def quiet():
        names.append(me().get_name().split(".")[-1])

    async with TaskPool(1) as pool:
        for _ in range(ROUNDS):
            pool.start_soon(quiet)
    assert names == ["quiet"] * 8 + ["timerqueue worker"] * (ROUNDS - 8)


async def test_who_waits_against_expectation_keeps_the_task_to_itself():
    """A function that was quiet for long: no other that waits has that task."""
    tasks, gate = [], anyio.Event()

    async def mostly_quiet(waits):
        if waits:
            first = anyio.get_current_task().id
            await gate.wait()
            tasks.append((first, anyio.get_current_task().id))

    async with TaskPool() as pool:
        for _ in range(ROUNDS):
            pool.start_soon(mostly_quiet, False)
        await pool.drained()
        for _ in range(5):
            pool.start_soon(mostly_quiet, True)
        await settle()
        gate.set()
    assert all(first == last for first, last in tasks)
    assert len({first for first, _ in tasks}) == 5


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_task_group_left_open_ends_that_work_alone(caplog):
    """On trio it ended the whole pool."""
    ended, left = [], []

    async def leave_open():
        nursery = trio.open_nursery()
        left.append(nursery)
        (await nursery.__aenter__()).start_soon(trio.sleep_forever)

    async def decent():
        await settle()
        ended.append(1)

    async with TaskPool() as pool:
        pool.start_soon(decent)
        pool.start_soon(leave_open)
        pool.start_soon(decent)
        await pool.drained()
    assert len(ended) == 2
    assert "left a task group open" in caplog.text


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_trios_task_has_the_name_and_the_context_of_what_runs_in_it():
    """As one that was started in a nursery with that context."""
    seen = []

    async def look():
        variable.set("mine")
        await checkpoint()
        task = trio.lowlevel.current_task()
        seen.append((task.name.split(".")[-1], task.context[variable]))

    async with TaskPool(1) as pool:
        for _ in range(ROUNDS):
            pool.start_soon(look)
    assert seen == [("look", "mine")] * ROUNDS


def test_it_is_the_same_on_uvloop():
    """Its tasks are asyncio's."""
    uvloop = pytest.importorskip("uvloop")

    async def main():
        for probe in PROBES:
            await test_it_is_as_a_task_that_one_makes_oneself(probe)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
