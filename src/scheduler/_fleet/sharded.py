"""The membership of a node that owns shards, and plans their jobs.

    a shard is ours, and not here yet  -> read its jobs: due ticks are planned, and runs of a dead node are crashes
    a shard of ours is another's       -> once none of its jobs runs, and all is durable: hand it on

All nodes derive the same owners from the present nodes. On the loop.
"""

from __future__ import annotations

from anyio.abc import TaskGroup

from .._restore import RowParts, Rows
from .._values import DispatchStatistics
from ..stores import Assignment, OwnedShards, StoredTick, View
from .all_rows import AllRows
from .node import Node, NodeParts
from .on_node import OnNode
from .shards import Handoff, Moves, Takeover


class Sharded(OnNode):
    leaves_ticks = True

    def __init__(self, parts: NodeParts, shares: OwnedShards, rows: RowParts) -> None:
        self.node = Node(parts, self)
        self._sharing = parts.sharing
        self._shares = shares
        self._core = parts.core
        self._commits = parts.commits
        moves = Moves(parts.core, shares, self.node.ask)
        self._takeover = Takeover(parts.sharing, moves, self.node.go_on, parts.ways.tried, rows)
        self._handoff = Handoff(parts.sharing, moves, parts.core, lambda: self.node.lease.turns)

    async def join(self) -> None:
        view = await self.node.join()
        self._shares.take(view.ours())

    def rows(self) -> Rows:
        return AllRows(self._sharing, self._shares.all())

    def cut_off(self) -> list[StoredTick]:
        """Return our shards' RUNNING ticks of dead nodes."""
        shards = self._shares.all()
        return self._takeover.of_the_gone(self._sharing.running(shards), shards)

    def owed(self) -> list[StoredTick]:
        return self._sharing.owed(self._shares.all())

    def queue_statistics(self) -> DispatchStatistics | None:
        return None

    # -- what the node asks for ----------------------------------------------------------------------------------------

    def lease_is(self, *, held: bool) -> None:
        """Do nothing: each run checks the lease."""

    def buried(self) -> None:
        """Do nothing: jobs come with their shards."""

    async def follow(self, view: View, group: TaskGroup) -> float | None:
        takeover, handoff, owners = self._takeover, self._handoff, Assignment(view)
        await takeover.close_left(view)
        handoff.seen(self.node.turn)
        to_come = takeover.wanted(view.ours().difference(handoff.given))
        if self._core.clock_guard.is_off:  # they came here before the others knew that our clock is off
            await handoff.give_back([shard for shard in to_come if shard not in takeover.unread], owners)
        else:
            await takeover.take(to_come, group)
        if view.labelled:
            await handoff.forget_empty()
        others = (shard for shard in self._shares.all() if owners[shard] != view.me)
        wanted = {shard: owners[shard] for shard in others if shard not in takeover.unread}
        givers = len({owner for shard, owner in view.shards() if owner not in (0, owners[shard])}) if wanted else 1
        goes, took = self.node.leaves, self._commits.batch_window.took
        return await handoff.hand_on(wanted, givers=max(1, givers), commit_s=took, at_once=goes)

    async def lose_all(self) -> None:
        await self._takeover.let_go()
        self._handoff.let_go()
