"""Slices: what concerns many jobs is done for some at a time, so that nothing else on the loop waits for all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Final, TypeVar

from timerqueue import LifecycleError, TimerQueue

from .._plan import AT_ONCE

T = TypeVar("T")

SLICE: Final = 200
"""Jobs that are seen to in one go."""


def in_slices(queue: TimerQueue, items: Iterator[T], do: Callable[[T], object]) -> None:
    """Call `do` with some of the items now, and with the rest in turns of the queue to come. On the loop.

    The rest is left undone when the queue stops. The iterator may bring items that came meanwhile.
    """
    count = 0
    for count, item in enumerate(islice(items, SLICE), start=1):  # noqa: B007 - counted for what follows
        do(item)
    if count == SLICE:
        with suppress(LifecycleError):  # the queue has stopped
            queue.push(AT_ONCE, in_slices, queue, items, do)
