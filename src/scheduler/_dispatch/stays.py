"""Stays: which of the jobs that are with us have been so for a while.

Nearly all leave again within milliseconds. One timer, twice a second, finds those that do not, however many come and
go. Lives on the loop.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from timerqueue import LifecycleError

from .._loop import Core
from .held import Held, Hold

EVERY: Final = 0.5
"""Seconds from one look to the next: a stay is long after one to two of them."""


class Stays:
    """The stays of jobs at one scheduler."""

    def __init__(self, held: Held, core: Core) -> None:
        self._held = held
        self._core = core
        self._new: dict[str, Hold] = {}
        """Those that have been seen since the last look."""
        self._old: dict[str, Hold] = {}
        """Those that were seen before it."""
        self._is_armed = False

    def see(self, job_id: str, hold: Hold) -> None:
        """Have the state of this job written once more, with its next execution, should it still be here in a while."""
        if self._old.get(job_id) is not hold:
            self._new[job_id] = hold
        if not self._is_armed:
            self._arm()

    def _arm(self) -> None:
        self._is_armed = True
        with suppress(LifecycleError):  # the loop ends: whatever is here is released by the last commit
            self._core.queue.push(self._core.monotonic() + EVERY, self._look)

    def _look(self) -> None:
        long, self._old, self._new = self._old, self._new, {}
        for job_id, hold in long.items():
            job = self._core.jobs.find(job_id)
            if job is not None and self._held.by_id.get(job_id) is hold:
                hold.is_long = True
                self._core.journal.touch(job)
        self._is_armed = False
        if self._old:
            self._arm()
