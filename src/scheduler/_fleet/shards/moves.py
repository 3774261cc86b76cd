"""Tells of moved shards, and asks the store for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from logging import getLogger
from typing import Protocol, TypeVar

from ..._loop import Core
from ..._plan import instant_at
from ..._values import ShardsMoved
from ...stores import OwnedShards

logger = getLogger(__name__)
T = TypeVar("T")


class MoveQuestions(Protocol):
    """Asks the store in a thread, one question at a time."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]: ...


class Moves:
    def __init__(self, core: Core, shares: OwnedShards, ask: MoveQuestions) -> None:
        self._core = core
        self.shares = shares
        self.ask = ask

    def tell(self, began: float, jobs: int, *, taken: int = 0, given: int = 0) -> None:
        """`began`: monotonic seconds."""
        seconds = self._core.monotonic() - began
        where = f"{taken} shards come to us" if taken else f"{given} shards are handed on"
        logger.info("%s with %d jobs in %.3f s, %d are ours", where, jobs, seconds, len(self.shares.all()))
        at = instant_at(self._core.clock.wall())
        self._core.listeners.tell(ShardsMoved(at, taken, given, jobs, seconds))
