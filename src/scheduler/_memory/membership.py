"""Membership: a scheduler with a queue among the agents that share a store. Its jobs come and go by the queue."""

from __future__ import annotations

from collections.abc import Callable
from logging import getLogger
from typing import Final

from anyio.abc import TaskGroup

from ..stores import StoreError, StoreUnavailable, View
from .shards import ShardParts, Shards

logger = getLogger(__name__)

FORGETS: Final = 300.0
"""Seconds from one look for shards that no job asks for any more to the next."""


class Membership(Shards):
    """Our lease, and the burial of agents whose leases have ended: what they had taken may be taken from then on.

    Shards are claimed as by any other agent, so that an agent sees who is there; no job comes or goes with them.
    On the loop each turn of the lease tells `on_lease` whether it is held, and `on_view` what it has seen, and
    `on_burial` is called when we have buried somebody.
    """

    leaves_ticks = False

    def __init__(
        self,
        parts: ShardParts,
        *,
        on_lease: Callable[[bool], object],
        on_burial: Callable[[], object],
        on_view: Callable[[View], object],
    ) -> None:
        super().__init__(parts)
        self._tell_lease = on_lease
        self._tell_burial = on_burial
        self._tell_view = on_view
        self._forgot_at = 0.0

    async def join(self) -> list[int]:
        """Hold our lease. No job is ours until it comes out of the queue."""
        await super().join()
        assert self._view is not None
        self._tell_view(self._view)
        return []

    async def _follow(self, _group: TaskGroup) -> float | None:
        self._tell()
        view = self._view
        if view is not None and self.lease.is_held():
            self._core.runs.marks.settled()
            self._meet(view)
            self._unplaced.look(view)
            self._tell_view(view)
            if view.labelled:
                await self._forget_empty()
        return None

    async def _forget_empty(self) -> None:
        """Remove shards of labels that no job asks for any more, now and then. No job of ours goes with them."""
        now = self._core.monotonic()
        if now < self._forgot_at + FORGETS:
            return
        self._forgot_at = now
        try:
            await self._ask(self._sharing.forget_empty)
        except StoreUnavailable as exc:
            logger.info("shards of labels stay for now: %s", exc)  # somebody adds many jobs just now

    def _failed(self, error: StoreError) -> None:
        super()._failed(error)
        self._core.loop.call_soon(self._tell)

    def _tell(self) -> None:
        self._tell_lease(self.lease.is_held())

    def _buried(self) -> None:
        self._core.loop.call_soon(self._tell_burial)
