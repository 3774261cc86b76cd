from __future__ import annotations

from logging import getLogger

from timerqueue import TimerQueue

from .._jobs import Job
from .._values import JobParked, Listeners, error_text, loggable
from .answers import answer_given_up

logger = getLogger(__name__)


class Parking:
    def __init__(self, queue: TimerQueue, listeners: Listeners) -> None:
        self._queue = queue
        self._listeners = listeners

    def park(self, job: Job, error: Exception) -> None:
        self.park_because(job, f"its schedule failed: {error_text(error)}", error)

    def park_because(self, job: Job, reason: str, error: Exception | None = None) -> None:
        self._queue.disarm(job)
        self.cancel_retry(job)
        job.due_us = None
        job.fault = reason
        job.is_parked = True
        job.settle_pause()
        logger.error("job %r is parked: %s", job.id, reason, exc_info=None if error is None else loggable(error))
        job.settle_state()
        self._listeners.tell(JobParked(job.id, reason))

    def cancel_retry(self, job: Job) -> None:
        if job.again is not None:
            self._queue.disarm(job.again)
            job.again = None
            answer_given_up(job)
