"""The agent, put together: a configuration becomes jobs of a scheduler whose events are shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from anyio.abc import TaskGroup
from attrs import evolve, frozen

from schedule import After, Every, Missed, Schedule
from scheduler import (
    Event,
    InvalidJob,
    JobNotFound,
    MissedReason,
    RunMissed,
    Scheduler,
    SchedulerStarted,
    StoreDown,
    StoreError,
    StoreTakenOver,
    tune_gc,
)
from timerqueue import Clock

from .checks import Holdups, Mode, Resolver, Status, TargetCheck
from .config import Config, Start, Target, without_collections
from .show import Display, Monitor, View
from .signals import listen_to_signals
from .targets import TASK, Board, CheckTask, Gate, Probe, Recall, Sooner, TargetStatus
from .text import Redactor

GRACE: Final = 5.0
"""Seconds that running checks have to end in once the agent is told to stop."""

CUT_OFF_AFTER: Final = 5.0
"""Seconds after the timeouts of its attempts at which a check that does not end by itself is cut off."""


CRASH_FLOOR: Final = 10.0
"""Seconds for which a check that ran when its process died does not start again."""

SHORTEST_GRACE: Final = 1.0
GRACE_OF_CALENDARS: Final = 60.0

SETTLED: Final = 0.2
"""Seconds after the start in which the scheduler finds what was due before it."""


@frozen(kw_only=True)
class Plan:
    """How long to run. `once`: each check one time. `seconds`: stop after so many; None: when told to."""

    once: bool = False
    seconds: float | None = None


async def run(config: Config, display: Display, plan: Plan, clock: Clock, resolver: Resolver | None = None) -> int:
    """Run the checks until the plan is fulfilled or a signal comes.

    The exit code: 0; 1 if a second signal cut it off, or for `once` if something is neither up nor degraded. Before
    anything has started it raises InvalidJob if a schedule has no start left, and StoreError if the store cannot be
    opened; after a clean end NotShown, if that came because nothing could be shown any more, and StoreTakenOver if it
    came because the store is another agent's now.
    """
    with without_collections():
        agent = _Agent(config, display, plan, clock, resolver)
    try:
        return await agent.run()
    except BaseExceptionGroup as group:  # of the task groups here and in the scheduler
        troubles, others = group.split(StoreError)
        if troubles is None or others is not None:
            raise
        raise _first(troubles) from None


class _Agent:
    """One run: its scheduler, how its targets stand, and who shows that."""

    def __init__(
        self, config: Config, display: Display, plan: Plan, clock: Clock, resolver: Resolver | None = None
    ) -> None:
        self._config = config
        self._plan = plan
        self._clock = clock
        store = config.store.make()
        self._has_past = store is not None
        self._scheduler = Scheduler(
            config.limits.total,
            config.limits.named,
            clock=clock,
            store=store,
            crash_floor=CRASH_FLOOR,
            retention=config.retention,
        )
        enabled = [target for target in config.targets if target.is_enabled]
        self._statuses = {
            each.name: _status_of(each, retry_interval=0.0 if plan.once else each.retry_interval) for each in enabled
        }
        redactor = Redactor(config.secrets)
        self._board = Board(self._statuses.values(), redactor.clean)
        self._monitor = Monitor(display, self._scheduler.stop, redactor.clean)
        self._board.subscribe(self._monitor.hear)
        self._board.subscribe(Sooner(self._scheduler).hear)
        self._scheduler.listen(self._board.listen)
        self._scheduler.listen(self._listen)
        self._recall = Recall(self._scheduler, self._statuses, self._board.remembered, clock, redactor.clean)
        resolver = Resolver(config.hosts) if resolver is None else resolver
        self._holdups = Holdups(clock)
        checks = {each.name: _check_of(each, resolver, clock, redactor, self._holdups) for each in enabled}
        checks = {name: evolve(check, attempts=self._statuses[name].attempts) for name, check in checks.items()}
        probes = [
            Probe(each.name, _check_of(each, resolver, clock, redactor, self._holdups))
            for each in config.network.probes
        ]
        gate = Gate(clock, probes, config.network.every)
        task = CheckTask(checks, self._statuses, self._recall.recall, clock, gate)
        self._scheduler.register(TASK, task.run)
        for target in enabled:
            _add(self._scheduler, target, None if plan.once else target.start, config.network.longest)
        self._is_open = anyio.Event()
        self._patient: set[str] = set()
        self._taken_over: str | None = None
        """The agent that has the store now, in the words of the store."""

    async def run(self) -> int:
        plan, monitor = self._plan, self._monitor
        monitor.hold()
        with tune_gc():  # modules, targets and jobs are there by now, and nothing is due yet that could be late
            is_forced = await self._run_checks()
        monitor.show(lambda display: display.stopped(self._board.summary()))
        if monitor.trouble is not None:
            raise monitor.trouble
        if self._taken_over is not None:
            raise StoreTakenOver(self._taken_over)
        return 1 if is_forced or (plan.once and not all(map(_is_well, self._statuses.values()))) else 0

    async def _run_checks(self) -> bool:
        """Run the scheduler, and beside it what belongs to it. True: a second signal cut it off."""
        plan, scheduler = self._plan, self._scheduler
        async with _watched(scheduler, self._monitor, self._clock) as (group, is_forced):
            group.start_soon(self._holdups.watch)
            if self._has_past:
                group.start_soon(self._show_past)
            if plan.seconds is not None:
                group.start_soon(self._stop_after, plan.seconds)
            await (scheduler.run_once() if plan.once else scheduler.run())
        return bool(is_forced)

    def _listen(self, event: Event) -> None:
        if isinstance(event, SchedulerStarted):
            try:
                self._begin()
            finally:
                self._is_open.set()
        elif isinstance(event, RunMissed) and event.reason is MissedReason.NO_ROOM:
            self._let_wait(event.job_id)
        elif isinstance(event, StoreDown) and event.is_taken_over:
            self._taken_over = event.error
            self._scheduler.stop(GRACE)

    def _let_wait(self, name: str) -> None:
        """Let the checks of a target wait for room, however late they are: it might be left out every time."""
        if name in self._statuses and name not in self._patient:
            self._patient.add(name)
            with suppress(JobNotFound):  # its schedule has ended
                self._scheduler.get(name).update(missed=Missed.LATEST)

    def _begin(self) -> None:
        """Show what there is, once the store is open and read, and remove jobs whose targets are gone."""
        store = str(self._config.store) if self._has_past else None
        targets = list(self._statuses.values())
        self._monitor.begin(View(targets=targets, scheduler=self._scheduler, now=self._clock.wall, store=store))
        for warning in self._config.all_warnings:
            self._monitor.notice(warning)
        gone = [job for job in self._scheduler.jobs() if TASK in job.tags and job.id not in self._statuses]
        for job in gone:
            job.remove()
        if gone:
            names = ", ".join(job.id for job in gone)
            self._monitor.notice(f"no longer checked, because the configuration says so: {names}; their history stays")

    async def _stop_after(self, seconds: float) -> None:
        await self._is_open.wait()
        await self._clock.sleep(seconds)
        self._scheduler.stop(GRACE)

    async def _show_past(self) -> None:
        """Show how the targets stood, and how much has been left out since."""
        await self._is_open.wait()
        await self._recall.recall_all()
        await self._clock.sleep(SETTLED)
        self._board.tell_downtime()


def _first(group: BaseExceptionGroup[StoreError]) -> StoreError:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _is_well(target: TargetStatus) -> bool:
    return bool(target.checks_now) and target.status in (Status.UP, Status.DEGRADED)


def _status_of(target: Target, *, retry_interval: float) -> TargetStatus:
    return TargetStatus(
        target.name,
        str(target.check.url),
        target.kind,
        target.max_attempts,
        is_verified=not target.is_unverified,
        grace=grace_of(target.schedule),
        retry_interval=retry_interval,
        failing_interval=target.failing_interval,
    )


def _check_of(target: Target, resolver: Resolver, clock: Clock, redactor: Redactor, holdups: Holdups) -> TargetCheck:
    return TargetCheck(
        check=target.check,
        needs=target.needs,
        timeout=target.timeout,
        mode=target.mode,
        family=target.family,
        degraded_above=target.degraded_above,
        resolver=resolver,
        clock=clock,
        redactor=redactor,
        needs_at=target.needs_at,
        is_resolved=target.is_resolved,
        holdups=holdups,
    )


def _add(scheduler: Scheduler, target: Target, start: Start | None, gate: float) -> None:
    """Add the job of a target. `gate`: seconds for which a failed check may wait to hear whether we are offline."""
    # Each address of Mode.ALL, and whatever a redirect leads to, waits for room by itself: only its parts have a time.
    waits_inside = target.mode is Mode.ALL or getattr(target.check, "redirects", 0) > 0
    timeout = None if waits_inside else target.max_attempts * target.timeout + gate + CUT_OFF_AFTER
    try:
        scheduler.add(
            TASK,
            target.schedule,
            id=target.name,
            args=(target.name,),
            needs=target.needs,
            timeout=timeout,
            missed=Missed.SKIP,
            grace=grace_of(target.schedule),
            start=start,
            on_conflict="update",
            tags=(TASK, *target.tags),
        )
    except InvalidJob as exc:  # only the clock can say that a schedule is over
        msg = f"check {target.name!r}: {exc}"
        raise InvalidJob(msg) from None


def grace_of(schedule: Schedule) -> float:
    """Seconds that a check may be late. What is later, after a downtime above all, is left out: so the checks keep
    their places instead of starting together. Where there is no room for all, that is given up: see `_let_wait`.
    """
    if isinstance(schedule, (Every, After)):
        return max(schedule.interval.total_seconds() / 10, SHORTEST_GRACE)
    return GRACE_OF_CALENDARS


@asynccontextmanager
async def _watched(scheduler: Scheduler, monitor: Monitor, clock: Clock) -> AsyncIterator[tuple[TaskGroup, list[bool]]]:
    """Listen to signals and refresh the display while the body runs. Tasks of the group end with the body; the list is
    not empty if a second signal cut the body off.
    """
    is_forced: list[bool] = []

    def stop() -> None:
        if scheduler.statistics().active_tasks:
            monitor.notice(f"stopping: running checks have {GRACE:g} s; Ctrl-C once more stops at once")
        scheduler.stop(GRACE)

    def stop_at_once() -> None:
        is_forced.append(True)
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        await group.start(listen_to_signals, stop, stop_at_once, monitor.notice)
        group.start_soon(_refresh, monitor, clock)
        yield group, is_forced
        group.cancel_scope.cancel()


async def _refresh(monitor: Monitor, clock: Clock) -> None:
    """Redraw as often as the display wants."""
    while (seconds := monitor.refresh_every) is not None:
        await clock.sleep(seconds)
        monitor.show(lambda display: display.refresh())
