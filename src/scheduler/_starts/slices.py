"""Work on many jobs in slices, so that other work on the loop need not wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Final, TypeVar

from timerqueue import LifecycleError, TimerQueue

from .._plan import AT_ONCE

T = TypeVar("T")

SLICE: Final = 200
"""Jobs."""


def in_slices(queue: TimerQueue, items: Iterator[T], do: Callable[[T], object]) -> None:
    """Call `do` with some items now, and with the rest in later turns. On the loop.

    The rest is left undone when the queue stops. The iterator may bring new items.
    """
    count = 0
    for count, item in enumerate(islice(items, SLICE), start=1):  # noqa: B007 - read after the loop
        do(item)
    if count == SLICE:
        with suppress(LifecycleError):  # the queue has stopped
            queue.push(AT_ONCE, in_slices, queue, items, do)
