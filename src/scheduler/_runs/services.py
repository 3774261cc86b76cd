"""Services for one run, for which nobody has to know the other runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from logging import getLogger

from timerqueue import LifecycleError, Needs, TaskPool, TimerQueue, Work

from .._jobs import Attempt
from .._plan import Timeline, instant_of
from .._values import InvalidJob, JobState, Listeners, RunAbandoned, Step, advance
from .deadline import Deadline

logger = getLogger(__name__)


class Services:
    """Deadlines, clocks, limits, and the end by force. The base of Runs."""

    pool: TaskPool
    queue: TimerQueue
    timeline: Timeline
    listeners: Listeners
    monotonic: Callable[[], float]
    kill_after: float

    def check_needs(self, needs: Needs) -> None:
        """Raise UnknownLimit, or InvalidJob for more units than a limit will ever have."""
        try:
            self.pool.check(needs)
        except ValueError as exc:
            msg = f"needs: {exc}: need fewer, or give the limit more (limits={{...}}, Scheduler.resize)"
            raise InvalidJob(msg) from None

    def arm_deadline(self, deadline: Deadline) -> None:
        """Let the deadline's time begin now."""
        with suppress(LifecycleError):  # the queue has stopped, and with it every wait
            self.queue.arm(deadline, self.monotonic() + deadline.seconds)

    def disarm_deadline(self, deadline: Deadline) -> None:
        """Take the deadline back."""
        self.queue.disarm(deadline)
        deadline.let_go()

    def run_terminates(self, run: Attempt) -> None:
        """Say of its job that a run of it has been cancelled and goes on."""
        if run.job.state is JobState.RUNNING:
            run.job.state = advance(run.job.state, Step.TERMINATE)

    def kill(self, run: Attempt, works: Sequence[Work]) -> None:
        """End the work of a run by force, and tell of it."""
        logger.warning("a run of job %r ignored its cancellation for %g s: it is given up", run.job.id, self.kill_after)
        for work in works:
            self.pool.kill(work)
        self.listeners.tell(RunAbandoned(run.job.id, instant_of(run.due_us), self.kill_after))

    def is_cancellation(self, error: BaseException) -> bool:
        """Whether what is being told of its end by `error` has been cancelled, by us or from outside."""
        return self.pool.workers.is_cancellation(error)

    def utc(self, monotonic: float) -> float:
        """Return a moment of the monotonic clock in UTC seconds."""
        return monotonic + self.timeline.offset

    def wall_us(self, monotonic: float) -> int:
        """Return a moment of the monotonic clock in UTC microseconds."""
        return self.timeline.us(monotonic, steady=False)
