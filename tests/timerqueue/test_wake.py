"""The one wait of a loop: ended by time or by a call, from whatever thread, and never early."""

import asyncio
import time
from contextvars import ContextVar
from threading import Thread

import anyio
import pytest
from anyio.lowlevel import checkpoint

from kit import settle
from timerqueue._wake import Pulse, make_wake, others_watched

WHO = ContextVar("who", default="nobody")


class Waiter:
    """A task that waits again and again, and counts."""

    def __init__(self, wake, seconds=None):
        self.wake = wake
        self.seconds = seconds
        self.ended = 0

    async def run(self):
        while True:
            await self.wake.wait(self.seconds)
            self.ended += 1


def in_thread(call):
    """Call it in a thread of its own and wait for the thread to end."""
    thread = Thread(target=call)
    thread.start()
    thread.join()


async def test_a_call_ends_the_wait():
    """A wait without a time ends in no other way."""
    waiter = Waiter(make_wake())
    async with anyio.create_task_group() as group:
        group.start_soon(waiter.run)
        await settle()
        assert waiter.ended == 0
        waiter.wake.set()
        await settle()
        assert waiter.ended == 1
        group.cancel_scope.cancel()


async def test_a_call_before_the_wait_is_not_lost():
    """Otherwise a push just before the loop lies down would be slept through."""
    wake = make_wake()
    wake.set()
    await wake.wait(None)


async def test_many_calls_before_the_wait_end_one_wait():
    """It is a flag and no counter."""
    waiter = Waiter(make_wake())
    for _ in range(5):
        waiter.wake.set()
    async with anyio.create_task_group() as group:
        group.start_soon(waiter.run)
        await settle()
        assert waiter.ended == 1
        group.cancel_scope.cancel()


async def test_a_call_from_another_thread_ends_the_wait():
    """The loop is told in a way that wakes its selector."""
    wake = make_wake()
    async with anyio.create_task_group() as group:
        group.start_soon(wake.wait, None)
        await settle()
        await anyio.to_thread.run_sync(wake.set)


async def test_a_call_from_another_thread_before_the_wait_is_not_lost():
    """Also when the loop had no chance yet to hear of it."""
    wake = make_wake()
    in_thread(wake.set)
    await wake.wait(None)


async def test_a_wait_ends_by_itself_and_not_early():
    """However short: a wait of nothing returns too."""
    wake = make_wake()
    for seconds in (0, 0.0004, 0.002):
        start = time.monotonic()
        await wake.wait(seconds)
        assert time.monotonic() - start >= seconds


async def test_a_wait_of_an_hour_can_be_ended_and_leaves_nothing_behind():
    """The timer that was armed for it is gone, or else it would end a later wait."""
    waiter = Waiter(make_wake(), seconds=3600)
    async with anyio.create_task_group() as group:
        group.start_soon(waiter.run)
        await settle()
        waiter.wake.set()
        await settle()
        assert waiter.ended == 1
        group.cancel_scope.cancel()


async def test_a_cancelled_wait_can_be_made_again():
    """Cancellation belongs to the task that waited, not to the wake."""
    wake = make_wake()
    with anyio.move_on_after(0):
        await wake.wait(None)
    wake.set()
    await wake.wait(None)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_call_after_the_loop_has_closed_is_harmless(backend):
    """A thread may learn too late that everything is over."""

    async def make():
        return make_wake()

    wake = anyio.run(make, backend=backend)
    in_thread(wake.set)


def test_uvloop_is_never_early():
    """Its timers count whole milliseconds: a wait is rounded up, or the queue would spin through the rest."""
    uvloop = pytest.importorskip("uvloop")

    async def early():
        wake, loop = make_wake(), asyncio.get_running_loop()
        longest = {}
        for microseconds in (1, 300, 700, 1_100, 1_600, 2_400, 2_600) * 3:
            start = time.monotonic()
            await wake.wait(microseconds / 1e6)
            took = (time.monotonic() - start) * 1e6
            # It counts from its own last look at the clock: who was held up since is early once, and not three times.
            longest[microseconds] = max(took, longest.get(microseconds, 0.0))
        assert isinstance(loop, uvloop.Loop)
        return {wanted: got for wanted, got in longest.items() if got < wanted}

    assert anyio.run(early, backend_options={"use_uvloop": True}) == {}


def seen_by(thread_asks):
    """Call it in another thread while the caller's own code holds the loop, and return the answer."""
    answers = []
    in_thread(lambda: answers.append(thread_asks()))
    return answers[0]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_loop_that_waits_is_seen_to_be_asleep_and_one_in_code_is_not(backend):
    """A watchdog need not wake it to learn that it is well."""

    async def main():
        pulse, wake = Pulse(), make_wake()

        def watch():
            for _ in range(1_000):
                if pulse.is_asleep():
                    seen.append("asleep")
                    break
                time.sleep(0.001)
            wake.set()

        seen = ["asleep" if seen_by(pulse.is_asleep) else "awake"]
        thread = Thread(target=watch)
        thread.start()
        await wake.wait(None)
        thread.join()
        return seen, pulse.beats

    assert anyio.run(main, backend=backend) == (["awake", "asleep"], 0)


async def test_a_loop_beats_once_for_each_time_that_it_was_asked():
    """Nor does it, however often somebody asks, before it comes round."""
    pulse = Pulse()
    for _ in range(5):
        in_thread(pulse.ask)
    assert pulse.beats == 0
    await settle()
    assert pulse.beats == 1
    in_thread(pulse.ask)
    await settle()
    assert pulse.beats == 2


async def test_the_context_of_the_task_that_holds_the_loop_is_seen_from_outside():
    """A task of its own, whose context nobody else shares."""
    pulse, seen = Pulse(), []

    async def child():
        WHO.set("child")
        seen.append(seen_by(pulse.context)[WHO])

    WHO.set("parent")
    async with anyio.create_task_group() as group:
        group.start_soon(child)
    assert seen == ["child"]
    assert seen_by(pulse.context)[WHO] == "parent"


def test_the_context_of_a_callback_is_seen_on_asyncio():
    """There is no task to ask."""

    async def main():
        pulse, seen = Pulse(), asyncio.get_running_loop().create_future()
        WHO.set("caller")
        asyncio.get_running_loop().call_soon(lambda: seen.set_result(seen_by(pulse.context)[WHO]))
        return await seen

    assert asyncio.run(main()) == "caller"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_to_ask_a_loop_that_has_closed_is_harmless(backend):
    """A watchdog may learn too late that everything is over."""

    async def make():
        return Pulse()

    pulse = anyio.run(make, backend=backend)
    in_thread(pulse.ask)
    assert pulse.beats == 0


def test_uvloop_which_shows_no_frames_answers_when_asked():
    """Then it is never thought to be asleep, and what it does not show is None."""
    pytest.importorskip("uvloop")

    async def main():
        pulse = Pulse()
        in_thread(pulse.ask)
        asleep = await anyio.to_thread.run_sync(pulse.is_asleep)
        await settle()
        return asleep, pulse.beats

    assert anyio.run(main, backend_options={"use_uvloop": True}) == (False, 1)


async def test_a_loop_on_which_nobody_has_anything_to_do_is_quiet():
    """Those who wait for others do not count."""
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep_forever)
        await settle()
        with others_watched() as is_quiet:
            await checkpoint()
            await checkpoint()
            for _ in range(3):
                await checkpoint()
                assert is_quiet()
        group.cancel_scope.cancel()


async def test_a_loop_on_which_somebody_has_a_turn_each_time_is_never_quiet():
    """Whether that one comes before or after who asks: trio leaves that to chance."""

    async def busy():
        while True:
            await checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(busy)
        await settle()
        with others_watched() as is_quiet:
            answers = []
            for _ in range(100):
                await checkpoint()
                answers.append(is_quiet())
        group.cancel_scope.cancel()
    assert not any(answers)


async def test_tasks_that_hand_on_to_one_another_keep_a_loop_from_being_quiet():
    """One of them has a turn at any time."""
    events = [anyio.Event() for _ in range(100)]

    async def hand_on(number):
        await events[number].wait()
        events[number + 1].set()

    async with anyio.create_task_group() as group:
        for number in range(99):
            group.start_soon(hand_on, number)
        await settle()
        with others_watched() as is_quiet:
            events[0].set()
            await checkpoint()
            while not events[-1].is_set():
                assert not is_quiet()
                await checkpoint()
