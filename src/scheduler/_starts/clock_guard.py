"""ClockGuard: whether stored jobs start here. On the loop.

In a shared store a step of our clock is followed only once the store's clock agrees. A tick due meanwhile is left in
place, without a record: another node starts it after taking its shard, or this node once trusted. So other nodes never
read a start that is an hour ahead. Ticks of jobs about to move are left too, or those jobs would run all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from logging import getLogger

from timerqueue import OUT

from .._jobs import Job
from .._plan import JUMP, Skew, instant_at
from .._values import Listeners, SkewEnded, SkewTooLarge
from .slices import in_slices
from .starts import Starts

logger = getLogger(__name__)


class ClockGuard:
    def __init__(self, starts: Starts, listeners: Listeners) -> None:
        self.is_given = True
        """Stored jobs start by our clock."""
        self.is_whole = True
        """All stored jobs start: `leave` need not be called."""
        self.is_off = False
        """The clock is further off than allowed."""
        self._starts = starts
        self._listeners = listeners
        self._look: Callable[[float], object] | None = None
        self._leaves = True
        self._left: dict[Job, None] = {}
        self._withheld: frozenset[Job] = frozenset()

    def watch(self, ask: Callable[[], object], look: Callable[[float], object], *, leaves: bool) -> None:
        """From now on follow a step of the clock only after `judge`.

        `ask` reads the store's clock soon; `look` reads ours, at this monotonic time. `leaves` False: a queue says when
        ticks are due, and takes none back.
        """

        def stepped(seconds: float) -> None:
            if self.is_given:
                logger.warning(
                    "the wall clock was set by %+.3f s: stored jobs wait until the store's is asked", seconds
                )
                self.is_given = self.is_whole = False
                ask()

        self._look, self._leaves = look, leaves
        self._starts.timeline.follow_only_confirmed(stepped)

    def withhold(self, jobs: Iterable[Job]) -> None:
        self._withheld = frozenset(jobs)
        self._go_on()

    def leave(self, job: Job) -> bool:
        """Leave a due tick in place. False: it starts."""
        if not self._leaves or (self.is_given and job not in self._withheld):
            return False
        self._left[job] = None
        return True

    def has_left(self, job: Job) -> bool:
        return job in self._left

    def judge(self, skew: Skew, *, is_off: bool, most: float | None, is_idle: bool) -> None:
        """Judge our clock by the store's. `is_idle`: none of its jobs is ours."""
        timeline = self._starts.timeline
        if is_off != self.is_off:
            self.is_off = is_off
            self._tell(skew, most)
        if not is_off or is_idle:
            timeline.confirm(skew.offset)
            if self._look is not None:
                self._look(self._starts.monotonic())
        self.is_given = not is_off and abs(timeline.offset - skew.offset) <= JUMP
        self._go_on()

    def _go_on(self) -> None:
        self.is_whole = self.is_given and not self._withheld
        if self.is_given and self._left:
            going = [job for job in self._left if job not in self._withheld]
            in_slices(self._starts.queue, iter(going), self._plan)

    def _plan(self, job: Job) -> None:
        self._left.pop(job, None)
        if job.slot == OUT and job.due_us is not None and not job.is_elsewhere and not job.is_removed:
            self._starts.plan(job, job.due_us)

    def _tell(self, skew: Skew, most: float | None) -> None:
        at = instant_at(self._starts.queue.clock.wall())
        if self.is_off:
            text = "this machine's clock is %+.3f s off, and may be %g: its part of the store goes to other nodes"
            logger.warning(text, skew.seconds, most or 0.0)
            self._listeners.tell(SkewTooLarge(at, skew.seconds, most or 0.0))
        else:
            logger.info("this machine's clock is right again, within %.3f s of the store's", abs(skew.seconds))
            self._listeners.tell(SkewEnded(at, skew.seconds))
