"""A queue and a pool in a process that was forked off their own."""

import os

import anyio
import pytest

from forks import in_fork, refusal
from timerqueue import Lifecycle, LifecycleState, TaskPool, TimerQueue

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")


async def nothing():
    """Take no time."""


def test_a_queue_refuses_in_a_fork():
    """It took the call, and never made it."""
    queue = TimerQueue()
    timer = queue.push(0, print)
    said = in_fork(
        lambda: [refusal(call) for call in (lambda: queue.push(0, print), queue.run, timer.cancel, queue.stop)]
    )
    assert ["LifecycleError" in names for names, _ in said] == [True] * 4
    assert {"TimerQueue belongs to process" in text for _, text in said} == {True}
    assert len(queue) == 1


def test_a_pool_refuses_in_a_fork():
    """Its workers are tasks of a loop that does not run there."""

    async def main():
        async with TaskPool() as pool:
            return in_fork(lambda: [refusal(pool.start_soon, nothing), refusal(pool.resize, 3)])

    said = anyio.run(main)
    assert ["LifecycleError" in names for names, _ in said] == [True] * 2


def test_a_lifecycle_has_stopped_in_a_fork_of_a_fork_too():
    """The error names the process that it was made in."""
    lifecycle = Lifecycle("Thing")

    def in_grandchild():
        return in_fork(lambda: [lifecycle.state.name, refusal(lifecycle.start)])

    state, (names, text) = in_fork(in_grandchild)
    assert state == LifecycleState.STOPPED.name
    assert "LifecycleError" in names
    assert f"this Thing belongs to process {os.getpid()}" in text
    assert lifecycle.state is LifecycleState.PRE_RUNNING
