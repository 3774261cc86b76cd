"""Python's garbage collector, set so that its collections do not stop an event loop that is to be punctual.

A scheduler leaves no garbage in circles: what has ended is freed by counting references. All that the collector does
about its jobs is to look at them, again and again, and while it looks the loop stands still: a quarter of a second for
a million objects. So what is loaded is frozen, and the others are looked at less often.

The collector belongs to the process, and so may others who use it. What they have set counts for more than what is set
here, and at the end all is as it was found.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

Thresholds = tuple[int, int, int]

SELDOM: Final[Thresholds] = (5_000, 10, 10)
"""As `gc.set_threshold` takes them. Of Python's own, 700 or 2,000 new objects, a few hundred runs at a time have more,
and each collection that comes while they go on takes them for objects that stay.
"""

OF_PYTHON: Final = 1_000
"""Fewer frozen objects than this are the interpreter's own, as the 375 of Python 3.12: nobody has frozen anything."""


class _Collector:
    """The one of this process, with all that use it at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._found: Thresholds = gc.get_threshold()
        self._set = self._found
        self._has_frozen = False

    def tune(self) -> None:
        """Freeze what is there by now, and look at the rest less often."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._found = gc.get_threshold()
                self._set = _seldom(self._found)
                gc.set_threshold(*self._set)
                self._has_frozen = gc.get_freeze_count() < OF_PYTHON  # else somebody has, and may do it again
            if self._has_frozen:
                gc.collect()  # garbage is not to be frozen
                gc.freeze()

    def restore(self) -> None:
        """Let it be as it was found, once the last of its users is gone."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if gc.get_threshold() == self._set:  # else somebody has other plans by now
                gc.set_threshold(*self._found)
            if self._has_frozen:
                gc.unfreeze()


_collector: Final = _Collector()


@contextmanager
def tune_gc() -> Iterator[None]:
    """Keep garbage collections from stopping the event loop, until the end of the block.

    Enter it when everything is loaded: modules, caches, and the first jobs. Python then collects once and freezes what
    is loaded, which takes as long as one full collection. After that the collector does not look at it any more. It
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
    """At least ours, but for a threshold of 0, by which collections are off."""
    first, second, third = (each and max(each, ours) for each, ours in zip(found, SELDOM, strict=True))
    return first, second, third
