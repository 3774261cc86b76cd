"""Membership: a scheduler with a queue among the agents that share a store. Its jobs come and go by the queue."""

from __future__ import annotations

from collections.abc import Callable

from anyio.abc import TaskGroup

from .shards import Shards


class Membership(Shards):
    """Our lease, and the burial of agents whose leases have ended: what they had taken may be taken from then on.

    Shards are claimed as by any other agent, so that an agent sees who is there; no job comes or goes with them.
    """

    leaves_ticks = False
    on_lease: Callable[[bool], object] | None = None
    """Told by each turn of the lease whether it is held. On the loop."""
    on_burial: Callable[[], object] | None = None
    """Called when we have buried somebody. On the loop."""

    async def join(self) -> list[int]:
        """Hold our lease. No job is ours until it comes out of the queue."""
        await super().join()
        return []

    async def _follow(self, _group: TaskGroup) -> float | None:
        self._tell()
        view = self._view
        if view is not None and self.lease.is_held():
            self._core.runs.marks.settled()
            self._meet(view)
        return None

    def _failed(self) -> None:
        super()._failed()
        self._core.loop.call_soon(self._tell)

    def _tell(self) -> None:
        if self.on_lease is not None:
            self.on_lease(self.lease.is_held())

    def _buried(self) -> None:
        if self.on_burial is not None:
            self._core.loop.call_soon(self.on_burial)
