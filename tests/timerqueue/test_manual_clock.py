"""A clock that moves only when told to."""

import math
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given, settings, strategies as st

from kit import PATIENCE, examples, settle
from timerqueue import TaskPool, TimerQueue
from timerqueue.testing import ManualClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def sleep_and_note(clock, seconds, notes):
    await clock.sleep(seconds)
    notes.append((seconds, clock.monotonic()))


class Tasks:
    """Somebody who works, and is idle once that is done."""

    def __init__(self):
        self.done = False

    async def run(self, work):
        await work()
        self.done = True


def test_it_stands_still():
    """Between two readings nothing passes."""
    clock = ManualClock(NOON)
    assert clock.now() == NOON
    assert clock.wall() == NOON.timestamp()
    assert clock.monotonic() == clock.monotonic()


def test_monotonic_and_wall_cannot_be_mixed_up():
    """Their readings are nowhere near each other."""
    clock = ManualClock(NOON)
    assert abs(clock.wall() - clock.monotonic()) > 1e6


def test_advance_moves_both_clocks():
    """An hour is an hour on either."""
    clock = ManualClock(NOON)
    start = clock.monotonic()
    clock.advance(3600)
    assert clock.monotonic() - start == 3600
    assert clock.now() == NOON + timedelta(hours=1)


@pytest.mark.parametrize("seconds", [-1, timedelta(seconds=-1)])
async def test_time_cannot_pass_backwards(seconds):
    """The error says what would, and nothing has moved."""
    clock = ManualClock(NOON)
    before = clock.monotonic()
    for let_pass in (clock.advance, clock.suspend):
        with pytest.raises(ValueError, match=r"time cannot advance by -1.*step\(-1"):
            let_pass(seconds)
    with pytest.raises(ValueError, match=r"time cannot advance by -1.*step\(-1"):
        await clock.travel(seconds)
    assert (clock.monotonic(), clock.now()) == (before, NOON)


@pytest.mark.parametrize("seconds", [-3600, 0.5, 86_400])
def test_a_step_moves_the_wall_clock_alone(seconds):
    """Monotonic time does not notice."""
    clock = ManualClock(NOON)
    start = clock.monotonic()
    clock.step(seconds)
    assert clock.monotonic() == start
    assert clock.now() == NOON + timedelta(seconds=seconds)


def test_a_suspended_machine_counts_no_monotonic_time():
    """As on Linux, where CLOCK_MONOTONIC stands still meanwhile."""
    clock = ManualClock(NOON)
    start = clock.monotonic()
    clock.suspend(600)
    assert (clock.monotonic(), clock.now()) == (start, NOON + timedelta(minutes=10))


async def test_sleepers_wake_at_their_time_and_not_before():
    """In the order of their times, not in the order in which they lay down."""
    clock, notes = ManualClock(), []
    start = clock.monotonic()
    async with anyio.create_task_group() as group:
        for seconds in (3, 1, 2):
            group.start_soon(sleep_and_note, clock, seconds, notes)
        await settle()
        assert clock.sleeping == 3
        clock.advance(0.999)
        await settle()
        assert notes == []
        await clock.travel(5)
    assert notes == [(1, start + 1), (2, start + 2), (3, start + 3)]
    assert clock.sleeping == 0


async def test_advance_passes_all_at_once():
    """Whoever slept meanwhile finds it as late as it is."""
    clock, notes = ManualClock(), []
    async with anyio.create_task_group() as group:
        group.start_soon(sleep_and_note, clock, 1, notes)
        await settle()
        clock.advance(100)
    assert notes == [(1, clock.monotonic())]


async def test_a_cancelled_sleeper_is_forgotten():
    """Nobody is woken who is not there."""
    clock = ManualClock()
    async with anyio.create_task_group() as group:
        group.start_soon(clock.sleep, 1)
        await settle()
        group.cancel_scope.cancel()
    assert clock.sleeping == 0
    clock.advance(2)


@pytest.mark.parametrize("seconds", [0, -1])
async def test_a_sleep_of_nothing_returns_without_the_clock_being_moved(seconds):
    """As every other sleep of zero does."""
    clock = ManualClock()
    with anyio.fail_after(PATIENCE):
        await clock.sleep(seconds)


async def test_travel_stops_wherever_somebody_waits():
    """One who sleeps again and again is there at each of his times."""
    clock, seen = ManualClock(), []
    start = clock.monotonic()

    async def every_second():
        while True:
            await clock.sleep(1)
            seen.append(clock.monotonic() - start)

    async with anyio.create_task_group() as group:
        group.start_soon(every_second)
        await clock.travel(4.5)
        group.cancel_scope.cancel()
    assert seen == [1, 2, 3, 4]
    assert clock.monotonic() == start + 4.5


async def test_a_queue_fires_at_the_moment_that_the_clock_reaches():
    """Due means due, not a moment before."""
    clock, fired = ManualClock(), []
    queue = TimerQueue(clock=clock)
    due = clock.monotonic() + 10
    queue.push(due, lambda: fired.append(clock.monotonic()))
    async with anyio.create_task_group() as group:
        group.start_soon(queue.run)
        await clock.travel(9.75)
        assert fired == []
        await clock.travel(0.25)
        queue.stop()
    assert len(fired) == 1
    assert fired[0] >= due


@settings(max_examples=examples(60))
@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=5), st.floats(0, 1e4))
def test_whatever_is_due_when_a_journey_ends_has_fired(delays, before):
    """Rounding neither fires anything early nor leaves anything behind."""

    async def scenario():
        clock, fired = ManualClock(), []
        queue = TimerQueue(clock=clock)
        clock.advance(before)
        async with anyio.create_task_group() as group:
            group.start_soon(queue.run)
            for delay in delays:
                due = clock.monotonic() + delay
                queue.push(due, lambda due=due: fired.append((due, clock.monotonic())))
            await clock.travel(max(delays))
            queue.stop()
        assert len(fired) == len(delays)
        assert [due for due, now in fired if now < due] == []

    anyio.run(scenario)


async def test_autojump_goes_from_wait_to_wait():
    """A year of waiting takes no time, and each call comes exactly when due."""
    clock, fired = ManualClock(autojump=True), []
    start = clock.monotonic()
    queue = TimerQueue(clock=clock)
    for days in (365, 1, 30):
        queue.push(start + days * 86_400, lambda: fired.append((clock.monotonic() - start) / 86_400))
    queue.push(start + 366 * 86_400, queue.stop)
    await queue.run()
    assert fired == [1, 30, 365]
    assert clock.now() == datetime(2027, 1, 2, tzinfo=UTC)


async def test_autojump_waits_for_those_who_work():
    """`is_idle` says when nobody has anything to do; until then time stands still."""
    clock, seen = ManualClock(autojump=True), []
    start = clock.monotonic()

    async def work():
        for _ in range(10):
            await checkpoint()
        seen.append(clock.monotonic() - start)
        if len(seen) == 3:
            queue.stop()

    async with TaskPool(clock=clock) as pool:
        clock.is_idle = lambda: not pool.active
        queue = TimerQueue(pool, clock)
        for seconds in (1, 2, 3):
            queue.push(start + seconds, work)
        await queue.run()
    assert seen == [1, 2, 3]


async def test_a_queue_with_nothing_to_wait_for_does_not_send_the_clock_to_the_end_of_time():
    """There is no next wait to jump to, so time stands still until somebody calls."""
    clock = ManualClock(autojump=True)
    wake = clock.make_wake()
    async with anyio.create_task_group() as group:
        group.start_soon(wake.wait, None)
        await settle()
        wake.set()
    assert math.isfinite(clock.monotonic())


async def test_autojump_lets_others_on_the_loop_have_their_turn():
    """A timer that sets itself again for ever can be stopped by another task."""
    clock, fired = ManualClock(autojump=True), []
    queue = TimerQueue(clock=clock)

    def again():
        fired.append(clock.monotonic())
        if len(fired) < 10_000:
            queue.push(clock.monotonic() + 1, again)
        else:
            queue.stop()

    async def stop():
        while len(fired) < 5:
            await checkpoint()
        queue.stop()

    again()
    async with anyio.create_task_group() as group:
        group.start_soon(queue.run)
        group.start_soon(stop)
    assert len(fired) < 10_000


@pytest.mark.parametrize("turns", range(6))
async def test_autojump_does_not_jump_over_what_was_pushed_meanwhile(turns):
    """Whoever had a turn before the jump may have made it a shorter one."""
    clock, fired = ManualClock(autojump=True), []
    start = clock.monotonic()
    queue = TimerQueue(clock=clock)
    queue.push(start + 100, queue.stop)

    async def push_soon():
        for _ in range(turns):
            await checkpoint()
        due = clock.monotonic() + 5
        queue.push(due, lambda: fired.append(clock.monotonic() - due))

    clock.is_idle = lambda: tasks.done
    tasks = Tasks()
    async with anyio.create_task_group() as group:
        group.start_soon(queue.run)
        group.start_soon(tasks.run, push_soon)
    assert fired == [0]


async def test_autojump_serves_sleepers_too():
    """Waiting costs no real time, whoever waits."""
    clock = ManualClock(autojump=True)
    start = clock.monotonic()
    with anyio.fail_after(PATIENCE):
        await clock.sleep(3600)
    assert clock.monotonic() == start + 3600
