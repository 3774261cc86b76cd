"""Slices: work on many jobs is done for some at a time. Other work on the loop need not wait for all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Final, TypeVar

from timerqueue import LifecycleError, TimerQueue

from .._plan import AT_ONCE

T = TypeVar("T")

SLICE: Final = 200
"""Jobs in one slice."""


def in_slices(queue: TimerQueue, items: Iterator[T], do: Callable[[T], object]) -> None:
    """Call `do` with some of the items now, and with the rest in later turns of the queue. On the loop.

    The rest is left undone when the queue stops. The iterator may bring items that came meanwhile.
    """
    count = 0
    for count, item in enumerate(islice(items, SLICE), start=1):  # noqa: B007 - read after the loop
        do(item)
    if count == SLICE:
        with suppress(LifecycleError):  # the queue has stopped
            queue.push(AT_ONCE, in_slices, queue, items, do)
