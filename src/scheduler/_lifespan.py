"""The life of one scheduler, from its start to its last event.

start -> the pool opens -> load -> the queue runs -> stop -> grace -> cancel what runs -> close
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

BEFORE_HANDOFF_S: Final = 0.1
"""Seconds from a stop to the handoff of idle jobs to other nodes."""

LOOK_EVERY: Final = 10.0
"""Seconds between looks at a wall clock that does not announce steps."""


class Lifespan:
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
        """Set at the beginning, or at a `failure`."""
        self.failure: Exception | None = None
        self._stall_watch: StallWatch | None = None
        self._has_begun = False
        self._has_ended = False

    @property
    def state(self) -> LifecycleState:
        return self._lifecycle.state

    @property
    def jobs(self) -> int:
        return len(self._core.jobs)

    @property
    def stalls(self) -> int:
        """How often the event loop stood still."""
        return 0 if self._stall_watch is None else self._stall_watch.stalls

    def stop(self, grace: float) -> None:
        """`grace` in seconds."""
        first = self._lifecycle.stop()
        self._core.runs.stop_starting()  # a second caller relies on this, even before the first has come here
        if first:
            self._grace = grace
            logger.info("the scheduler stops; what runs has %g s", grace)
            self._core.loop.call(self._stop_asked.set)  # also before it ran: another thread may just have begun
            if not self._has_begun:
                self._registry.answer_all()

    async def let_time_pass(self) -> None:
        """Move a clock that is moved by hand until `run` is over: its user cannot move it any more.

        Time passes while every run sleeps on that clock.
        """
        clock: Any = self._clock
        if hasattr(clock, "travel_until"):
            await clock.travel_until(lambda: self._has_ended, lambda: 0 < clock.asleep(RUN) >= self._pool.active)

    def start(self) -> None:
        """Start the lifecycle, on the loop. Raises LifecycleError."""
        # The thread comes first: a caller that sees the scheduler run must know which thread is the loop's.
        if self._lifecycle.state is LifecycleState.PRE_RUNNING:
            self._core.loop.adopt_thread()
        self._lifecycle.start()
        self._has_begun = True

    async def run(self) -> None:
        try:
            await self._live()
        finally:
            self._has_ended = True

    async def _live(self) -> None:
        self._core.loop.begin()
        watch = self._stall_watch = self._start_stall_watch()
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
                    cut_off = cut_off or self._running_ids()  # this finds runs only if it is cancelled from outside
                    self._core.runs.stop(only_waiting=False)
                    self._core.queue.fire_until(AT_ONCE)  # requests since the last turn are carried out or missed
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
        if self._memory is None:
            group.start_soon(self._queue_runs, name="scheduler timer queue")
            return
        first_loaded = anyio.Event()

        async def queue_runs() -> None:
            await first_loaded.wait()
            await self._queue_runs()

        group.start_soon(queue_runs, name="scheduler timer queue")
        try:
            await self._memory.load(first_loaded, group)
        except Exception as exc:  # noqa: BLE001 - `raise_failure` raises it, where no group wraps it
            self.failure = self._lifecycle.failure = exc
            self._core.runs.stop_starting()
            first_loaded.set()

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def _queue_runs(self) -> None:
        with suppress(LifecycleError):  # it was stopped before it could begin
            self._look_again()
            await self._core.queue.run()

    def _look_again(self) -> None:
        self._watchdog.ensure()
        if not getattr(self._clock, "announces_steps", False):  # a user's clock may not say
            self._core.queue.push(self._clock.monotonic() + LOOK_EVERY, self._look_again)

    async def _wind_down(self) -> tuple[str, ...]:
        """Return the ids of jobs whose runs were cut off."""
        self._core.runs.stop(only_waiting=True)
        grace = self._grace
        if self._memory is not None and self._core.jobs.ownership.is_shared and grace > BEFORE_HANDOFF_S:
            await self._idle(BEFORE_HANDOFF_S)
            grace -= BEFORE_HANDOFF_S
            if self._core.runs.active:
                self._memory.membership.give_away()
        await self._idle(grace)
        cut_off = self._running_ids()
        self._core.runs.stop(only_waiting=False)
        await self._idle(None)
        return cut_off

    def _hand_over(self) -> None:
        """Leave due ticks to the next scheduler: no request touches this scheduler's jobs any more."""
        for job in self._core.jobs.jobs():
            if job.backlog:
                job.backlog = None

    def _running_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.job.id for run in self._core.runs.oldest_first()))

    async def _idle(self, within: float | None) -> None:
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
