"""The membership of a scheduler whose jobs come out of a queue for one tick each.

In a shared store each node holds a lease: once it is buried, others may take its executions. No job moves with shards.
On the loop.
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
from .on_node import OnNode
from .queue import Dispatch, QueueAudit

logger = getLogger(__name__)

FORGETS: Final = 300.0
"""Seconds between looks for shards that no job asks for."""


class QueueMembership(Protocol):
    is_patient: bool
    reads_beside: bool

    async def join(self) -> None: ...

    def rows(self) -> Rows: ...

    def begin(self, group: TaskGroup) -> None: ...

    def hint(self) -> None: ...

    def give_away(self) -> None: ...

    def end(self) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


class Queued:
    def __init__(self, beside: QueueMembership, dispatch: Dispatch, audit: QueueAudit) -> None:
        self.is_patient = beside.is_patient
        self.reads_beside = beside.reads_beside
        self.beside = beside
        self.dispatch = dispatch
        self.audit = audit

    async def join(self) -> None:
        await self.beside.join()

    def rows(self) -> Rows:
        return self.beside.rows()

    def cut_off(self) -> list[StoredTick]:
        """Return nothing: each job brings its own ticks."""
        return []

    def owed(self) -> list[StoredTick]:
        return []

    def begin(self, group: TaskGroup) -> None:
        self.dispatch.begin()
        self.beside.begin(group)
        group.start_soon(self.audit.run, name="scheduler queue audit")

    def hint(self) -> None:
        self.beside.hint()

    def give_away(self) -> None:
        self.beside.give_away()

    def end(self) -> None:
        self.audit.end()
        self.dispatch.end()
        self.beside.end()

    def close(self) -> None:
        self.dispatch.close()
        self.beside.close()

    def abandon(self) -> None:
        self.beside.abandon()

    def queue_statistics(self) -> DispatchStatistics | None:
        return self.dispatch.statistics()


class QueueNode(OnNode):
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
        self._routing.see(await self.node.join())

    def rows(self) -> Rows:
        return AllRows(self._sharing, [])

    # -- what the node asks for ----------------------------------------------------------------------------------------

    def lease_is(self, *, held: bool) -> None:
        self._claiming.on_lease(held)

    def buried(self) -> None:
        self._audit.hint()

    async def follow(self, view: View, _group: TaskGroup) -> float | None:
        self._routing.see(view)
        if view.labelled:
            await self._forget_empty()
        return None

    async def _forget_empty(self) -> None:
        now = self._core.monotonic()
        if now < self._forgot_at + FORGETS:
            return
        self._forgot_at = now
        try:
            await self.node.ask(self._sharing.forget_empty)
        except StoreUnavailable as exc:
            logger.info("shards of labels stay for now: %s", exc)  # another node adds many jobs just now

    async def lose_all(self) -> None:
        """Do nothing."""
