"""Signals that end the agent: the first lets running checks end, the second does not."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import anyio
from anyio.abc import TaskStatus


async def listen_to_signals(
    stop: Callable[[], None],
    stop_at_once: Callable[[], None],
    reload: Callable[[], None],
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Call `stop` at the first signal and `stop_at_once` at the second. The end of a terminal counts as a first one;
    without a terminal SIGHUP asks daemons to read their configuration again, and calls `reload`.
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
    """Signals that end the agent. Where the end of the terminal is ignored, as under nohup, it stays so."""
    yield from (signal.SIGINT, signal.SIGTERM)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP


def _has_terminal() -> bool:
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        with suppress(ValueError):  # it is closed
            if stream is not None and stream.isatty():
                return True
    return False
