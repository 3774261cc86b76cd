"""Moves: it is said which shards have come or gone, and the store is asked for that beside all commits."""

from __future__ import annotations

from collections.abc import Callable
from logging import getLogger
from typing import TypeVar

import anyio
from anyio.to_thread import run_sync

from .._loop import Core
from .._plan import instant_at
from .._values import ShardsMoved
from ..stores import Shares

logger = getLogger(__name__)
T = TypeVar("T")


class Moves:
    """The moves of one scheduler's shards."""

    def __init__(self, core: Core, shares: Shares) -> None:
        self._core = core
        self.shares = shares
        self._one_at_a_time = anyio.CapacityLimiter(1)

    async def ask(self, call: Callable[[], T]) -> T:
        """Ask the store in a thread, over connections that no commit holds up. One question at a time."""
        return await run_sync(call, abandon_on_cancel=True, limiter=self._one_at_a_time)

    def tell(self, began: float, jobs: int, *, taken: int = 0, given: int = 0) -> None:
        """Tell of shards that have come or gone with so many jobs, since that monotonic time."""
        seconds = self._core.monotonic() - began
        where = f"{taken} shards come to us" if taken else f"{given} shards are handed on"
        logger.info("%s with %d jobs in %.3f s, %d are ours", where, jobs, seconds, len(self.shares.all()))
        at = instant_at(self._core.clock.wall())
        self._core.listeners.tell(ShardsMoved(at, taken, given, jobs, seconds))
