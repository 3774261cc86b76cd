"""Trust: whether stored jobs start here. Of a store that agents share the clock is asked, too.

A clock that was set is followed only once the store's clock agrees: until then time goes on as if nobody had touched
it. A tick that is due while the clock is not trusted is left where it is, without a record. Another agent starts it
when its shard has gone there, or we do once the clock is trusted again. Nothing of it has been written meanwhile, so no
start is an hour ahead when the others read it.

So are ticks of jobs left that are about to go to another agent, and that would run all the time otherwise. Lives on the
loop.
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


class Trust:
    """The trust in one scheduler's clock. Nobody doubts it before `watch`."""

    def __init__(self, starts: Starts, listeners: Listeners) -> None:
        self.is_given = True
        """Whether stored jobs start by our clock."""
        self.is_whole = True
        """All of them do: `leave` need not be asked."""
        self.is_off = False
        """The clock is further from the others' than it may be."""
        self._starts = starts
        self._listeners = listeners
        self._look: Callable[[float], object] | None = None
        self._leaves = True
        self._left: dict[Job, None] = {}
        """Jobs that were due meanwhile."""
        self._withheld: frozenset[Job] = frozenset()

    def watch(self, ask: Callable[[], object], look: Callable[[float], object], *, leaves: bool) -> None:
        """Follow a step of the clock only after `judge`, from now on. `ask`: has the store's clock asked soon. `look`:
        looks at our clock, at this monotonic time. `leaves`: ticks that are due may be left; False: a queue says when
        they are due, and takes none back that has come out.
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
        """Leave the ticks of these jobs, and no longer of those that were named before."""
        self._withheld = frozenset(jobs)
        self._go_on()

    def leave(self, job: Job) -> bool:
        """Let a tick that is due be due, and nothing else. False: it starts nevertheless."""
        if not self._leaves or (self.is_given and job not in self._withheld):
            return False
        self._left[job] = None
        return True

    def has_left(self, job: Job) -> bool:
        """Whether a tick of the job waits until the clock is trusted, or the job has gone to another agent."""
        return job in self._left

    def judge(self, skew: Skew, *, is_off: bool, most: float | None, is_idle: bool) -> None:
        """The store's clock has been asked. `is_idle`: no job of the store is ours, so none is planned by our clock."""
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
        """Let what was left start, unless there is a reason to leave it."""
        self.is_whole = self.is_given and not self._withheld
        if self.is_given and self._left:
            going = [job for job in self._left if job not in self._withheld]
            in_slices(self._starts.queue, iter(going), self._plan)

    def _plan(self, job: Job) -> None:
        """Let a tick that was left start now, unless somebody else has decided about it."""
        self._left.pop(job, None)
        if job.slot == OUT and job.due_us is not None and not job.is_elsewhere and not job.is_removed:
            self._starts.plan(job, job.due_us)

    def _tell(self, skew: Skew, most: float | None) -> None:
        at = instant_at(self._starts.queue.clock.wall())
        if self.is_off:
            text = "this machine's clock is %+.3f s off, and may be %g: its part of the store goes to other agents"
            logger.warning(text, skew.seconds, most or 0.0)
            self._listeners.tell(SkewTooLarge(at, skew.seconds, most or 0.0))
        else:
            logger.info("this machine's clock is right again, within %.3f s of the store's", abs(skew.seconds))
            self._listeners.tell(SkewEnded(at, skew.seconds))
