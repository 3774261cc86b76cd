"""What tests in many places use: tasks, instants, a listener that remembers, waits that do not hang, and counts that
stand where others would take the time.
"""

import importlib.util
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from anyio.lowlevel import checkpoint

from scheduler import RunEnded, RunMissed, RunStarted
from timerqueue.testing import START

T0 = START.timestamp()
"""Where a ManualClock begins, in UTC seconds."""


async def nothing(*_, **__):
    """Take no time, whatever is given."""


async def broken(*_, **__):
    """Fail at once."""
    raise ValueError


def no_hint():
    """Tell nobody that a store has changed."""


def at(seconds):
    """Return the instant so many seconds after the start."""
    return START + timedelta(seconds=seconds)


def when(number):
    """Return UTC seconds as an instant."""
    return datetime.fromtimestamp(number, UTC)


def relative(instants):
    """Return instants, or UTC seconds, as seconds from the start, to the microsecond."""
    return [round(since_start(instant), 6) for instant in instants]


def since_start(instant):
    """Return an instant, or UTC seconds, as seconds from the start."""
    return (instant.timestamp() if isinstance(instant, datetime) else instant) - T0


PATIENCE = 60.0
"""Seconds after which a test gives up waiting for threads, processes and servers. A guard, and no claim about speed."""


async def settle(turns=20):
    """Give everybody on the loop some turns."""
    for _ in range(turns):
        await checkpoint()


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


def check_every_slot(ticks, interval_us):
    """See that each slot of an interval, from the first record to the last, is in one of them.

    Those that were missed for one reason have one record together; one among them may have another reason.
    """
    first = min(tick.due_us for tick in ticks)
    last = max(tick.last_due_us or tick.due_us for tick in ticks)
    found, slots = sum(tick.count for tick in ticks), (last - first) / interval_us + 1
    assert found == slots, f"{found} of {slots:g} slots: {[tick[:12] for tick in ticks]}"


def examples(number):
    """Return how many examples a property gets that has so many by hand: fewer in proportion in .ci/run."""
    from hypothesis import settings  # noqa: PLC0415 - benchmarks use this file where there are no properties to try

    return max(number * settings.default.max_examples // 100, 1)


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


class Recorder(list):
    """Every event that it was told, in that order."""

    __call__ = list.append

    def of(self, *kinds, job_id=None):
        """Return the events of these kinds, of one job if it is named."""
        return [e for e in self if isinstance(e, kinds) and job_id in (None, getattr(e, "job_id", None))]

    def starts(self, job_id=None):
        """Return when runs began, in UTC seconds."""
        return [event.started.timestamp() for event in self.of(RunStarted, job_id=job_id)]

    def outcomes(self, job_id=None):
        """Return how runs ended."""
        return [event.outcome for event in self.of(RunEnded, job_id=job_id)]

    def missed(self, job_id=None):
        """Return (count, reason) of each report of missed ticks."""
        return [(event.count, event.reason) for event in self.of(RunMissed, job_id=job_id)]


needs_re2 = pytest.mark.skipif(
    importlib.util.find_spec("re2") is None, reason="needs google-re2, which comes with the extra `regex`"
)
"""Marks what a regular expression of a configuration is tested by. There is no wheel for the newest Python yet."""
