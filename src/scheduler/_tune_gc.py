"""Python's garbage collector, tuned so that collections do not stop an event loop.

A scheduler leaves no garbage in cycles. Yet a collection looks at all jobs: a million objects stop the loop for a
quarter of a second.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

Thresholds = tuple[int, int, int]

SELDOM: Final[Thresholds] = (5_000, 10, 10)
"""As `gc.set_threshold` takes them.

At Python's own first threshold, 700 or 2,000 new objects, a few hundred runs would be promoted as lasting objects.
"""

OF_PYTHON: Final = 1_000
"""The most frozen objects that count as the interpreter's: Python 3.12 freezes 375."""


class _Collector:
    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._found: Thresholds = gc.get_threshold()
        self._set = self._found
        self._has_frozen = False

    def tune(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._found = gc.get_threshold()
                self._set = _seldom(self._found)
                gc.set_threshold(*self._set)
                # else the program has frozen objects, and may again
                self._has_frozen = gc.get_freeze_count() < OF_PYTHON
            if self._has_frozen:
                gc.collect()  # frozen garbage would stay
                gc.freeze()

    def restore(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if gc.get_threshold() == self._set:  # else the program has set them meanwhile
                gc.set_threshold(*self._found)
            if self._has_frozen:
                gc.unfreeze()


_collector: Final = _Collector()


@contextmanager
def tune_gc() -> Iterator[None]:
    """Keep garbage collections from stopping the event loop, until the end of the block.

    Enter it when modules, caches and the first jobs are loaded. Python collects once, which takes as long as one full
    collection, and freezes all objects: later collections skip them. New objects are collected after every 5,000 of
    them, not after 700 or 2,000 (`gc.get_threshold`).

    Memory stays flat: new cycles are found, and older objects are freed when nothing refers to them. Only an older
    object that becomes part of a cycle stays until the block ends.

    Your own settings win: frozen objects, higher thresholds, collections switched off. The end of the block restores
    everything. You may enter it many times, in any thread: the last exit restores.
    """
    _collector.tune()
    try:
        yield
    finally:
        _collector.restore()


def _seldom(found: Thresholds) -> Thresholds:
    """A threshold of 0 stays: it switches collections off."""
    first, second, third = (each and max(each, ours) for each, ours in zip(found, SELDOM, strict=True))
    return first, second, third
