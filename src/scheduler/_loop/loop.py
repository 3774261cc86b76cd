"""On whose thread things happen, and by which clock.

Jobs start, end and are planned on the event loop's thread, in callbacks of the timer queue: no locks. A turn:

    look at the clock -> fire what is due (turn.py) -> let the new runs begin
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from logging import getLogger
from threading import Event, get_ident
from typing import Final

from timerqueue import LifecycleError, LifecycleState, SystemClock

from .._jobs import JobList
from .._journal import Journal
from .._plan import AT_ONCE, JUMP, instant_at
from .._starts import CalendarJobs, Pausing, Starts
from .._values import ClockJumped, Listeners

logger = getLogger(__name__)

LOOK_S: Final = 1.0
"""Seconds between looks whether a loop that does not answer has stopped."""


class Loop:
    def __init__(
        self,
        *,
        starts: Starts,
        pausing: Pausing,
        calendar_jobs: CalendarJobs,
        jobs: JobList,
        journal: Journal,
        listeners: Listeners,
    ) -> None:
        self.queue = starts.queue
        self.timeline = starts.timeline
        self.monotonic = starts.monotonic
        self._starts = starts
        self._pausing = pausing
        self._calendar_jobs = calendar_jobs
        self._jobs = jobs
        self._journal = journal
        self._listeners = listeners
        self._thread: int | None = None

    def begin(self) -> None:
        self.adopt_thread()
        self.look_at_clock(self.monotonic())

    def adopt_thread(self) -> None:
        self._thread = get_ident()

    @property
    def is_here(self) -> bool:
        """On the loop's thread, or before it has one."""
        return self._thread is None or self._thread == get_ident()

    def call(self, func: Callable[..., object], *args: object) -> None:
        """Call it on the loop: now if it is here or has stopped, else soon."""
        if not self.is_here:
            with suppress(LifecycleError):  # the loop has stopped: call it here
                self.queue.push(AT_ONCE, func, *args)
                return
        func(*args)

    def call_soon(self, func: Callable[..., object], *args: object) -> None:
        """Call it in the loop's next turn, never after its end. Any thread."""
        with suppress(LifecycleError):
            self.queue.push(AT_ONCE, func, *args)

    async def caught_up(self) -> None:
        """Return when all earlier calls of any thread have been carried out. Any thread's event loop."""
        if self._thread is None:  # calls act where they are made
            return
        wake = SystemClock().make_wake()  # a wait that the loop's thread may end
        done = Event()

        def reached() -> None:
            done.set()
            wake.set()

        with suppress(LifecycleError):  # the loop has stopped: calls were carried out where they were made
            self.queue.push(AT_ONCE, reached)
            while not done.is_set() and self.queue.state is not LifecycleState.STOPPED:
                await wake.wait(LOOK_S)

    def look_at_clock(self, now: float) -> None:
        """Replan after a step or a suspend. `now`: monotonic seconds."""
        jumped = self.timeline.look(now)
        if not jumped:
            return
        logger.info("the wall clock is %+.3f s off its course: calendar jobs are planned again", jumped)
        if abs(self.timeline.step) > JUMP:
            logger.warning("the wall clock has jumped by %+.3f s", self.timeline.step)
            self._listeners.tell(ClockJumped(instant_at(now + self.timeline.offset), self.timeline.step))
        self._pausing.look_at_clock()
        jobs = self._jobs.jobs()
        for job in self._starts.floors.moved(round(jumped * 1e6), jobs):
            self._journal.touch(job)
        self._calendar_jobs.replan(jobs, jumped, now)
