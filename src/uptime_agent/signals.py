"""Signals: the first lets running checks end, the second does not."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from scheduler import Scheduler
from timerqueue import Clock

from .show import Monitor

GRACE: Final = 5.0
"""Seconds for running checks to end."""


async def listen_to_signals(
    stop: Callable[[], None],
    stop_at_once: Callable[[], None],
    reload: Callable[[], None],
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Call `stop` at the first signal, `stop_at_once` at the second.

    SIGHUP without a terminal calls `reload`. Otherwise it says that the terminal has closed, and counts as a first
    signal.
    """
    if sys.platform == "win32":  # has no such signals: there Ctrl-C interrupts
        task_status.started()
        return
    with anyio.open_signal_receiver(*_signals()) as signals:
        task_status.started()
        async for number in signals:
            if number != signal.SIGHUP or _has_terminal():
                stop()
                break
            reload()
        async for number in signals:
            if number != signal.SIGHUP:
                stop_at_once()


def _signals() -> Iterator[signal.Signals]:
    """An ignored SIGHUP, as under nohup, stays ignored."""
    yield from (signal.SIGINT, signal.SIGTERM)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP


def _has_terminal() -> bool:
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        with suppress(ValueError):  # it is closed
            if stream is not None and stream.isatty():
                return True
    return False


@asynccontextmanager
async def attended(
    scheduler: Scheduler, monitor: Monitor, clock: Clock, reload: Callable[[], None]
) -> AsyncIterator[tuple[TaskGroup, list[bool]]]:
    """Listen to signals and refresh the display while the body and the group's tasks run.

    A second signal cuts the body off and fills the list.
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
        await group.start(listen_to_signals, stop, stop_at_once, reload)
        group.start_soon(_redraw, monitor, clock)
        yield group, is_forced
        group.cancel_scope.cancel()


async def _redraw(monitor: Monitor, clock: Clock) -> None:
    while (seconds := monitor.refresh_every) is not None:
        await clock.sleep(seconds)
        monitor.show(lambda display: display.refresh())
