"""Python's garbage collector, tuned so that its collections do not stop an event loop.

A scheduler leaves no garbage in cycles: counting references frees what has ended. The collector can only look at its
jobs again and again. A look at a million objects stops the loop for a quarter of a second. So `tune_gc` freezes loaded
objects, and has the collector look at the others less often.

The collector belongs to the process, and others may have tuned it. Their settings win over these, and at the end all is
as it was found.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

Thresholds = tuple[int, int, int]

SELDOM: Final[Thresholds] = (5_000, 10, 10)
"""The thresholds, as `gc.set_threshold` takes them.

Python's own first threshold is 700 or 2,000 new objects. A few hundred runs at a time have more, and each collection
during a run takes its objects for objects that stay.
"""

OF_PYTHON: Final = 1_000
"""The most frozen objects that the interpreter may have frozen itself: Python 3.12 freezes 375."""


class _Collector:
    """The collector of this process, and how many users it has at the moment."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._found: Thresholds = gc.get_threshold()
        self._set = self._found
        self._has_frozen = False

    def tune(self) -> None:
        """Freeze the present objects, and look at the rest less often."""
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
        """Restore the settings that were found, once the last user is gone."""
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

    Enter it when everything is loaded: modules, caches, and the first jobs. Python then collects once and freezes all
    objects, which takes as long as one full collection. After that the collector does not look at these any more. It
    looks at new objects after every 5,000 of them, not after every 700 or 2,000 (`gc.get_threshold`).

    Reference cycles that are made inside the block are found as before, so memory stays flat. An older object is freed
    when nothing refers to it any more. Only an older object that has become part of a cycle stays until the block ends.

    Your own settings win: frozen objects, higher thresholds, collections that are switched off. At the end of the block
    everything is as it was. You may enter it many times, in any thread: the last to leave restores.
    """
    _collector.tune()
    try:
        yield
    finally:
        _collector.restore()


def _seldom(found: Thresholds) -> Thresholds:
    """Return thresholds of at least ours. A threshold of 0 stays: it switches collections off."""
    first, second, third = (each and max(each, ours) for each, ours in zip(found, SELDOM, strict=True))
    return first, second, third
