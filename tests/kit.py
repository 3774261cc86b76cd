"""What tests in many places use: waits that do not hang, and counts that stand where others would take the time."""

import sys
import time
from contextlib import suppress

import anyio

PATIENCE = 60.0
"""Seconds after which a test gives up waiting for threads, processes and servers. A guard, and no claim about speed."""


async def until(holds):
    """Wait for what threads or other processes do, while the loop goes on."""
    with anyio.fail_after(PATIENCE):
        while not holds():  # noqa: ASYNC110 - nobody there would set an event
            await anyio.sleep(0.01)


def wait_until(holds):
    """Wait for what threads or other processes do."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE:.0f} s"
        time.sleep(0.01)


def lines_of(call, *args, suppressing=ValueError):
    """Count the lines of Python that run during a call, whatever it raises of this kind.

    Seconds depend on the machine and on who else uses it; lines do not.
    """
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(suppressing):
            call(*args)
    finally:
        sys.settrace(before)
    return count
