"""How users run a scheduler: as a context manager, until it ends, or each job once."""

from __future__ import annotations

import enum
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

import anyio
from anyio.abc import TaskGroup

from timerqueue import Clock, Lifecycle, LifecycleError, LifecycleState, Resident

from ._control import RunOnce
from ._lifespan import Lifespan
from ._loop import Core
from ._shape import seconds_of, some_seconds_of
from ._values import RunEnded
from ._words import refuse_verb


class SchedulerState(enum.Enum):
    """The state of a scheduler, which only goes forward."""

    PRE_RUNNING = LifecycleState.PRE_RUNNING.value
    RUNNING = LifecycleState.RUNNING.value
    STOPPED = LifecycleState.STOPPED.value


class RunsOnce(Resident):
    """Runs a scheduler: once, in the process that made it."""

    _clock: Clock
    _core: Core
    _life: Lifespan
    _lifecycle: Lifecycle
    _group: TaskGroup | None

    @property
    def state(self) -> SchedulerState:
        """PRE_RUNNING, RUNNING or, as soon as `stop` is called, STOPPED."""
        return SchedulerState(self._life.state.value)

    def __repr__(self) -> str:
        return f"<Scheduler {self._life.state.value}, {self._life.jobs} jobs>"

    if not TYPE_CHECKING:  # type checkers refuse unknown attributes by themselves

        def __getattr__(self, name: str) -> NoReturn:
            refuse_verb(name)

        def __enter__(self) -> NoReturn:
            msg = "a Scheduler runs on an event loop: write `async with`, or for a thread see docs/recipes.md"
            raise TypeError(msg)

        def __exit__(self, *_: object) -> None:
            """Exist: `with` looks for it before it calls __enter__."""

    def _refuse_unless_running(self, what: str) -> None:
        if self._lifecycle.state is not LifecycleState.RUNNING:
            msg = f"cannot {what}: this scheduler is {self.state.value}, and not running"
            raise LifecycleError(msg)

    def stop(self, grace: timedelta | float | str = "5s") -> None:
        """Start nothing more, let runs go on for `grace`, then cancel them. Any thread.

        This returns at once; `run` returns when everything has ended. More calls change nothing. A forked child's
        scheduler has stopped already. In a handler of `signal.signal`, which interrupts the loop at any point, do not
        call it: use `anyio.open_signal_receiver`.
        """
        seconds = seconds_of("grace", grace)
        self._life.stop(seconds)

    async def run(self) -> None:
        """Run until `stop`. Raises LifecycleError if the scheduler has run or stopped before."""
        self._life.start()
        await self._life.run()
        self._life.raise_failure()

    async def run_once(
        self,
        *,
        timeout: timedelta | float | str | None = None,  # noqa: ASYNC109 - by the scheduler's clock, and it raises nothing
    ) -> dict[str, RunEnded]:
        """Run every job once, now, with all its subtasks, then stop. Return how each ended, by job id.

        Schedules are ignored; limits, timeouts and retries hold. Other nodes' jobs are left to them. The answer leaves
        out removed jobs, and runs that had not ended after `timeout`.
        """
        seconds = some_seconds_of("timeout", timeout)
        self._life.start()
        self._core.runs.run_on_demand()
        ended: dict[str, RunEnded] = {}
        async with anyio.create_task_group() as group:
            group.start_soon(self._life.run, name="scheduler")
            await self._life.started.wait()
            if self._life.failure is None:
                ended = await self._once(seconds)
            self.stop(grace=0)
        self._life.raise_failure()
        return ended

    async def _once(self, seconds: float | None) -> dict[str, RunEnded]:
        jobs = [job for job in self._core.jobs.jobs() if not job.is_elsewhere]
        waiting = RunOnce(jobs, self._core.listeners, self._core.loop.call_soon)
        for job in jobs:
            self._core.runs.start_now(job)
        if seconds is not None:
            self._core.queue.push(self._clock.monotonic() + seconds, waiting.give_up)
        await waiting.wait()
        return waiting.ended

    async def __aenter__(self) -> Self:
        self._life.start()
        self._group = await anyio.create_task_group().__aenter__()
        self._group.start_soon(self._life.run, name="scheduler")
        try:
            await self._life.started.wait()
        except BaseException as exc:
            self.stop(grace=0)
            await self._group.__aexit__(type(exc), exc, exc.__traceback__)
            raise
        if self._life.failure is not None:
            await self._group.__aexit__(None, None, None)
            self._life.raise_failure()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._group is not None
        self.stop(grace=0 if exc is not None else "5s")
        try:
            await self._life.let_time_pass()
        finally:
            # The error of the body propagates by itself: the group only waits for `run`.
            await self._group.__aexit__(None, None, None)
