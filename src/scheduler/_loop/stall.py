"""Notice that the event loop is stuck, and in whose code."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from logging import getLogger
from typing import Final

from timerqueue import Pulse, TaskPool, Work

from .._jobs import RUN
from .._values import LoopBlocked

logger = getLogger(__name__)

LOOKS_PER_PERIOD: Final = 4


class StallWatch:
    """Checks several times in `seconds` whether the loop has answered, or other work had its turn.

    It counts looks: a stopped process stops this thread too, which calls `report` once per stall. Real time only.
    `stalls`: how many it has found.
    """

    def __init__(self, pool: TaskPool, seconds: float, report: Callable[[LoopBlocked], None]) -> None:
        self._workers = pool.workers
        self._seconds = seconds
        self._report = report
        self.stalls = 0
        self._pulse = Pulse()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="scheduler stall watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        suspect: tuple[Work | None, int, int] | None = None
        looks = 0
        while not self._end.wait(self._seconds / LOOKS_PER_PERIOD):
            seen = self._look()
            looks = looks + 1 if seen is not None and seen == suspect else 0
            suspect = seen
            if looks == LOOKS_PER_PERIOD and seen is not None:
                self._tell(seen[0])

    def _look(self) -> tuple[Work | None, int, int] | None:
        """Equal answers: the loop is stuck. None: it sleeps, and must not be woken."""
        if self._pulse.is_asleep():
            return None
        seen = self._workers.current, self._workers.steps, self._pulse.beats
        self._pulse.ask()
        return seen

    def _tell(self, work: Work | None) -> None:
        self.stalls += 1
        job_id = self._culprit(work)
        frame = self._pulse.frame()
        stack = "" if frame is None else "".join(traceback.format_stack(frame))
        whose = "code that belongs to no job" if job_id is None else f"job {job_id!r}"
        logger.warning("the event loop is blocked by %s for %g s or more:\n%s", whose, self._seconds, stack)
        self._report(LoopBlocked(job_id, self._seconds, stack))

    def _culprit(self, work: Work | None) -> str | None:
        if work is not None:
            return getattr(getattr(work, "job", None), "id", None)
        context = self._pulse.context()
        run = None if context is None else context.get(RUN)
        return None if run is None else run.job.id
