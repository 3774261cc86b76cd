"""Simulations: what a scheduler would do in a year, in seconds. Time jumps from one due instant to the next.

The order is always the same. Time goes on only while every run sleeps, and one sleeper at a time is woken. Runs
cancelled at one instant end in the event loop's order. Trio draws that by lot, and a call from a thread takes one more
turn, so all lots are made equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import cached_property
from heapq import heappop
from importlib import import_module
from typing import Any, Final

import anyio
from anyio.lowlevel import checkpoint
from attrs import define, field, fields, frozen

from schedule import duration as length_of
from timerqueue import seeded_random
from timerqueue.testing import START, ManualClock

from .._jobs import RUN, Handle as Job, JobAttempt
from .._lifespan import Lifespan
from .._running import SchedulerState
from .._scheduler import Scheduler
from .._values import Event, JobAdded, JobStatistics, RunEnded, SchedulerStarted, SchedulerStatistics

__all__ = ["Build", "Simulation", "simulate"]

Duration = timedelta | float | str

Build = Callable[[Scheduler, ManualClock], Coroutine[Any, Any, None] | None]
"""Adds the jobs. An `async def` runs next to the scheduler, and may sleep and change jobs."""

TURNS_TO_NOTICE: Final = 5
"""Turns of the event loop until a run or the scheduler notices its end."""

_NOT_LOGGED: Final = frozenset({"job_id", "results", "traceback"})


@frozen
class Simulation:
    """The outcome of a simulation. The same jobs with the same seed have equal logs.

    `times`: the wall clock at each event, in UTC seconds since 1970. `jobs`: counts by id, removed jobs included.
    """

    events: tuple[Event, ...] = field(repr=False)
    times: tuple[float, ...] = field(repr=False)
    statistics: SchedulerStatistics
    jobs: Mapping[str, JobStatistics] = field(repr=False)

    def runs(self, job_id: str) -> list[RunEnded]:
        """Return how a job's runs ended, in order."""
        return [event for event in self.events if isinstance(event, RunEnded) and event.job_id == job_id]

    def log(self) -> list[str]:
        """Return a line per event: when, what, which job, and all but results and tracebacks."""
        return list(map(_line, self.times, self.events))


def simulate(
    build: Build,
    duration: Duration,
    *,
    start: datetime = START,
    seed: int = 0,
    backend: str = "asyncio",
    steps: Iterable[tuple[Duration, float]] = (),
    **options: Any,
) -> Simulation:
    """Let `build(scheduler, clock)` add jobs, run them for `duration` of simulated time, then cancel what still runs.

    `clock.sleep(...)` takes simulated time. A job that waits for anything else, even a worker thread, waits in real
    time while simulated time stands still, perhaps forever.

    `steps`: pairs of when, from the start, and how many seconds the wall clock is set forward (negative: back). A
    suspend is a step forward. `seed`: for the jitter of retries. `backend`: "asyncio" or "trio". `options`: those of
    Scheduler.

    Raises what `build` raises.
    """
    length = length_of(duration).total_seconds()
    due_steps = sorted((length_of(when).total_seconds(), seconds) for when, seconds in steps)
    within = [(when, seconds) for when, seconds in due_steps if when <= length]
    world = _World(build, length, within, start, seed, options)
    with _in_order() if backend == "trio" else nullcontext():
        return anyio.run(world.run, backend=backend)


@frozen
class _EqualLots:
    lots: Any

    def random(self) -> float:
        return 0.25

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lots, name)


@contextmanager
def _in_order() -> Iterator[None]:
    """Make trio's order repeatable. There is no public way; if this one fails, only the order is lost.

    If hypothesis is loaded, trio sorts tasks by age and shuffles them.
    """
    trio = vars(import_module("trio._core._run"))
    in_order: dict[str, Any] = {"_r": _EqualLots(trio.get("_r")), "_ALLOW_DETERMINISTIC_SCHEDULING": False}
    before = {name: trio[name] for name in in_order if name in trio}
    trio.update({name: in_order[name] for name in before})
    try:
        yield
    finally:
        trio.update(before)


class _Clock(ManualClock):
    def __init__(self, start: datetime) -> None:
        super().__init__(start, autojump=True)
        self.is_ending: Callable[[], bool] = lambda: False
        self._sleepers_of: dict[JobAttempt, int] = {}

    @property
    def sleeping(self) -> int:
        """Tasks of the pool, without abandoned ones and a run's own tasks."""
        of_runs = self._sleepers_of.items()
        return len(self._sleepers) - sum(count - run.open_tasks for run, count in of_runs if count > run.open_tasks)

    async def sleep(self, seconds: float) -> None:
        run = RUN.get(None)
        if run is None:
            await super().sleep(seconds)
            return
        sleepers = self._sleepers_of
        sleepers[run] = sleepers.get(run, 0) + 1
        try:
            await super().sleep(seconds)
        finally:
            sleepers[run] -= 1
            if not sleepers[run]:
                del sleepers[run]

    async def jump_when_idle(self, until: float, is_over: Callable[[], bool]) -> None:
        """If all are idle, move to `until` or the first sleep's end."""
        if self.is_ending() or any(run.cause is not None for run in self._sleepers_of):
            for _ in range(TURNS_TO_NOTICE):
                await checkpoint()
        if not self._wakes or not self.is_idle() or (until == math.inf and not self._sleepers):
            await checkpoint()
        elif is_over():
            return
        # A sleeper whose time is `until` itself has to wait: it and what the queue starts now would race.
        elif self._sleepers and self._sleepers[0][0] < until:
            self.wake_first()
        else:
            self._monotonic = until

    def wake_first(self) -> None:
        if self._sleepers:
            due, _, event = heappop(self._sleepers)
            self._monotonic = max(self._monotonic, due)
            event.set()


class _SimulatedLife(Lifespan):
    @cached_property
    def has_wound_down(self) -> anyio.Event:
        return anyio.Event()

    async def _wind_down(self) -> tuple[str, ...]:
        cut_off = await super()._wind_down()
        self.has_wound_down.set()
        return cut_off


class _Simulated(Scheduler):
    _kind_of_life = _SimulatedLife

    @property
    def life(self) -> _SimulatedLife:
        assert isinstance(self._life, _SimulatedLife)
        return self._life


@define
class _Recorder:
    scheduler: Scheduler
    clock: _Clock
    events: list[Event] = field(factory=list)
    times: list[float] = field(factory=list)
    jobs: dict[str, Job] = field(factory=dict)
    started: anyio.Event = field(factory=anyio.Event)

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self.times.append(self.clock.wall())
        if isinstance(event, JobAdded):
            self.jobs[event.job_id] = self.scheduler.get(event.job_id)
        elif isinstance(event, SchedulerStarted):
            self.started.set()

    def simulation(self) -> Simulation:
        counts = {job_id: job.statistics() for job_id, job in self.jobs.items()}
        return Simulation(tuple(self.events), tuple(self.times), self.scheduler.statistics(), counts)


@define
class _World:
    build: Build
    seconds: float
    steps: list[tuple[float, float]]
    start: datetime
    seed: int
    options: Mapping[str, Any]
    others: int = 0
    """Tasks outside the pool, asleep whenever time may go on."""
    outside: anyio.CancelScope | None = None
    error: Exception | None = None

    async def run(self) -> Simulation:
        clock = _Clock(self.start)
        scheduler = _Simulated(clock=clock, random=seeded_random(self.seed), **self.options)
        recorder = _Recorder(scheduler, clock)
        scheduler.listen(recorder)
        pool = scheduler._pool  # noqa: SLF001 - a package may know itself
        clock.is_idle = lambda: pool.active + self.others <= clock.sleeping
        clock.is_ending = lambda: scheduler.state is SchedulerState.STOPPED
        build = self.build(scheduler, clock)
        self.others = 1 if build is None else 2
        async with anyio.create_task_group() as group:
            group.start_soon(self._go_on_outside, build, recorder)
            group.start_soon(self._let_the_deaf_end, scheduler, clock)
            await scheduler.run()
            group.cancel_scope.cancel()
        if self.error is not None:
            raise self.error
        return recorder.simulation()

    async def _go_on_outside(self, build: Coroutine[Any, Any, None] | None, recorder: _Recorder) -> None:
        await recorder.started.wait()
        async with anyio.create_task_group() as group:
            self.outside = group.cancel_scope
            group.start_soon(self._let_time_pass, recorder.scheduler, recorder.clock)
            if build is not None:
                group.start_soon(self._build_beside, build, recorder.scheduler)

    async def _build_beside(self, build: Coroutine[Any, Any, None], scheduler: Scheduler) -> None:
        try:
            await build
        except Exception as exc:  # noqa: BLE001 - raised again when all has come to its end
            self.error = exc
            scheduler.stop(grace=0)
        finally:
            self.others -= 1

    async def _let_time_pass(self, scheduler: Scheduler, clock: _Clock) -> None:
        begin = clock.monotonic()
        try:
            for when, seconds in self.steps:
                await clock.sleep(begin + when - clock.monotonic())
                clock.step(seconds)
            await clock.sleep(begin + self.seconds - clock.monotonic())
        finally:
            self.others -= 1
        scheduler.stop(grace=0)
        self._end_outside()

    async def _let_the_deaf_end(self, scheduler: _Simulated, clock: _Clock) -> None:
        """Let tasks end that ignored their cancellation."""
        await scheduler.life.has_wound_down.wait()
        self._end_outside()
        for _ in range(TURNS_TO_NOTICE):
            await checkpoint()
        while True:
            clock.wake_first()
            await checkpoint()

    def _end_outside(self) -> None:
        if self.outside is not None:
            self.outside.cancel()


def _line(time: float, event: Event) -> str:
    at = datetime.fromtimestamp(time, UTC).isoformat(timespec="microseconds")
    parts = [
        f"{name}={_said(value)}" for name, value in _details(event) if name not in _NOT_LOGGED and value is not None
    ]
    return " ".join((at, type(event).__name__, getattr(event, "job_id", "-"), *parts))


def _said(value: Any) -> Any:
    return value.isoformat(timespec="microseconds") if isinstance(value, datetime) else value


def _details(event: Event) -> Iterable[tuple[str, Any]]:
    return ((attribute.name, getattr(event, attribute.name)) for attribute in fields(type(event)))
