"""Deadlines, clocks, limits, and the end by force, for runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from logging import getLogger

from timerqueue import LifecycleError, Needs, TaskPool, TimerQueue, Work

from .._jobs import JobAttempt
from .._plan import Timeline, instant_of
from .._values import InvalidJob, JobState, LifeStep, Listeners, RunAbandoned, advance
from .deadline import Deadline

logger = getLogger(__name__)


class Services:
    pool: TaskPool
    queue: TimerQueue
    timeline: Timeline
    listeners: Listeners
    monotonic: Callable[[], float]
    kill_after: float

    def check_needs(self, needs: Needs) -> None:
        """Raise UnknownLimit, or InvalidJob for more units than a limit has."""
        try:
            self.pool.check(needs)
        except ValueError as exc:
            msg = f"needs: {exc}: need fewer, or give the limit more (limits={{...}}, Scheduler.resize)"
            raise InvalidJob(msg) from None

    def arm_deadline(self, deadline: Deadline) -> None:
        with suppress(LifecycleError):  # the queue has stopped, and with it every wait
            self.queue.arm(deadline, self.monotonic() + deadline.seconds)

    def disarm_deadline(self, deadline: Deadline) -> None:
        self.queue.disarm(deadline)
        deadline.let_go()

    def run_terminates(self, run: JobAttempt) -> None:
        if run.job.state is JobState.RUNNING:
            run.job.state = advance(run.job.state, LifeStep.TERMINATE)

    def kill(self, run: JobAttempt, works: Sequence[Work]) -> None:
        logger.warning("a run of job %r ignored its cancellation for %g s: it is given up", run.job.id, self.kill_after)
        for work in works:
            self.pool.kill(work)
        self.listeners.tell(RunAbandoned(run.job.id, instant_of(run.due_us), self.kill_after))

    def is_cancellation(self, error: BaseException) -> bool:
        return self.pool.workers.is_cancellation(error)

    def utc(self, monotonic: float) -> float:
        """Convert monotonic to UTC seconds."""
        return monotonic + self.timeline.offset

    def wall_us(self, monotonic: float) -> int:
        """Convert monotonic seconds to UTC microseconds."""
        return self.timeline.us(monotonic, steady=False)
