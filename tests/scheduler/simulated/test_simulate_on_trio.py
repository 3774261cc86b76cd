"""Trio draws lots for the order of tasks. A simulation on it is the same each time, whatever else the loop does."""

import threading
from contextlib import contextmanager, suppress

import pytest
import trio

from kit import PATIENCE
from scheduler.testing import simulate


@contextmanager
def calling_in():
    """Have a thread call into the event loop of whoever gives it the way, one call after another, until the end."""
    ways, is_there, is_over = [], threading.Event(), threading.Event()

    def call_in():
        is_there.wait(PATIENCE)
        while not is_over.is_set():
            had_turn = threading.Event()
            with suppress(trio.RunFinishedError):
                ways[-1](had_turn.set)
                had_turn.wait(PATIENCE)

    def begin(way):
        ways.append(way)
        is_there.set()

    thread = threading.Thread(target=call_in)
    thread.start()
    try:
        yield begin
    finally:
        is_over.set()
        thread.join()


@pytest.mark.usefixtures("quiet")
def test_who_calls_into_the_loop_from_a_thread_changes_nothing():
    """It takes a turn more for that, and drew a lot for each turn: the order of what came later was another."""

    async def build(s, clock):
        call_in(trio.lowlevel.current_trio_token().run_sync_soon)
        for number in range(30):
            s.add(clock.sleep, "@every 3h", id=f"hung-{number}", args=[10**9], timeout="1h", needs="x")

    with calling_in() as call_in:
        first, second = (simulate(build, "3d", backend="trio", limits={"x": 20}) for _ in range(2))
    assert len(first.runs("hung-1")) > 10
    assert first.log() == second.log()
