"""The life of one scheduler: it starts, reads its store, lets the queue run, winds down and says its last words.

start -> (the pool opens) -> load -> the queue runs -> stop is asked for -> grace -> what runs is cut off -> close
"""

from __future__ import annotations

from contextlib import suppress
from logging import getLogger
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from timerqueue import Lifecycle, LifecycleError, LifecycleState, SystemClock

from ._control import Registry
from ._jobs import RUN
from ._loop import Core, StallWatch
from ._memory import Memory
from ._plan import AT_ONCE, instant_at
from ._values import SchedulerStarted, SchedulerStopped
from ._watchdog import Watchdog

logger = getLogger(__name__)

SHORT: Final = 0.1
"""Seconds that what runs has at a stop before the other agents of the store get what does not run."""

LOOK_EVERY: Final = 10.0
"""Seconds after which the wall clock is looked at even if nothing is due, unless it says itself when it was set."""


class Lifespan:
    """Runs once."""

    def __init__(
        self,
        *,
        core: Core,
        registry: Registry,
        lifecycle: Lifecycle,
        memory: Memory | None,
        watchdog: Watchdog,
        blocked_after: float | None,
    ) -> None:
        self._clock = core.clock
        self._pool = core.pool
        self._core = core
        self._registry = registry
        self._listeners = core.listeners
        self._lifecycle = lifecycle
        self._memory = memory
        self._watchdog = watchdog
        self._blocked_after = blocked_after
        self._grace = 0.0
        self._stop_asked = anyio.Event()
        self.started = anyio.Event()
        """It has begun, or it could not: then there is a `failure`."""
        self.failure: Exception | None = None
        self._has_begun = False
        self._has_ended = False

    @property
    def state(self) -> LifecycleState:
        """PRE_RUNNING, RUNNING, or STOPPED as soon as `stop` is called."""
        return self._lifecycle.state

    @property
    def jobs(self) -> int:
        """How many jobs there are."""
        return len(self._core.jobs)

    def stop(self, grace: float) -> None:
        """As Scheduler.stop."""
        first = self._lifecycle.stop()
        self._core.runs.stop_starting()  # whoever comes second may rely on it, though the first has not come so far
        if first:
            self._grace = grace
            logger.info("the scheduler stops; what runs has %g s", grace)
            self._core.loop.call(self._stop_asked.set)  # before it ran too: it may just have begun
            if not self._has_begun:
                self._registry.answer_all()

    async def let_time_pass(self) -> None:
        """On a clock that is moved by hand: until `run` is over, for nobody else may move it any more.

        Time passes while all that runs sleeps on that clock. What waits for anything else takes the time that it takes.
        """
        clock: Any = self._clock
        if hasattr(clock, "travel_until"):
            await clock.travel_until(lambda: self._has_ended, lambda: 0 < clock.asleep(RUN) >= self._pool.active)

    def start(self) -> None:
        """Win the start. Raises LifecycleError."""
        # The thread comes first: whoever sees the scheduler run must know whom to ask.
        if self._lifecycle.state is LifecycleState.PRE_RUNNING:
            self._core.loop.adopt_thread()
        self._lifecycle.start()
        self._has_begun = True

    async def run(self) -> None:
        """Until it has been stopped and nothing of it runs any more."""
        try:
            await self._live()
        finally:
            self._has_ended = True

    async def _live(self) -> None:
        self._core.loop.begin()
        watch = self._start_stall_watch()
        cut_off: tuple[str, ...] = ()
        try:
            async with anyio.create_task_group() as group, self._pool:
                try:
                    await self._load(group)
                    self.started.set()
                    if self.failure is None:
                        self._watchdog.begin()
                        self._listeners.tell(SchedulerStarted(instant_at(self._clock.wall())))
                        await self._stop_asked.wait()
                    self._watchdog.end()
                    cut_off = await self._wind_down()
                finally:
                    self._lifecycle.stop()
                    self._core.runs.stop_starting()
                    cut_off = cut_off or self._running_ids()  # those are some only if it is cancelled from outside
                    self._core.runs.stop(only_waiting=False)
                    self._core.queue.fire_until(AT_ONCE)  # what was asked for since the last turn is done or missed
                    self._registry.early.renewals.settle_all()
                    self._core.queue.stop()
                    if self._memory is not None:
                        self._memory.end()
        finally:
            if self._memory is not None:
                await self._memory.close()
                self._hand_over()
            if watch is not None:
                watch.stop()
            self._registry.answer_all()
            logger.info("the scheduler has stopped; cut off: %s", ", ".join(cut_off) or "nothing")
            self._listeners.tell(SchedulerStopped(instant_at(self._clock.wall()), cut_off))

    async def _load(self, group: TaskGroup) -> None:
        """Start the timer queue; with a store as soon as the jobs that start soonest have been read."""
        if self._memory is None:
            group.start_soon(self._queue_runs, name="scheduler timer queue")
            return
        first_loaded = anyio.Event()

        async def queue_runs() -> None:
            await first_loaded.wait()
            await self._queue_runs()

        group.start_soon(queue_runs, name="scheduler timer queue")
        try:
            await self._memory.load(first_loaded)
            if self._memory.shards is not None:
                group.start_soon(self._memory.shards.run, name="scheduler shards")
            if self._memory.audit is not None:
                group.start_soon(self._memory.audit.run, name="scheduler queue audit")
        except Exception as exc:  # noqa: BLE001 - raised where it is not wrapped in the groups' errors
            self.failure = self._lifecycle.failure = exc
            self._core.runs.stop_starting()
            first_loaded.set()

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def _queue_runs(self) -> None:
        """The timer queue, with a look at the clock even when nothing is due."""
        with suppress(LifecycleError):  # stopped before it could begin
            self._look_again()
            await self._core.queue.run()

    def _look_again(self) -> None:
        self._watchdog.ensure()
        if not getattr(self._clock, "announces_steps", False):  # a clock of somebody's own may not say
            self._core.queue.push(self._clock.monotonic() + LOOK_EVERY, self._look_again)

    async def _wind_down(self) -> tuple[str, ...]:
        """Wait for what runs, then cut it off. The ids of the jobs that were."""
        self._core.runs.stop(only_waiting=True)
        grace = self._grace
        if self._memory is not None and self._memory.shards is not None and grace > SHORT:
            await self._idle(SHORT)
            grace -= SHORT
            if self._core.runs.active:
                self._memory.shards.give_away()
        await self._idle(grace)
        cut_off = self._running_ids()
        self._core.runs.stop(only_waiting=False)
        await self._idle(None)
        return cut_off

    def _hand_over(self) -> None:
        """Leave what is still due to the next scheduler: nothing asked of this one's jobs from now on touches it."""
        for job in self._core.jobs.jobs():
            if job.backlog:
                job.backlog = None

    def _running_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.job.id for run in self._core.runs.oldest_first()))

    async def _idle(self, within: float | None) -> None:
        """Return when no run goes on, or after so many seconds."""
        if not self._core.runs.active:
            return
        event = anyio.Event()
        self._core.runs.call_when_idle(event.set)
        if within is not None:
            self._core.queue.push(self._clock.monotonic() + within, event.set)
        await event.wait()

    def _start_stall_watch(self) -> StallWatch | None:
        if self._blocked_after is None or not isinstance(self._clock, SystemClock):
            return None
        watch = StallWatch(self._pool, self._blocked_after, self._registry.tell)
        watch.start()
        return watch
