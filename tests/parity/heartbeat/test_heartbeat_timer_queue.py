"""Elastic Heartbeat's timer queue: its own test scenarios, and the defects that we do not copy.

What its schedules, jobs and monitors do is tested where ours are. Names say which scenario or defect a test stands for.
"""

import gc
import random
import weakref
from functools import partial

import anyio
import pytest
from anyio.lowlevel import checkpoint

from kit import PATIENCE, settle
from timerqueue import Entry, LifecycleError, TaskPool, TimerHeap, TimerQueue
from timerqueue.testing import ManualClock


def push_ten_past_due(queue, order, chance):
    """Push ten entries that are past due, shuffled; the last of them to run stops the queue."""
    now = queue.clock.monotonic()
    for position in chance.sample(range(10), 10):
        queue.push(now - 10 + position, order.append, position)
    queue.push(now, queue.stop)


# Section 5, "Timer queue"


@pytest.mark.parametrize("seed", range(5))
async def test_heartbeat_ten_past_due_entries_pushed_shuffled_all_run_in_order(seed):
    """By their due times, whatever the order in which they were pushed."""
    order = []
    queue = TimerQueue()
    push_ten_past_due(queue, order, random.Random(seed))
    await queue.run()
    assert order == list(range(10))


async def test_heartbeat_stress_thousands_of_queues_with_ten_past_due_entries_never_hang():
    """Heartbeat repeats it 120,000 times to find a deadlock; fewer will do for one loop and one lock."""
    chance = random.Random(0)
    with anyio.fail_after(PATIENCE):
        for _ in range(2_000):
            order = []
            queue = TimerQueue()
            push_ten_past_due(queue, order, chance)
            await queue.run()
            assert order == list(range(10))


async def test_heartbeat_stress_entries_pushed_from_a_thread_while_it_starts_never_hang():
    """The moment between the first look and the first wait is the dangerous one."""
    chance = random.Random(0)
    for _ in range(100):
        order = []
        queue = TimerQueue()
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(queue.run)
                group.start_soon(anyio.to_thread.run_sync, push_ten_past_due, queue, order, chance)
        assert sorted(order) == list(range(10))


async def test_heartbeat_push_now_on_a_running_queue_runs():
    """It waits for nothing, and has to be woken."""
    queue = TimerQueue()
    ran = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(queue.run)
        await settle()
        queue.push(queue.clock.monotonic(), ran.set)
        with anyio.fail_after(PATIENCE):
            await ran.wait()
        queue.stop()


def test_heartbeat_after_popping_all_ten_no_slot_keeps_a_reference():
    """All ten are gone as soon as nobody else holds them (its third generation tests this)."""

    class Watched(Entry):
        __slots__ = ("__weakref__",)

    heap = TimerHeap()
    entries = [Watched() for _ in range(10)]
    for position, entry in enumerate(entries):
        heap.push(entry, float(position % 4))
    watched = [weakref.ref(entry) for entry in entries]
    del entries, entry
    heap.pop_due(10.0)
    gc.collect()
    assert [ref() for ref in watched] == [None] * 10


# Section 3.1 and the defects of section 4


async def test_heartbeat_equal_times_run_in_the_order_of_their_pushes():
    """There, equal times have no defined order."""
    clock, order = ManualClock(), []
    queue = TimerQueue(clock=clock)
    for position in range(100):
        queue.push(clock.monotonic() + 1, order.append, position)
    queue.push(clock.monotonic() + 1, queue.stop)
    async with anyio.create_task_group() as group:
        group.start_soon(queue.run)
        await clock.travel(1)
    assert order == list(range(100))


async def test_heartbeat_due_exactly_now_is_due():
    """There, only what is due strictly before the timer fired runs; the rest waits for the next turn."""
    clock, ran = ManualClock(), []
    queue = TimerQueue(clock=clock)
    queue.push(clock.monotonic(), ran.append, "now")
    async with anyio.create_task_group() as group:
        group.start_soon(queue.run)
        await settle()
        assert ran == ["now"]
        queue.stop()


async def test_heartbeat_five_thousand_pushes_before_the_start_do_not_block():
    """There, the channel takes 4096 and then the pusher waits for somebody who is not there yet."""
    ran = []
    queue = TimerQueue()
    for position in range(5_000):
        queue.push(queue.clock.monotonic() - 1, ran.append, position)
    queue.push(queue.clock.monotonic(), queue.stop)
    await queue.run()
    assert len(ran) == 5_000


async def test_heartbeat_defect_6_a_raising_task_does_not_end_the_process(caplog):
    """There, a panic of one task kills the process."""
    ran = []
    queue = TimerQueue()
    queue.push(queue.clock.monotonic() - 2, partial(int, "no number"))
    queue.push(queue.clock.monotonic() - 1, ran.append, "next")
    queue.push(queue.clock.monotonic(), queue.stop)
    await queue.run()
    assert ran == ["next"]
    assert len(caplog.records) == 1


async def test_heartbeat_defect_8_removed_entries_do_not_stay():
    """There, 50,000 hourly jobs removed leave 50,000 entries until the hour is over."""

    class Job:
        def run(self):
            raise AssertionError

    queue = TimerQueue()
    jobs = [Job() for _ in range(50_000)]
    watched = [weakref.ref(job) for job in jobs]
    timers = [queue.push(queue.clock.monotonic() + 3600, job.run) for job in jobs]
    assert all(timer.cancel() for timer in timers)
    del jobs, timers
    gc.collect()
    assert len(queue) == 0
    assert sum(ref() is not None for ref in watched) <= 2_000


async def test_heartbeat_defect_9_a_limit_counts_tasks_and_not_jobs():
    """There, `http` limit 1 lets fifty continuations of one job run at once."""
    inside, most = 0, 0

    async def task(pool, children):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await checkpoint()
        for _ in range(children):
            pool.start_soon(task, pool, 0, needs="http")
        inside -= 1

    async with TaskPool(limits={"http": 1}) as pool:
        pool.start_soon(task, pool, 50, needs="http")
    assert most == 1


async def test_heartbeat_defect_10_a_hung_task_gives_its_slot_back():
    """There, a check that hangs keeps its slot for ever."""
    ran = []

    async def hang():
        while True:
            try:
                await anyio.Event().wait()
            except anyio.get_cancelled_exc_class():
                ran.append("ignored")

    async def note():
        ran.append("next")

    async with TaskPool(1) as pool:
        hung = pool.start_soon(hang)
        pool.start_soon(note)
        await settle()
        assert ran == []
        pool.kill(hung)
    assert "next" in ran


async def test_heartbeat_defect_11_a_quick_task_is_not_kept_behind_a_herd():
    """There, the slots are first come first served, whatever the task: an urgent one waits for two hundred."""
    order = []

    async def task(name):
        order.append(name)
        await checkpoint()

    async with TaskPool(10) as pool:
        for position in range(200):
            pool.start_soon(task, position)
        pool.start_soon(task, "quick", priority=1)
    assert order.index("quick") <= 10


async def test_heartbeat_defect_12_a_push_that_loses_its_race_with_stop_is_noticed():
    """There, it is lost without a word."""
    queue = TimerQueue()
    queue.stop()
    with pytest.raises(LifecycleError):
        queue.push(queue.clock.monotonic(), int)


async def test_heartbeat_defect_12_leaving_waits_for_what_runs():
    """There, Stop returns at once and nobody knows when the last task has ended."""
    ended = []

    async def task():
        await settle()
        ended.append(True)

    async with TaskPool() as pool:
        pool.start_soon(task)
    assert ended == [True]


async def test_heartbeat_defect_14_a_step_of_the_wall_clock_moves_no_timer():
    """There, both clocks are mixed in one heap, and after a step its order breaks."""
    clock, order = ManualClock(), []
    queue = TimerQueue(clock=clock)
    start = clock.monotonic()
    queue.push(start + 10, order.append, "before the step")
    async with anyio.create_task_group() as group:
        group.start_soon(queue.run)
        await clock.travel(5)
        clock.step(-86_400)
        queue.push(start + 11, order.append, "after the step")
        clock.step(2 * 86_400)
        await settle()
        assert order == []
        await clock.travel(6)
        queue.stop()
    assert order == ["before the step", "after the step"]


# Section 5, "Live limits"


class _Door:
    """Tasks that come in and stay until each is let out."""

    def __init__(self):
        self.inside = {}

    async def enter(self, name):
        self.inside[name] = anyio.Event()
        try:
            await self.inside[name].wait()
        finally:
            del self.inside[name]

    def let_out(self, *names):
        for name in names or list(self.inside):
            self.inside[name].set()


async def test_heartbeat_live_limits_unlimited_then_one_blocks_the_second_then_unlimited_releases_it():
    """A limit of 0 stands for none there; here it is math.inf."""
    door = _Door()
    async with TaskPool(limits={"browser": float("inf")}) as pool:
        pool.start_soon(door.enter, 1, needs="browser")
        pool.resize(limits={"browser": 1})
        pool.start_soon(door.enter, 2, needs="browser")
        await settle()
        assert list(door.inside) == [1]
        pool.resize(limits={"browser": float("inf")})
        await settle()
        assert list(door.inside) == [1, 2]
        door.let_out()


async def test_heartbeat_live_limits_three_running_cut_to_one_the_fourth_starts_after_all_three():
    """Lowering drains."""
    door = _Door()
    async with TaskPool(limits={"browser": 3}) as pool:
        for name in range(4):
            pool.start_soon(door.enter, name, needs="browser")
        await settle()
        pool.resize(limits={"browser": 1})
        for name in range(3):
            assert 3 not in door.inside
            door.let_out(name)
            await settle()
        assert list(door.inside) == [3]
        door.let_out()


async def test_heartbeat_live_limits_a_configured_limit_is_reported_before_anything_runs():
    """With 0 running and 0 waiting, then as it is."""
    door = _Door()
    async with TaskPool(limits={"browser": 2, "http": 9}) as pool:
        idle = pool.statistics().limits
        assert {name: (each.size, each.used, each.waiting) for name, each in idle.items()} == {
            "browser": (2, 0, 0),
            "http": (9, 0, 0),
        }
        for name in range(5):
            pool.start_soon(door.enter, name, needs="browser")
        busy = pool.statistics().limits["browser"]
        assert (busy.size, busy.used, busy.waiting) == (2, 2, 3)
        while pool.active:
            door.let_out()
            await settle()
        assert pool.statistics().limits == idle


async def test_heartbeat_live_limits_a_slot_granted_to_a_cancelled_waiter_is_passed_on():
    """Otherwise it would be lost for good."""
    door = _Door()
    async with TaskPool(limits={"browser": 1}) as pool:
        pool.start_soon(door.enter, "first", needs="browser")
        await settle()
        second = pool.start_soon(door.enter, "second", needs="browser")
        pool.start_soon(door.enter, "third", needs="browser")
        door.let_out("first")
        while pool.waiting != 1:
            await checkpoint()
        pool.cancel(second)
        await settle()
        assert list(door.inside) == ["third"]
        door.let_out()
