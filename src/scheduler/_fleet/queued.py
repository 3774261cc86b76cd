"""Queued: jobs come out of a queue for one tick each, and go again. Between two ticks no node has them.

In a shared store each node holds a lease, so that a dead node can be buried. From then on others may take what it had
taken. Nodes claim shards as usual, so that each sees the others; no job comes or goes with a shard. A store that is not
shared has no lease. On the loop.
"""

from __future__ import annotations

from logging import getLogger
from typing import Final, Protocol

from anyio.abc import TaskGroup

from .._restore import Rows
from .._values import DispatchStatistics
from ..stores import StoredTick, StoreUnavailable, View
from .all_rows import AllRows
from .node import Node, NodeParts
from .queue import Dispatch, QueueAudit

logger = getLogger(__name__)

FORGETS: Final = 300.0
"""Seconds between looks for shards that no job asks for any more."""


class Beside(Protocol):
    """The membership next to a queue: the lease of a node, or no fleet. Each verb is that of a Membership."""

    is_patient: bool
    reads_beside: bool

    async def join(self) -> None:
        """See Membership."""

    def rows(self) -> Rows:
        """See Membership."""

    def begin(self, group: TaskGroup) -> None:
        """See Membership."""

    def hint(self) -> None:
        """See Membership."""

    def give_away(self) -> None:
        """See Membership."""

    def end(self) -> None:
        """See Membership."""

    def close(self) -> None:
        """See Membership."""

    def abandon(self) -> None:
        """See Membership."""


class Queued:
    """The membership of a scheduler with a queue."""

    def __init__(self, beside: Beside, dispatch: Dispatch, audit: QueueAudit) -> None:
        self.is_patient = beside.is_patient
        self.reads_beside = beside.reads_beside
        self.beside = beside
        self.dispatch = dispatch
        self.audit = audit

    async def join(self) -> None:
        """Hold our lease. No job is ours until it comes out of the queue."""
        await self.beside.join()

    def rows(self) -> Rows:
        """See Membership."""
        return self.beside.rows()

    def cut_off(self) -> list[StoredTick]:
        """Return nothing: each job brings its own ticks when it comes."""
        return []

    def owed(self) -> list[StoredTick]:
        """Return nothing, as above."""
        return []

    def begin(self, group: TaskGroup) -> None:
        """Take due executions from now on, and audit the queue."""
        self.dispatch.begin()
        self.beside.begin(group)
        group.start_soon(self.audit.run, name="scheduler queue audit")

    def hint(self) -> None:
        """See Membership."""
        self.beside.hint()

    def give_away(self) -> None:
        """See Membership."""
        self.beside.give_away()

    def end(self) -> None:
        """Take nothing more."""
        self.audit.end()
        self.dispatch.end()
        self.beside.end()

    def close(self) -> None:
        """Close the queue, once it has the last plans, and leave the fleet."""
        self.dispatch.close()
        self.beside.close()

    def abandon(self) -> None:
        """See Membership."""
        self.beside.abandon()

    def queue_statistics(self) -> DispatchStatistics | None:
        """See Membership."""
        return self.dispatch.statistics()


class QueueNode:
    """The lease of a node that has a queue. Its findings go to Taking, Fitting and QueueAudit."""

    is_patient = True
    reads_beside = True
    leaves_ticks = False

    def __init__(self, parts: NodeParts, dispatch: Dispatch, audit: QueueAudit) -> None:
        self.node = Node(parts, self)
        self._sharing = parts.sharing
        self._core = parts.core
        self._claiming = dispatch.claiming
        self._routing = dispatch.routing
        self._audit = audit
        self._forgot_at = 0.0

    async def join(self) -> None:
        """Hold our lease."""
        self._routing.see(await self.node.join())

    def rows(self) -> Rows:
        """Return all jobs of the store: none of them is ours."""
        return AllRows(self._sharing, [])

    def begin(self, group: TaskGroup) -> None:
        """Follow the findings of the lease."""
        group.start_soon(self.node.run, name="scheduler shards")

    def hint(self) -> None:
        """Let the lease ask whether there is news. Any thread."""
        self.node.hint()

    def give_away(self) -> None:
        """See Membership."""
        self.node.give_away()

    def end(self) -> None:
        """See Membership."""
        self.node.end()

    def close(self) -> None:
        """See Membership."""
        self.node.close()

    def abandon(self) -> None:
        """See Membership."""
        self.node.let_go()

    # -- what the node asks for ----------------------------------------------------------------------------------------

    def lease_is(self, *, held: bool) -> None:
        """Leave executions to others while our lease is not held."""
        self._claiming.on_lease(held)

    def buried(self) -> None:
        """Audit soon: the dead nodes may not have put their last plans."""
        self._audit.hint()

    async def follow(self, view: View, _group: TaskGroup) -> float | None:
        """Listen to the labels that fit us now."""
        self._routing.see(view)
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
            await self.node.ask(self._sharing.forget_empty)
        except StoreUnavailable as exc:
            logger.info("shards of labels stay for now: %s", exc)  # another node adds many jobs just now

    async def lose_all(self) -> None:
        """Do nothing: taken executions are given back with our part of the store."""
