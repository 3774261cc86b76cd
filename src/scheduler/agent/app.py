"""The agent, put together: a configuration becomes jobs of a scheduler whose events are shown."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus
from attrs import evolve, frozen

from scheduler import InvalidJob, Scheduler
from timerqueue import Clock

from .config import Config, Start, Target
from .display import Display, View
from .monitor import Monitor
from .probe import Mode, Probe
from .redact import Redactor
from .resolve import Resolver
from .result import Status
from .status import TargetStatus

GRACE: Final = 5.0
"""Seconds that running checks have to end in once the agent is told to stop."""

CUT_OFF_AFTER: Final = 5.0
"""Seconds after the timeouts of its attempts at which a check that does not end by itself is cut off."""


@frozen(kw_only=True)
class Plan:
    """How long to run. `once`: each check one time. `seconds`: stop after so many; None: when told to."""

    once: bool = False
    seconds: float | None = None


async def run(config: Config, display: Display, plan: Plan, clock: Clock, resolver: Resolver | None = None) -> int:
    """Run the checks until the plan is fulfilled or a signal comes.

    The exit code: 0; 1 if a second signal cut it off, or for `once` if something is neither up nor degraded. Raises
    InvalidJob before anything has started if a schedule has no start left.
    """
    scheduler = Scheduler(config.limits.total, config.limits.named, clock=clock)
    enabled = [target for target in config.targets if target.is_enabled]
    statuses = [TargetStatus(each.name, str(each.check.url), each.kind, each.max_attempts) for each in enabled]
    monitor = Monitor(statuses, display, scheduler.stop)
    scheduler.listen(monitor.listen)
    resolver = Resolver(config.hosts) if resolver is None else resolver
    redactor = Redactor(config.secrets)
    for target, status in zip(enabled, statuses, strict=True):
        probe = evolve(_probe(target, resolver, clock, redactor), attempts=status.attempts)
        _add(scheduler, target, probe, start=None if plan.once else target.start)
    view = View(targets=statuses, scheduler=scheduler, now=clock.wall)
    async with _watched(scheduler, monitor, plan, clock) as is_forced:
        monitor.show(lambda display: display.started(view))
        for warning in config.warnings:
            monitor.notice(warning)
        await (scheduler.run_once() if plan.once else scheduler.run())
    monitor.show(lambda display: display.stopped(monitor.summary()))
    return 1 if is_forced or (plan.once and not all(_is_well(each) for each in statuses)) else 0


def _is_well(target: TargetStatus) -> bool:
    return target.status in (Status.UP, Status.DEGRADED)


def _probe(target: Target, resolver: Resolver, clock: Clock, redactor: Redactor) -> Probe:
    return Probe(
        check=target.check,
        needs=target.needs,
        timeout=target.timeout,
        mode=target.mode,
        family=target.family,
        degraded_above=target.degraded_above,
        resolver=resolver,
        clock=clock,
        redactor=redactor,
    )


def _add(scheduler: Scheduler, target: Target, probe: Probe, start: Start | None) -> None:
    # With Mode.ALL the addresses may wait for room one after another, so only each of them has a time.
    timeout = target.max_attempts * probe.timeout + CUT_OFF_AFTER if probe.mode is Mode.ANY else None
    try:
        scheduler.add(
            probe.run,
            target.schedule,
            id=target.name,
            needs=target.needs,
            timeout=timeout,
            start=start,
            tags=target.tags,
        )
    except InvalidJob as exc:  # only the clock can say that a schedule is over
        msg = f"check {target.name!r}: {exc}"
        raise InvalidJob(msg) from None


@asynccontextmanager
async def _watched(scheduler: Scheduler, monitor: Monitor, plan: Plan, clock: Clock) -> AsyncIterator[list[bool]]:
    """While the body runs, listen to signals, watch the time and refresh the display. The list is not empty if a second
    signal cut the body off.
    """
    is_forced: list[bool] = []
    async with anyio.create_task_group() as group:
        await group.start(_stop_on_signals, scheduler, monitor, group, is_forced)
        if plan.seconds is not None:
            group.start_soon(_stop_after, plan.seconds, scheduler, clock)
        group.start_soon(_refresh, monitor, clock)
        yield is_forced
        group.cancel_scope.cancel()


async def _stop_on_signals(
    scheduler: Scheduler,
    monitor: Monitor,
    group: TaskGroup,
    is_forced: list[bool],
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """The first signal lets running checks end, the second does not."""
    if sys.platform == "win32":  # has no such signals: there Ctrl-C interrupts
        task_status.started()
        return
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            if scheduler.statistics().active_tasks:
                monitor.notice(f"stopping: running checks have {GRACE:g} s; Ctrl-C once more stops at once")
            scheduler.stop(GRACE)
            break
        async for _ in signals:
            is_forced.append(True)
            group.cancel_scope.cancel()


async def _stop_after(seconds: float, scheduler: Scheduler, clock: Clock) -> None:
    await clock.sleep(seconds)
    scheduler.stop(GRACE)


async def _refresh(monitor: Monitor, clock: Clock) -> None:
    """Redraw as often as the display wants."""
    while (seconds := monitor.refresh_every) is not None:
        await clock.sleep(seconds)
        monitor.show(lambda display: display.refresh())
