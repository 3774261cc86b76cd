"""Membership: a scheduler with a queue among the agents that share a store. Its jobs come and go by the queue."""

from __future__ import annotations

from .shards import Shards


class Membership(Shards):
    """Our lease, and the burial of agents whose leases have ended: what they had taken may be taken from then on.

    Shards are claimed as by any other agent, so that an agent sees who is there; no job comes or goes with them.
    """

    leaves_ticks = False

    async def join(self) -> list[int]:
        """Hold our lease. No job is ours until it comes out of the queue."""
        await super().join()
        return []

    async def _follow(self) -> float | None:
        view = self._view
        if view is not None and self.lease.is_held():
            self._core.runs.marks.settled()
            self._meet(view)
        return None
