"""Notices from another thread that the event loop does not move, and says whose code it is stuck in."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from logging import getLogger
from typing import Final

from timerqueue import TaskPool, Work

from ._events import LoopBlocked

logger = getLogger(__name__)

LOOKS_PER_PERIOD: Final = 4


class StallWatch:
    """Looks several times in `seconds` whether the same piece of work is being run without letting go of the loop.

    `report` is called in the watching thread, once per stall. Real time: it is not for simulated clocks.
    """

    def __init__(self, pool: TaskPool, seconds: float, report: Callable[[LoopBlocked], None]) -> None:
        self._crew = pool.crew
        self._seconds = seconds
        self._report = report
        self._loop_thread = threading.get_ident()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="scheduler stall watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        suspect: tuple[Work, int] | None = None
        looks = 0
        while not self._end.wait(self._seconds / LOOKS_PER_PERIOD):
            current = self._crew.current
            seen = None if current is None else (current, self._crew.steps)
            looks = looks + 1 if seen is not None and seen == suspect else 0
            suspect = seen
            if looks == LOOKS_PER_PERIOD and current is not None:
                self._tell(current)

    def _tell(self, work: Work) -> None:
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - the documented way to another thread's stack
        stack = "" if frame is None else "".join(traceback.format_stack(frame))
        job_id = getattr(getattr(work, "job", None), "id", None)
        logger.warning("the event loop is blocked by job %r for %g s or more:\n%s", job_id, self._seconds, stack)
        self._report(LoopBlocked(job_id, self._seconds, stack))
